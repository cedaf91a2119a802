// Keys: the list with their limits as bars, and one key with who uses it.
/** @import { Key, Policy } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page, View } from '../types.ts' */
import { get, segment, send } from './client.js'
import { confirm, nameList } from './dialog.js'
import { keyForm, showSecret } from './key-form.js'
import { rotateKey } from './key-rotate.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import {
  ago,
  at,
  badge,
  button,
  copyable,
  count,
  empty,
  facts,
  heading,
  loading,
  meter,
  money,
  mono,
  select,
  stored,
} from './parts.js'
import { go, href } from './router.js'
import { createListing, partOf, table } from './table.js'

const path = '/keys'
const periods = { daily: 'a day', weekly: 'a week', monthly: 'a month' }

/** @type {View} */
export const view = (page) => {
  const [hash, tab] = page.path
  if (hash === undefined) return list(page)
  if (hash === 'new') return keyForm(page)
  return tab === 'edit' ? keyForm(page, hash) : one(page, hash)
}

/** @param {Key} key */
function stateBadge({ state, kind, role }) {
  if (state !== 'enabled') return badge(state === 'expired' ? 'bad' : 'off', state)
  return kind === 'inference' ? badge('ok', 'enabled') : badge('info', role ?? kind)
}

/** @param {Key} key */
function budget({ kind, limit, limit_reset: reset, usage, usage_daily, usage_weekly, usage_monthly }) {
  if (kind !== 'inference') return html`<span class="muted">–</span>`
  const used = reset === null ? usage : { daily: usage_daily, weekly: usage_weekly, monthly: usage_monthly }[reset]
  if (limit === null) return html`${money(used)} <span class="muted">no limit</span>`
  return meter(used, limit, html`${money(used)} of ${money(limit)}${reset === null ? nothing : ` ${periods[reset]}`}`)
}

/** @param {Key} key */
function rates({ requests_per_minute: requests, tokens_per_minute: tokens }) {
  const parts = [
    requests === null ? undefined : `${count(requests)} requests`,
    tokens === null ? undefined : `${count(tokens)} tokens`,
  ].filter((part) => part !== undefined)
  return parts.length === 0 ? html`<span class="muted">–</span>` : `${parts.join(', ')} a minute`
}

/** @param {Page} page */
function list(page) {
  const listing = createListing(page, {
    search: 'Search keys by name',
    load: (asked) => partOf(path, { state: page.query.state, kind: page.query.kind }, asked),
  })
  const filter = (/** @type {string} */ name, /** @type {string} */ label, /** @type {[string, string][]} */ options) =>
    select(label, page.query[name] ?? '', options, (value) => {
      page.setQuery({ [name]: value })
      void listing.restart()
    })
  const create = page.may('keys.create') ? html`<a class="button primary" href="#/keys/new">Create key</a>` : nothing
  return () =>
    listing.show({
      label: 'Keys',
      tools: html`${filter('kind', 'Kind', [
        ['', 'All kinds'],
        ['inference', 'Inference'],
        ['management', 'Management'],
        ['management_read_only', 'Read-only management'],
      ])}
        ${filter('state', 'State', [
          ['', 'All states'],
          ['enabled', 'Enabled'],
          ['disabled', 'Disabled'],
          ['expired', 'Expired'],
        ])}
        <div class="actions push">${create}</div>`,
      empty: empty(
        'No keys',
        'An inference key holds budget, rates and allowed models. Policies let workloads act as it.',
        create,
      ),
      columns: [
        {
          title: 'Key',
          isHeader: true,
          cell: ({ hash, name, label }) =>
            html`<a href=${href(['keys', hash])}>${stored(name, 120)}</a> <span class="muted small mono">${label}</span>`,
          value: ({ name }) => name,
        },
        { title: 'State', cell: stateBadge, value: ({ state }) => state },
        { title: 'Budget', cell: budget, value: ({ usage }) => usage },
        { title: 'Rates', cell: rates },
        { title: 'User', cell: ({ owner }) => stored(owner, 80), value: ({ owner }) => owner },
        {
          title: 'Last used',
          cell: ({ last_used_at }) => ago(last_used_at),
          value: ({ last_used_at }) => last_used_at,
        },
      ],
    })
}

/** The policies that let workloads act as a key. @param {string} hash @returns {Promise<{ data: Policy[], total_count: number }>} */
function policiesOf(hash, more = {}) {
  return get('/workload-identity/policies', { key: hash, limit: 10, ...more })
}

/** @param {Page} page @param {string} hash */
function one(page, hash) {
  /** @type {Key | undefined} */
  let key
  /** @type {{ data: Policy[], total_count: number }} */
  let users = { data: [], total_count: 0 }
  const self = `${path}/${segment(hash)}`
  page.poll(async () => {
    key = (await get(self)).data
    page.title(key?.name ?? '')
    if (key?.kind === 'inference') users = await policiesOf(hash)
  })
  const impact = async () => {
    const { data, total_count: total } = await policiesOf(hash, { state: 'enabled' })
    return html`<p>Requests with this key are refused at once, also those of access tokens that act as it. ${total === 0 ? 'No enabled policy uses it.' : html`New exchanges under ${count(total)} enabled ${total === 1 ? 'policy' : 'policies'} stop too:`}</p>
      ${nameList(data.map(({ name }) => name))} ${total > data.length ? html`<p>and ${count(total - data.length)} more</p>` : nothing}`
  }
  const disable = async () => {
    if (!(await confirm({ title: 'Disable this key?', body: await impact(), action: 'Disable key', isDanger: true })))
      return
    key = (await send('PATCH', self, { disabled: true })).data
    notify('ok', 'The key is disabled')
  }
  const enable = async () => {
    key = (await send('PATCH', self, { disabled: false })).data
    notify('ok', 'The key is enabled')
  }
  const rotate = async () => {
    const rotated = key && (await rotateKey(key))
    if (rotated === undefined) return
    const place = location.hash
    await showSecret(rotated.key)
    if (location.hash === place) go(['keys', rotated.data.hash])
  }
  const remove = async () => {
    const body = html`${await impact()}<p>A deleted key cannot be restored. Its usage stays in the reports.</p>`
    if (!(await confirm({ title: 'Delete this key?', body, action: 'Delete key', isDanger: true }))) return
    await send('DELETE', self)
    notify('ok', 'The key was deleted')
    go(['keys'])
  }
  return () => {
    if (key === undefined) return loading()
    const { disabled, kind, role } = key
    const actions =
      page.may('keys.update') && (role !== 'admin' || page.session.role === 'admin')
        ? [
            button(page, disabled ? 'Enable' : 'Disable', disabled ? enable : disable),
            button(page, 'Rotate', rotate),
            html`<a class="button" href=${href(['keys', hash, 'edit'])}>Edit</a>`,
            button(page, 'Delete', remove, 'danger'),
          ]
        : []
    return html`<section class="card">${heading(stateBadge(key), ...actions)}${details(key)}</section>
      ${kind === 'inference' ? usedBy(users, hash, key.id) : nothing}
      <p><a href=${href(['usage'], { by: 'model', key: hash })}>Usage of this key</a>, <a href=${href(['changes'], { target: key.id })}>changes</a></p>`
  }
}

/** The text before a rotation, while it works. @param {Key} key @returns {[string, Content]} */
function before({ previous_until: until, previous_last_used_at: used }) {
  return ['Text before', html`works until ${at(until)}; last used ${ago(used)}`]
}

/** @param {Key} key */
function details(key) {
  const names = (/** @type {string[] | null} */ values) =>
    values === null ? html`<span class="muted">all</span>` : stored(values.join(', '), 2_000)
  return facts([
    ['Budget', budget(key)],
    [
      'Spent',
      html`${money(key.usage_daily)} today, ${money(key.usage_weekly)} this week, ${money(key.usage_monthly)} this month, ${money(key.usage)} in all`,
    ],
    ['Rates', rates(key)],
    ['Allowed models', names(key.allowed_models)],
    ['Allowed presets', names(key.allowed_presets)],
    ['Expires', key.expires_at === null ? html`<span class="muted">never</span>` : at(key.expires_at)],
    ['User', stored(key.owner)],
    ['Label', mono(key.label)],
    ...(key.previous_until === null ? [] : [before(key)]),
    ['Hash', copyable(key.hash, 'hash')],
    ['Last used', ago(key.last_used_at)],
    ['Created', at(key.created_at)],
  ])
}

/** @param {{ data: Policy[], total_count: number }} users @param {string} hash @param {string} key its id */
function usedBy({ data, total_count: total }, hash, key) {
  return html`<section class="stack">
    ${heading('Policies that act as this key', total > data.length ? html`<a href=${href(['policies'], { key: hash })}>All ${count(total)}</a>` : nothing)}
    ${table({
      label: 'Policies that act as this key',
      columns: [
        {
          title: 'Policy',
          isHeader: true,
          cell: ({ id, name }) => html`<a href=${href(['policies', id])}>${stored(name, 120)}</a>`,
        },
        { title: 'Issuer', cell: ({ issuer_url }) => stored(issuer_url, 120) },
        {
          title: 'State',
          cell: ({ state }) => badge(state === 'enabled' ? 'ok' : state === 'paused' ? 'off' : 'bad', state),
        },
        { title: 'Last issued', cell: ({ last_used_at }) => ago(last_used_at) },
      ],
      rows: data,
      empty: html`<p class="muted">None yet: <a href=${href(['policies', 'new'], { key })}>create a policy</a> to let workloads act as this key.</p>`,
    })}
  </section>`
}
