// One key: its limits, who acts as it, its exchanges, requests, usage and history.
/** @import { Key, Policy, UsageReport } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page } from '../types.ts' */
import { meters, refusedNote, withoutCostNote } from './budget-amounts.js'
import { changeList } from './changes.js'
import { get, segment, send } from './client.js'
import { createTabs, detailsHead, doWanted } from './details.js'
import { confirm, nameList } from './dialog.js'
import { exchangeList } from './exchanges.js'
import { showSecret } from './key-form.js'
import { rotateKey } from './key-rotate.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import {
  ago,
  at,
  badge,
  button,
  count,
  facts,
  heading,
  lastUse,
  loading,
  meter,
  money,
  mono,
  stored,
  unknownCost,
} from './parts.js'
import { refusedList } from './refused-requests.js'
import { requestList } from './requests.js'
import { go, href } from './router.js'
import { table } from './table.js'
import { usagePanel } from './usage.js'

const path = '/keys'
/** What it spent is watched while requests run. */
const secondsBetween = 5
const periods = { daily: 'a day', weekly: 'a week', monthly: 'a month' }

/** @param {Key} key */
export function keyBadge(key) {
  const { state, kind, role } = key
  const shown = badge(state === 'enabled' ? 'ok' : state === 'expired' ? 'bad' : 'off', state)
  if (state === 'enabled' && refusing(key).length > 0)
    return html`<span class="actions">${shown}${badge('bad', 'budget spent')}</span>`
  return kind === 'inference' ? shown : html`<span class="actions">${shown}${badge('info', role ?? kind)}</span>`
}

/** Of a key that was used and has cost nothing, nobody knows the cost. @param {Key} key */
const isUnknown = ({ usage, last_used_at: used }) => usage === 0 && used !== null && used !== undefined

/** @param {Key} key */
export function budget(key) {
  const { kind, limit, limit_reset: reset, usage, usage_daily, usage_weekly, usage_monthly } = key
  if (kind !== 'inference') return html`<span class="muted">–</span>`
  const used = reset === null ? usage : { daily: usage_daily, weekly: usage_weekly, monthly: usage_monthly }[reset]
  if (limit === null)
    return html`${isUnknown(key) ? unknownCost('cost unknown') : `${money(used)} spent`}<span class="muted">, no limit</span>`
  if (isUnknown(key)) return html`${unknownCost('cost unknown')}<span class="muted">, limit ${money(limit)}</span>`
  return meter(used, limit, html`${money(used)} of ${money(limit)}${reset === null ? nothing : ` ${periods[reset]}`}`)
}

/** The budgets that refuse every request of a key. @param {Key} key */
const refusing = ({ limited_by: budgets = [] }) => budgets.filter(({ refuses_all: refuses }) => refuses)

/** @param {{ id: string, name: string }} budget */
const budgetLink = ({ id, name }) => html`<a href=${href(['budgets', id])}>${stored(name, 120)}</a>`

/** Its own budget, and those that refuse its requests. @param {Key} key */
export function budgetCell(key) {
  return html`${budget(key)}${refusing(key).map((each) => html`<div class="small">${budgetLink(each)} is spent</div>`)}`
}

/** The budgets that apply to it. @param {NonNullable<Key['limited_by']>} budgets */
function budgetList(budgets) {
  if (budgets.length === 0) return html`<span class="muted">none</span>`
  return budgets.map(
    ({ spent = [], mode, refuses_all: refuses, ...each }) =>
      html`<div>${budgetLink(each)}${mode === 'block' ? nothing : html` <span class="muted small">only warns</span>`}</div>${meters(spent).map((shown) => html`<div>${shown}</div>`)}${refuses ? refusedNote(spent, mode) : nothing}`,
  )
}

/** @param {Key} key */
export function rates({ requests_per_minute: requests, tokens_per_minute: tokens }) {
  const parts = [
    requests === null ? undefined : `${count(requests)} requests`,
    tokens === null ? undefined : `${count(tokens)} tokens`,
  ].filter((part) => part !== undefined)
  return parts.length === 0 ? html`<span class="muted">–</span>` : `${parts.join(', ')} a minute`
}

/** The policies that let workloads act as a key. @param {string} hash @returns {Promise<{ data: Policy[], total_count: number }>} */
function policiesOf(hash, more = {}) {
  return get('/workload-identity/policies', { key: hash, limit: 10, ...more })
}

/** @param {Page} page @param {string} hash */
export function keyDetails(page, hash) {
  /** @type {Key | undefined} */
  let key
  /** @type {{ data: Policy[], total_count: number }} */
  let users = { data: [], total_count: 0 }
  let withoutCost = 0
  const self = `${path}/${segment(hash)}`
  page.poll(async () => {
    withoutCost = await requestsWithoutCost(hash)
  }, 60)
  page.poll(async () => {
    key = (await get(self)).data
    page.title(key?.name ?? '')
    if (key?.kind === 'inference') users = await policiesOf(hash)
    doWanted(page, { rotate, disable, delete: remove })
  }, secondsBetween)
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
    await showSecret(rotated.key, rotated.data.name, 'The new secret')
    if (location.hash === place) go(['keys', rotated.data.hash])
  }
  const remove = async () => {
    const body = html`${await impact()}<p>A deleted key cannot be restored. Its usage stays in the reports.</p>`
    if (!(await confirm({ title: 'Delete this key?', body, action: 'Delete key', isDanger: true }))) return
    await send('DELETE', self)
    notify('ok', html`Deleted the key ${stored(key?.name, 80)}`)
    go(['keys'])
  }
  const tabs = createTabs(page, [
    {
      name: 'overview',
      title: 'Overview',
      open: () => () => (key === undefined ? nothing : overview(page, key, users, withoutCost)),
    },
    { name: 'exchanges', title: 'Exchanges', open: (tab) => exchangeList(tab, { key: hash }) },
    { name: 'requests', title: 'Requests', open: (tab) => requestsOf(tab, hash) },
    { name: 'usage', title: 'Usage', open: (tab) => usagePanel(tab, { key: hash }) },
    { name: 'history', title: 'History', open: (tab) => historyOf(tab, () => key?.id) },
  ])
  return () => {
    if (key === undefined) return loading()
    const { disabled, role } = key
    const actions =
      page.may('keys.update') && (role !== 'admin' || page.session.role === 'admin')
        ? [
            button(page, disabled ? 'Enable' : 'Disable', disabled ? enable : disable),
            button(page, 'Rotate', rotate),
            button(page, 'Delete', remove, 'danger'),
            key.kind === 'inference'
              ? html`<a class="button" href=${href(['keys', 'new'], { from: hash })}>Duplicate</a>`
              : nothing,
            html`<a class="button primary" href=${href(['keys', hash, 'edit'])}>Edit</a>`,
          ]
        : []
    return html`${detailsHead({ state: keyBadge(key), id: key.hash, idLabel: 'hash', actions })}${tabs()}`
  }
}

/** Of the last days, today included. */
const withoutCostDays = 30

/** @param {string} hash */
async function requestsWithoutCost(hash) {
  const since = new Date(Date.now() - (withoutCostDays - 1) * 86_400_000).toISOString().slice(0, 10)
  const { data } = /** @type {UsageReport} */ (await get('/usage', { by: 'key', key: hash, since }))
  return data.reduce((sum, { requests_without_cost: requests }) => sum + requests, 0)
}

/** @param {Page} page @param {Key} key @param {{ data: Policy[], total_count: number }} users @param {number} withoutCost */
function overview(page, key, users, withoutCost) {
  return html`<section class="card">${details(key, withoutCost)}</section>
    ${withoutCostNote(page, withoutCost, `Of the last ${withoutCostDays} days, `)}
    ${key.kind === 'inference' ? usedBy(users, key.hash, key.id) : nothing}`
}

/** @param {Page} page @param {string} key */
function requestsOf(page, key) {
  const [forwarded, refused] = [requestList(page, { key }), refusedList(page, { key })]
  return () => html`${forwarded()}<section class="stack">${heading('Refused before')}${refused()}</section>`
}

/** The history of a key goes by its id, which arrives with the key. @param {Page} page @param {() => string | undefined} idOf */
function historyOf(page, idOf) {
  /** @type {(() => Content) | undefined} */
  let shown
  return () => {
    const id = idOf()
    if (id === undefined) return loading()
    shown ??= changeList(page, id)
    return shown()
  }
}

/** The secret before a rotation, while it works, and the new one. @param {Key} key @returns {[string, Content][]} */
function secrets({ previous_until: until, previous_last_used_at: used, current_last_used_at: newUsed }) {
  return [
    ['New secret', html`last used ${ago(newUsed)}`],
    // Before it, nobody counted the uses of a secret apart from those of its key.
    [
      'Old secret',
      html`works until ${at(until)}; ${used ? html`last used ${ago(used)}` : 'not used since the rotation'}`,
    ],
  ]
}

/** What budgets and reports group keys by. @param {Key['labels']} labels */
function labelList(labels) {
  const pairs = Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`)
  return pairs.length === 0 ? html`<span class="muted">none</span>` : stored(pairs.join(', '), 2_000)
}

/** @param {Key} key @param {number} withoutCost */
function details(key, withoutCost) {
  const unknown =
    withoutCost === 0
      ? nothing
      : html` ${unknownCost(`(and ${count(withoutCost)} unknown in the last ${withoutCostDays} days)`)}`
  const names = (/** @type {string[] | null} */ values) =>
    values === null ? html`<span class="muted">all</span>` : stored(values.join(', '), 2_000)
  return facts([
    ['Budget', budget(key)],
    [
      'Spent',
      isUnknown(key)
        ? unknownCost()
        : html`${money(key.usage_daily)} today, ${money(key.usage_weekly)} this week, ${money(key.usage_monthly)} this month, ${money(key.usage)} in all${unknown}`,
    ],
    ...(key.limited_by === undefined
      ? []
      : [/** @type {[string, Content]} */ (['Budgets', budgetList(key.limited_by)])]),
    ['Rates', rates(key)],
    ['Allowed models', names(key.allowed_models)],
    ['Allowed presets', names(key.allowed_presets)],
    ['Expires', key.expires_at === null ? html`<span class="muted">never</span>` : at(key.expires_at)],
    ['User', stored(key.owner)],
    ['Labels', labelList(key.labels)],
    ['Secret', mono(key.label)],
    ...(key.previous_until === null ? [] : secrets(key)),
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
        { title: 'Issuer', cell: ({ issuer_name }) => stored(issuer_name, 120) },
        {
          title: 'State',
          cell: ({ state }) => badge(state === 'enabled' ? 'ok' : state === 'paused' ? 'off' : 'bad', state),
        },
        { title: 'Last issued', cell: lastUse },
      ],
      rows: data,
      empty: html`<p class="muted">None yet: <a href=${href(['policies', 'new'], { key })}>create a policy</a> to let workloads act as this key.</p>`,
    })}
  </section>`
}
