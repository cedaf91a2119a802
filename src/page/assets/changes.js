// Changes: who changed what and when, with the row before and after.
/** @import { Change } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page, View } from '../types.ts' */
/** @import { Filter } from './filters.js' */
import { get } from './client.js'
import { fieldDiff } from './diff.js'
import { timeFilter, times } from './filters.js'
import { createListing } from './listing.js'
import { html, nothing } from './lit-html.js'
import { ago, badge, empty, stored } from './parts.js'
import { proofButton } from './proof.js'
import { href } from './router.js'
import { changeText } from './words.js'

const kinds = [
  ...['policy', 'issuer', 'key', 'preset', 'budget', 'webhook', 'organization', 'workspace', 'user', 'signing_key'],
  ...['upstream', 'price', 'archive', 'document', 'bundle_signer', 'session'],
]
const ignored = ['updated_at']

/** @type {readonly Filter[]} */
const filters = [
  timeFilter,
  {
    name: 'kind',
    label: 'Kind',
    options: [
      ['', 'Everything'],
      ['-session', 'Everything but sign-ins'],
      ...kinds.map((kind) => /** @type {[string, string]} */ ([kind, kind.replace('_', ' ')])),
    ],
  },
  { name: 'by', label: 'Who', complete: whoContaining },
]

/** Who has made changes lately. @param {string} text */
async function whoContaining(text) {
  const { data } = await get('/workload-identity/audit/changes', { installation: true, limit: 1_000 })
  const names = /** @type {Change[]} */ (data).flatMap(
    ({ actor_subject, actor_key_name }) => actor_subject ?? actor_key_name ?? [],
  )
  return [...new Set(names)].filter((each) => each.toLowerCase().includes(text.toLowerCase())).toSorted()
}

/** @param {Pick<Change, 'target_id'> & Partial<Change>} change */
function nameOf({ before, after, target_id: id }) {
  const { name, slug } = /** @type {Record<string, unknown>} */ (after ?? before ?? {})
  return name ?? slug ?? id
}

/** Where it is; a rotation changes the address of a key. @type {Record<string, (change: Change) => string>} */
const places = {
  policy: ({ target_id: id }) => href(['policies', id]),
  issuer: ({ target_id: id }) => href(['issuers', id]),
  budget: ({ target_id: id }) => href(['budgets', id]),
  key: (change) => href(['keys'], { search: String(nameOf(change)) }),
  preset: (change) => href(['presets', String(nameOf(change))]),
}

/** What is gone has no view. @param {Change} change */
const isDeletion = ({ operation, after }) => after === null || operation.endsWith('.delete')

/** @param {Change} change */
function what(change) {
  const place = isDeletion(change) ? undefined : places[change.kind]?.(change)
  const name = stored(nameOf(change), 80)
  const shown = place === undefined ? name : html`<a href=${place}>${name}</a>`
  return html`${shown} <span class="muted small mono">${change.operation}</span>`
}

/** @param {Change} change */
function who({ actor, actor_key_name: key, actor_subject: subject, actor_issuer: issuer }) {
  if (actor === 'server') return badge('off', 'server')
  if (actor === 'local') return html`<span class="muted">local command</span>`
  return subject === null
    ? stored(key, 80)
    : html`<span title=${issuer ?? nothing}>${stored(subject, 80)}</span> <span class="muted small">${stored(key, 60)}</span>`
}

/** @param {Page} page @param {Change} change */
function fields(page, { id, before, after }) {
  const of = (/** @type {object | null} */ row) =>
    row && Object.fromEntries(Object.entries(row).filter(([name]) => !ignored.includes(name)))
  const [old, now] = [of(before), of(after)]
  return html`<details class="wide"><summary>${stored(changeText(old, now), 300)}</summary>${fieldDiff(old, now)}${proofButton(page, { change_id: id })}</details>`
}

/** The changes of one thing, or all. @param {Page} page @param {string} [target] its id @returns {() => Content} */
export function changeList(page, target) {
  const read = (/** @type {object} */ more) => {
    const { kind, by } = page.query
    const target_id = target ?? page.query.target
    return get('/workload-identity/audit/changes', {
      installation: true,
      ...(kind?.startsWith('-') ? { without_kind: kind.slice(1) } : { kind }),
      by_contains: by,
      target_id,
      ...times(page.query),
      ...more,
    })
  }
  const listing = createListing(page, {
    file: 'changes',
    seconds: 10,
    filters: target === undefined ? filters : filters.filter(({ name }) => name !== 'kind'),
    load: async ({ cursor, limit }) => {
      const { data: rows } = await read({ before_id: cursor, limit })
      return { rows: /** @type {Change[]} */ (rows), next: rows.length === limit ? rows.at(-1).id : undefined }
    },
    newer: async ({ id }) => (await read({ after_id: id, limit: 50 })).data,
  })
  const shownTarget = () =>
    target !== undefined || page.query.target === undefined
      ? nothing
      : html`<p>Only changes of ${stored(nameOf(listing.rows()?.[0] ?? { target_id: page.query.target }), 120)}: <a href=${href(['changes'])}>show all</a></p>`
  return () => html`${shownTarget()}
    ${listing.show({
      label: 'Changes',
      empty: empty('No changes', 'Whatever an administrator changes is recorded here, with the row before and after.'),
      columns: [
        { title: 'Time', isHeader: true, cell: ({ at }) => ago(at) },
        { title: 'Who', cell: who },
        ...(target === undefined ? [{ title: 'What', cell: what }] : []),
        { title: 'Before and after', cell: (change) => fields(page, change) },
      ],
    })}`
}

/** @type {View} */
export const view = (page) => changeList(page)
