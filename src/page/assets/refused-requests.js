// Inference requests that Latchkey refused itself, before any server got them, as the responding node counts them.
/** @import { RefusedRequests } from '../../admin/transport/response-types.ts' */
/** @import { Column, Content, Page } from '../types.ts' */
import { get } from './client.js'
import { createFilters } from './filters.js'
import { html, nothing } from './lit-html.js'
import { ago, at, badge, copyable, count, empty, loading, mono, stored, visible } from './parts.js'
import { href } from './router.js'
import { table } from './table.js'
import { refusalText, refusalWords } from './words.js'

/** @type {readonly (readonly [string, string])[]} */
const reasons = [['', 'Any'], ...Object.entries(refusalWords)]

/** @param {string} text @param {string} part */
const includes = (text, part) => text.toLowerCase().includes(part.toLowerCase())

/** @param {RefusedRequests | undefined} found @param {string} text */
const keysIn = (found, text) =>
  [...new Set(found?.data.map(({ key_name, key_id }) => key_name ?? key_id))].filter((name) => includes(name, text))

/** Those that Latchkey refused itself. @param {Page} page @param {{ key?: string }} [only] @returns {() => Content} */
export function refusedList(page, only = {}) {
  /** @type {RefusedRequests | undefined} */
  let found
  page.poll(async () => {
    found = await get('/usage/refused', only)
  }, 10)
  const filters = createFilters(
    page,
    [
      { name: 'reason', label: 'Reason', options: reasons },
      .../** @type {import('./filters.js').Filter[]} */ (
        only.key === undefined ? [{ name: 'key', label: 'Key', complete: async (text) => keysIn(found, text) }] : []
      ),
    ],
    page.update,
  )
  return () => {
    if (found === undefined) return loading()
    const { reason, key } = page.query
    const data = found.data.filter(
      (each) =>
        (reason ?? each.reason) === each.reason &&
        (only.key !== undefined || key === undefined || includes(each.key_name ?? each.key_id, key)),
    )
    const isDay = Date.now() - Date.parse(found.since) >= 86_400_000
    const span = isDay
      ? 'in the last 24 hours'
      : html`since it started, ${ago(found.since)}; what it refused before is not known`
    return html`<div class="tools" role="search">${filters.show()}</div>
      <p class="muted">What the node that responded has refused ${span}. Counted by key and reason, with the latest of each.</p>
      ${table({
        label: 'Refused requests',
        isList: true,
        columns: refusedColumns(page).filter(({ title }) => title !== 'Key' || only.key === undefined),
        rows: data,
        key: ({ key_id, status, reason }) => `${key_id} ${status} ${reason}`,
        empty: filters.isSet()
          ? html`<p class="muted">Nothing matches these filters.</p>`
          : empty(
              isDay ? 'Nothing was refused' : 'Nothing was refused since the start',
              'Requests over a limit or budget, or for a model that is not allowed, appear here.',
            ),
      })}`
  }
}

/** @typedef {RefusedRequests['data'][number]} Refused */

/** Where each kind of limit is changed, and who may. @type {Readonly<Record<string, { view: string, act: import('../types.ts').Act }>>} */
const limits = {
  key: { view: 'keys', act: 'keys.update' },
  budget: { view: 'budgets', act: 'budgets.update' },
  policy: { view: 'policies', act: 'policies.update' },
}

/** Where the limit is that refused it. @param {Page} page @param {Refused} refused @returns {Content} */
function mend(page, { reason, subject }) {
  if (reason === 'model_unpriced' && page.may('prices.set'))
    return html`<a class="button" href="#/upstreams/prices/new">Set a price</a>`
  const limit = limits[subject?.kind ?? '']
  if (subject === null || limit === undefined || !page.may(limit.act)) return nothing
  const text = reason.endsWith('_not_allowed') ? 'Change what is allowed' : 'Raise the limit'
  return html`<a class="button" href=${href([limit.view, subject.id, 'edit'])}>${text}</a>`
}

/** @param {Page} page @returns {Column<Refused>[]} */
const refusedColumns = (page) => [
  { title: 'Status', isHeader: true, cell: ({ status }) => badge('bad', `${status}`) },
  {
    title: 'Reason',
    cell: ({ reason, message }) =>
      html`<span class="line" title=${`${visible(message)} (${reason})`}>${refusalText(reason)} <span class="muted small">${stored(message, 160)}</span></span>`,
  },
  {
    title: 'Key',
    cell: ({ key_id, key_name: name }) =>
      name === null ? stored(key_id, 80) : html`<a href=${href(['keys', key_id])}>${stored(name, 80)}</a>`,
  },
  { title: 'Requests', align: 'end', cell: ({ requests }) => count(requests) },
  { title: 'Last', cell: ({ last_at: last }) => ago(last) },
  {
    title: 'Latest',
    cell: ({ samples }) =>
      html`<details><summary>${count(samples.length)} ${samples.length === 1 ? 'sample' : 'samples'}</summary>${table({
        label: 'Samples',
        columns: sampleColumns,
        rows: samples,
        key: ({ request_id: id }) => id,
      })}</details>`,
  },
  { title: '', align: 'end', cell: (row) => mend(page, row) },
]

/** @type {Column<RefusedRequests['data'][number]['samples'][number]>[]} */
const sampleColumns = [
  { title: 'Time', isHeader: true, cell: ({ at: time }) => at(time) },
  { title: 'Model', cell: ({ model }) => mono(model, 120) },
  { title: 'Policy', cell: ({ policy_name: name }) => stored(name, 80) },
  { title: 'Request id', cell: ({ request_id: id }) => copyable(id, 'request id') },
]
