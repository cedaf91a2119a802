// One preset: its versions, their differences, and a try that shows the request as completed.
/** @import { Preset, PresetVersion } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page } from '../types.ts' */
import { changeList } from './changes.js'
import { get, segment, send } from './client.js'
import { createTabs, detailsHead } from './details.js'
import { confirm } from './dialog.js'
import { fieldDiff, lineDiff } from './diff.js'
import { createDraft, form } from './form.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { ago, at, badge, button, code, count, facts, heading, json, loading, mono, problem, stored } from './parts.js'
import { parseBody } from './preset-form.js'
import { asCommand } from './remedies.js'
import { go, href } from './router.js'
import { table } from './table.js'

/** A page of long versions has many megabytes. */
const versionsShown = 20
const question = json({ messages: [{ role: 'user', content: 'Hello' }] })

/** @param {{ status: string }} preset */
export const statusBadge = ({ status }) => badge(status === 'active' ? 'ok' : 'off', status)

/** @typedef {Preset & { designated_version: PresetVersion }} Designated */

/** @param {Page} page @param {string} slug */
export function preset(page, slug) {
  page.title(slug)
  const shown = createShown(page, slug)
  page.poll(() => load(shown))
  const tabs = createTabs(page, [
    { name: 'overview', title: 'Overview', open: () => () => overview(shown) },
    { name: 'versions', title: 'Versions', open: () => () => versions(shown) },
    { name: 'try', title: 'Try it', open: () => () => html`<section class="card">${tryOut(shown)}</section>` },
    { name: 'history', title: 'History', open: (tab) => history(tab, () => shown.preset?.id) },
  ])
  return () =>
    shown.preset === undefined
      ? loading()
      : html`${detailsHead({ state: statusBadge(shown.preset), id: `@preset/${slug}`, idLabel: 'name of the preset', actions: actionsOf(shown, shown.preset) })}${tabs()}`
}

/** @param {Page} page @param {string} slug */
function createShown(page, slug) {
  return {
    page,
    slug,
    self: `/presets/${segment(slug)}`,
    draft: createDraft(page, { from: '', to: '', version: '', body: question }),
    preset: /** @type {Designated | undefined} */ (undefined),
    etag: /** @type {string | undefined} */ (undefined),
    versions: /** @type {PresetVersion[]} */ ([]),
    total: 0,
    tried: /** @type {{ preset_version: string, body: unknown } | undefined} */ (undefined),
    failure: /** @type {unknown} */ (undefined),
  }
}
/** @typedef {ReturnType<typeof createShown>} Shown */

/** @param {Shown} shown */
async function load(shown) {
  const { self, draft } = shown
  const { data: preset, etag } = await get(self)
  const { total_count: total } = await get(`${self}/versions`, { limit: 1 })
  const { data } = await get(`${self}/versions`, { offset: Math.max(total - versionsShown, 0), limit: versionsShown })
  const versions = /** @type {PresetVersion[]} */ (data).toReversed()
  Object.assign(shown, { preset, etag, total, versions })
  const designated = preset.designated_version.version
  const other = versions.find(({ version }) => version !== designated)?.version ?? designated
  if (draft.values.from === '') {
    const [from, to] = [Math.min(designated, other), Math.max(designated, other)]
    Object.assign(draft.values, { from: String(from), to: String(to) })
  }
}

/** @param {Shown} shown @param {object} body @param {string} words */
async function change(shown, body, words) {
  await send('PATCH', shown.self, body, { etag: shown.etag })
  notify('ok', words)
  await load(shown)
}

/** @param {Shown} shown @param {number} version */
async function designate(shown, version) {
  const body = html`<p>Requests that name <code>@preset/${shown.slug}</code> get version ${version} at once. Those that pin a version are not affected.</p>`
  if (await confirm({ title: `Designate version ${version}?`, body, action: 'Designate' }))
    await change(shown, { designated_version: version }, `Version ${version} is designated`)
}

/** @param {Shown} shown @param {'Disable' | 'Archive'} action */
async function stop(shown, action) {
  const { slug, self, page } = shown
  const body = html`<p>Requests that name <code>@preset/${slug}</code> fail with 404 at once.</p>
    ${action === 'Disable' ? nothing : html`<p>The slug stays taken. Restore brings the preset back.</p>${asCommand(`latchkey presets restore ${slug}`)}`}`
  if (!(await confirm({ title: `${action} this preset?`, body, action: `${action} preset`, isDanger: true }))) return
  if (action === 'Disable') return change(shown, { status: 'disabled' }, 'The preset is disabled')
  await send('DELETE', self)
  const restore = async () => {
    await send('POST', `${self}/restore`)
    go(['presets', slug])
  }
  notify('ok', html`The preset is archived. ${button(page, 'Restore', restore)}`)
  go(['presets'])
}

/** @param {Shown} shown */
async function attempt(shown) {
  const { self, slug, draft, page } = shown
  const { version, body } = draft.values
  Object.assign(shown, { failure: undefined, tried: undefined })
  try {
    const request = parseBody(body)
    shown.tried = (
      await send('POST', `${self}/complete`, version === '' ? request : { ...request, preset: `${slug}@${version}` })
    ).data
  } catch (error) {
    shown.failure = error
  }
  page.update()
}

/** The history of a preset goes by its id. @param {Page} page @param {() => string | undefined} idOf */
function history(page, idOf) {
  /** @type {(() => Content) | undefined} */
  let list
  return () => {
    const id = idOf()
    if (id === undefined) return loading()
    list ??= changeList(page, id)
    return list()
  }
}

/** @param {Shown} shown @param {Designated} preset @returns {Content[]} */
function actionsOf(shown, { status }) {
  const { page, slug } = shown
  const enable = () => change(shown, { status: 'active' }, 'The preset is enabled')
  return page.may('presets.update')
    ? [
        status === 'active' ? button(page, 'Disable', () => stop(shown, 'Disable')) : button(page, 'Enable', enable),
        button(page, 'Archive', () => stop(shown, 'Archive'), 'danger'),
        html`<a class="button primary" href=${href(['presets', slug, 'edit'])}>New version</a>`,
      ]
    : []
}

/** @param {Shown} shown @returns {Content} */
function overview({ slug, preset }) {
  if (preset === undefined) return nothing
  const { config, system_prompt: prompt, version } = preset.designated_version
  return html`<section class="card">
      ${facts([
        ['Name', stored(preset.name)],
        ['Description', stored(preset.description, 2_000)],
        ['Callers send', mono(`"model": "@preset/${slug}"`)],
        ['Changed', at(preset.updated_at)],
        ['Designated', `version ${version}`],
      ])}
      ${code(json({ ...config, ...(prompt === null ? {} : { system_prompt: prompt }) }), `version ${version}`)}
    </section>`
}

/** @param {Shown} shown @returns {Content} */
function versions(shown) {
  const designated = shown.preset?.designated_version.version ?? 0
  return html`${versionTable(shown, designated)}
    ${shown.versions.length > 1 ? html`<section class="card">${heading('Compare')}${compare(shown)}</section>` : nothing}`
}

/** @param {Shown} shown @param {number} designated */
function versionTable(shown, designated) {
  const { page, versions, total } = shown
  const choose = (/** @type {PresetVersion} */ { version }) =>
    version === designated
      ? nothing
      : button(page, 'Designate', () => designate(shown, version), '', `Designate version ${version}`)
  return html`${table({
    label: 'Versions',
    columns: [
      {
        title: 'Version',
        isHeader: true,
        cell: ({ version }) => html`${version} ${version === designated ? badge('ok', 'designated') : nothing}`,
      },
      { title: 'Model', cell: ({ config }) => mono(modelOf(config), 120) },
      { title: 'Created', cell: ({ created_at }) => ago(created_at) },
      ...(page.may('presets.update') ? [{ title: '', align: /** @type {const} */ ('end'), cell: choose }] : []),
    ],
    rows: versions,
    key: ({ version }) => version,
  })}
  ${total > versions.length ? html`<p class="muted">The newest ${versions.length} of ${count(total)}.</p>` : nothing}`
}

/** @param {PresetVersion} version */
const settingsOf = ({ config }) => /** @type {Record<string, unknown>} */ (config)

/** @param {{ model?: string, models?: string[] }} config */
const modelOf = ({ model, models }) => model ?? models?.join(', ')

/** @param {Shown} shown */
const numbers = ({ versions }) =>
  versions.map(({ version }) => /** @type {[string, string]} */ ([String(version), `Version ${version}`]))

/** @param {Shown} shown */
function compare(shown) {
  const { versions, draft } = shown
  const of = (/** @type {string} */ number) => versions.find(({ version }) => String(version) === number) ?? versions[0]
  const [from, to] = [of(draft.values.from), of(draft.values.to)]
  const fields = html`<div class="fields">
    ${draft.field('from', 'From', { options: numbers(shown) })} ${draft.field('to', 'To', { options: numbers(shown) })}
  </div>`
  if (from === undefined || to === undefined) return fields
  const [old, now] = [from.system_prompt ?? '', to.system_prompt ?? '']
  return html`${fields} ${fieldDiff(settingsOf(from), settingsOf(to), [`Version ${from.version}`, `Version ${to.version}`])}
    ${old === now ? nothing : html`<h3>System prompt</h3>${lineDiff(old, now)}`}`
}

/** @param {Shown} shown */
function tryOut(shown) {
  const { draft, failure, tried } = shown
  return html`<p class="muted">Shows the request that an inference server would get. Nothing is sent or stored.</p>
    ${form(
      { onSubmit: () => void attempt(shown), submit: 'Complete the request' },
      html`${draft.field('version', 'Version', { options: [['', 'Designated'], ...numbers(shown)] })}
        ${draft.field('body', 'Body of a chat completions request', { rows: 9, mono: true })}
        ${failure === undefined ? nothing : problem(failure)}`,
    )}
    ${tried === undefined ? nothing : html`<p role="status">Completed with ${mono(tried.preset_version)}:</p>${code(json(tried.body), 'completed request')}`}`
}
