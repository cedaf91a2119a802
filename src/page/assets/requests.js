// Inference requests: the list as it grows, with filters. refused-requests.js has those that no server got, request.js shows one.
/** @import { InferenceRequest } from '../../admin/transport/response-types.ts' */
/** @import { Column, Content, Page, View } from '../types.ts' */
/** @import { Filter } from './filters.js' */
import { get } from './client.js'
import { createTabs } from './details.js'
import { namesOf, timeFilter, times } from './filters.js'
import { createListing } from './listing.js'
import { html, nothing } from './lit-html.js'
import { ago, brief, count, empty, moneyAlike, stored } from './parts.js'
import { refusedList } from './refused-requests.js'
import { costOf, errorOf, milliseconds, requestDetails, statusOf } from './request.js'
import { href } from './router.js'

const path = '/usage/requests'

/** @param {InferenceRequest} request */
function whoOf({ key_name, key_id, policy_name, subject }) {
  const key = stored(key_name ?? key_id, 60)
  if (policy_name === null) return key
  return html`<span title=${subject ?? nothing}>${key} <span class="muted">by ${stored(policy_name, 60)}</span></span>`
}

/** @param {readonly InferenceRequest[]} rows whose costs stand below each other @returns {Column<InferenceRequest>[]} */
function columnsOf(rows) {
  const format = moneyAlike(rows.map(({ cost }) => cost ?? 0))
  return [
    {
      title: 'Time',
      isHeader: true,
      cell: ({ at, request_id: id }) => html`<a href=${href(['requests', id])}>${ago(at)}</a>`,
    },
    { title: 'Status', cell: statusOf, value: ({ status }) => status },
    {
      title: 'Model',
      cell: ({ model, model_asked: asked }) => brief(model ?? asked, 'model', 30),
      value: (row) => row.model,
    },
    {
      title: 'Server',
      cell: ({ upstream, attempts }) =>
        html`${stored(upstream, 40)}${attempts !== null && attempts > 1 ? html` <span class="muted" title="Earlier servers failed">attempt ${count(attempts)}</span>` : nothing}`,
      value: ({ upstream }) => upstream,
    },
    {
      title: 'Tokens',
      align: 'end',
      cell: ({ prompt_tokens: prompt, completion_tokens: completion, total_tokens: all }) =>
        all === null
          ? html`<span class="muted">–</span>`
          : html`<span title=${`${count(prompt ?? 0)} of the prompt, ${count(completion ?? 0)} of the response`}>${count(all)}</span>`,
      value: ({ total_tokens: all }) => all,
    },
    { title: 'Cost', align: 'end', cell: (row) => costOf(row, format), value: ({ cost }) => cost },
    {
      title: 'First byte',
      align: 'end',
      cell: (row) => milliseconds(row.first_byte_milliseconds),
      value: (row) => row.first_byte_milliseconds,
    },
    {
      title: 'Duration',
      align: 'end',
      cell: (row) => milliseconds(row.duration_milliseconds),
      value: (row) => row.duration_milliseconds,
    },
    { title: 'Error', cell: errorOf },
    { title: 'Who', cell: whoOf },
  ]
}

/** @type {readonly Filter[]} */
const filters = [
  timeFilter,
  {
    name: 'result',
    label: 'Result',
    options: [
      ['', 'Any'],
      ['succeeded', 'Succeeded'],
      ['failed', 'Failed'],
      ['client_left', 'Client left'],
    ],
  },
  { name: 'status', label: 'Status' },
  { name: 'model', label: 'Model', complete: groupsOf('model') },
  { name: 'upstream', label: 'Server', complete: groupsOf('upstream') },
  { name: 'key', label: 'Key', complete: namesOf('/keys') },
  { name: 'policy', label: 'Policy', complete: namesOf('/workload-identity/policies') },
  { name: 'issuer', label: 'Issuer', complete: namesOf('/workload-identity/issuers') },
  { name: 'subject', label: 'Subject' },
  { name: 'attribution', label: 'Attribution', complete: groupsOf('attribution') },
]

/** What the usage of the last month was of. @param {'model' | 'upstream' | 'attribution'} by @returns {(text: string) => Promise<string[]>} */
function groupsOf(by) {
  return async (text) => {
    const { data } = await get('/usage', { by, limit: 100 })
    const names = /** @type {Record<string, string | null>[]} */ (data).flatMap((row) => row[by] ?? [])
    return names.filter((name) => name.toLowerCase().includes(text.toLowerCase()))
  }
}

/** @type {View} */
export const view = (page) => {
  const [id] = page.path
  if (id !== undefined) return requestDetails(page, id)
  return createTabs(page, [
    { name: 'forwarded', title: 'Forwarded', open: (tab) => requestList(tab) },
    { name: 'refused', title: 'Refused before', open: (tab) => refusedList(tab) },
  ])
}

/** The requests of a key or a policy, or all. @param {Page} page @param {{ key?: string, policy?: string }} [only] @returns {() => Content} */
export function requestList(page, only = {}) {
  const read = (/** @type {object} */ more) => {
    const { result, status, model, upstream, key, policy, issuer, subject, attribution } = page.query
    const of = { result, status, model, upstream, key, policy, issuer, subject, attribution }
    const asked = { ...of, ...times(page.query), ...only }
    return get(path, { ...asked, ...more })
  }
  const listing = createListing(page, {
    seconds: 3,
    file: 'requests',
    filters: filters.filter(({ name }) => !Object.hasOwn(only, name)),
    load: async ({ cursor, limit }) => {
      const { data: rows, more_before_id: more } = await read({ before_id: cursor, limit })
      return { rows: /** @type {InferenceRequest[]} */ (rows), next: more ?? undefined }
    },
    newer: async ({ id }) => (await read({ after_id: id, limit: 50 })).data,
  })
  return () =>
    listing.show({
      label: 'Inference requests',
      columns: columnsOf(listing.rows() ?? []),
      empty: empty(
        'No requests',
        'Requests that a server got appear here when they end.',
        html`<a class="button" href="#/start">Show me how to send one</a>`,
      ),
    })
}
