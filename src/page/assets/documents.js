// The configuration as a document: what is saved, what a pasted document would change (and so what has drifted from it), and applying it.
/** @import { ConfigPlan } from '../../admin/transport/response-types.ts' */
/** @import { Column, Page, View } from '../types.ts' */
import { send } from './client.js'
import { createCodeField } from './code-field.js'
import { confirm } from './dialog.js'
import { download } from './download.js'
import { findingList } from './findings.js'
import { checkbox, createDraft, form } from './form.js'
import { showSecret } from './key-form.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { badge, button, callout, count, heading, json, mono, problem, stored } from './parts.js'
import { asCommand } from './remedies.js'
import { table } from './table.js'

/** @param {string} text @returns {object} */
function parse(text) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`This is not JSON: ${/** @type {Error} */ (error).message}. Commands take YAML too`)
  }
}

/** @type {View} */
export const view = (page) => {
  const shown = createShown(page)
  const documentField = createCodeField(page)
  return () => {
    const { draft, plan, failure, busy } = shown
    return html`<section class="card">${heading(
      'What is saved',
      button(page, 'Show it', () => show(shown)),
      button(page, 'Download', save),
    )}
        <p class="muted">Issuers, policies, keys, budgets, webhooks and presets as a document, without secrets. Keep it in a repository, and compare it later. <a href="#/manual/config">How documents work</a></p>
        ${asCommand('latchkey config export > latchkey.yaml')}
      </section>
      <section class="card">${heading('Compare with a document')}
        <p class="muted">Shows what the document would change. If you applied it last, every difference has drifted from it.</p>
        ${form(
          { onSubmit: () => void compare(shown), submit: 'Plan', busy, disabled: draft.values.text.trim() === '' },
          html`${documentField({ name: 'document', label: 'Document (JSON)', value: draft.values.text, onInput: draft.set('text'), rows: 10 })}
            ${failure === undefined ? nothing : problem(failure)}`,
        )}
      </section>
      ${plan === undefined ? nothing : planned(shown, plan)}`
  }
}

/** @param {Page} page */
function createShown(page) {
  const shown = {
    page,
    draft: createDraft(page, { text: '', prune: false, adopt: false }, (name) => {
      if (name === 'text') Object.assign(shown, { plan: undefined, failure: undefined })
    }),
    /** @type {ConfigPlan | undefined} */
    plan: undefined,
    /** @type {unknown} */
    failure: undefined,
    busy: false,
  }
  return shown
}
/** @typedef {ReturnType<typeof createShown>} Shown */

const exported = async () => {
  const { etag: _, ...document } = await send('POST', '/config/export', {})
  return json(document.data)
}

async function save() {
  download('latchkey.json', await exported(), 'application/json')
}

/** @param {Shown} shown */
async function show({ draft }) {
  draft.set('text')(await exported())
}

/** @param {Shown} shown */
async function compare(shown) {
  Object.assign(shown, { busy: true, failure: undefined, plan: undefined })
  shown.page.update()
  try {
    shown.plan = (await send('POST', '/config/plan', { document: parse(shown.draft.values.text) })).data
  } catch (failure) {
    shown.failure = failure
  }
  shown.busy = false
  shown.page.update()
}

/** @param {Shown} shown @param {ConfigPlan} plan */
async function apply(shown, { fingerprint, counts }) {
  const { prune, adopt, text } = shown.draft.values
  const body = html`<p>${count(counts.create)} are created, ${count(counts.update)} changed${prune ? html`, ${count(counts.delete)} deleted` : nothing}, in one commit.</p>`
  if (!(await confirm({ title: 'Apply this document?', body, action: 'Apply', isDanger: prune }))) return
  const { data } = await send('POST', '/config/apply', { document: parse(text), fingerprint, prune, adopt })
  notify('ok', 'The document was applied')
  await compare(shown)
  const keys = data.secrets.map((/** @type {{ name: string, key: string }} */ { name, key }) => `${name} ${key}`)
  if (keys.length > 0) await showSecret(keys.join('\n'))
}

/** @type {Record<string, 'ok' | 'info' | 'bad' | 'warn'>} */
const tones = { create: 'ok', update: 'info', delete: 'bad', adopt: 'info', conflict: 'warn' }

/** @type {Column<ConfigPlan['changes'][number]>[]} */
const columns = [
  { title: 'What', isHeader: true, cell: ({ kind, name }) => html`${kind} ${stored(name, 120)}` },
  {
    title: 'Change',
    cell: ({ action, managed_by: owner }) =>
      html`${badge(tones[action] ?? 'info', action)}${owner === undefined ? nothing : html` <span class="muted">of ${stored(owner, 80)}</span>`}`,
  },
  {
    title: 'Fields',
    cell: ({ fields }) =>
      fields.map(
        ({ field, before, after }) =>
          html`<div class="small"><span class="mono">${field}</span>: ${before === undefined ? nothing : html`<del>${mono(json(before), 200)}</del>`} ${after === undefined ? nothing : html`<ins>${mono(json(after), 200)}</ins>`}</div>`,
      ),
  },
]

/** @param {Shown} shown @param {ConfigPlan} plan */
function planned(shown, plan) {
  const { changes, findings, failed_tests: failed, blocked } = plan
  const { page, draft } = shown
  const option = (/** @type {'prune' | 'adopt'} */ name, /** @type {string} */ label, /** @type {string} */ help) =>
    checkbox({ label, name, checked: draft.values[name], onInput: draft.set(name), help })
  const isOpen = changes.length > 0 && blocked.length === 0
  return html`<section class="card" role="region" aria-label="Plan">
    ${heading('Plan', isOpen && page.may('config.apply') ? button(page, 'Apply', () => apply(shown, plan), 'primary') : nothing)}
    ${changes.length === 0 ? callout('ok', 'Nothing differs: no drift.') : table({ label: 'Plan', columns, rows: changes, key: ({ kind, name, action }) => `${kind} ${name} ${action}` })}
    ${failed.map(({ policy, failures }) => callout('bad', html`Tests of ${stored(policy, 120)} fail: ${stored(failures.join('; '), 1_000)}`))}
    ${findings.map(({ policy, findings: found }) => html`<h3>${stored(policy, 120)}</h3>${findingList(found)}`)}
    ${isOpen ? html`${option('prune', 'Delete what the document no longer names', 'Only what its owner has')}${option('adopt', 'Take over what was made by hand', 'The owner of the document then has it')}` : nothing}
  </section>`
}
