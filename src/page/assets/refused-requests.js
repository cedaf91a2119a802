// Inference requests that Latchkey refused itself, before any server got them, as the responding node counts them.
/** @import { RefusedRequests } from '../../admin/transport/response-types.ts' */
/** @import { Column, Content, Page } from '../types.ts' */
import { get } from './client.js'
import { html, nothing } from './lit-html.js'
import { ago, at, badge, copyable, count, empty, loading, mono, stored } from './parts.js'
import { deed } from './remedies.js'
import { href } from './router.js'
import { table } from './table.js'

/** Those that Latchkey refused itself. @param {Page} page @param {{ key?: string }} [only] @returns {() => Content} */
export function refusedList(page, only = {}) {
  /** @type {RefusedRequests | undefined} */
  let found
  page.poll(async () => {
    found = await get('/usage/refused', only)
  }, 10)
  return () => {
    if (found === undefined) return loading()
    const { data, since } = found
    return html`<p class="muted">What the node that responded has refused in the last 24 hours, and since it started ${ago(since)}: counted by key and reason, with the latest of each.</p>
      ${table({
        label: 'Refused requests',
        isList: true,
        columns: refusedColumns(page).filter(({ title }) => title !== 'Key' || only.key === undefined),
        rows: data,
        key: ({ key_id, status, reason }) => `${key_id} ${status} ${reason}`,
        empty: empty(
          'Nothing was refused',
          'Requests over a limit or budget, or for a model that is not allowed, appear here.',
        ),
      })}`
  }
}

/** @typedef {RefusedRequests['data'][number]} Refused */

/** Refusals that another limit of the key would not make. */
const ofKeyLimit = new Set(['key_limit_spent', 'rate_limited', 'model_not_allowed', 'preset_not_allowed'])

/** @param {Page} page @param {Refused} refused */
function mend(page, { key_name: name, reason }) {
  return name === null || !ofKeyLimit.has(reason) ? nothing : deed(page, 'keys.update', name)
}

/** @param {Page} page @returns {Column<Refused>[]} */
const refusedColumns = (page) => [
  { title: 'Status', isHeader: true, cell: ({ status }) => badge('bad', `${status}`) },
  {
    title: 'Reason',
    cell: ({ reason, message }) => html`${stored(message, 160)} <span class="muted small mono">${reason}</span>`,
  },
  {
    title: 'Key',
    cell: ({ key_id, key_name: name }) =>
      name === null ? stored(key_id, 80) : html`<a href=${href(['keys'], { search: name })}>${stored(name, 80)}</a>`,
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
