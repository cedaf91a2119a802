// Changes: who changed what and when, with the row before and after.
/** @import { Change } from '../../admin/transport/response-types.ts' */
/** @import { Page, View } from '../types.ts' */
import { get } from './client.js'
import { fieldDiff } from './diff.js'
import { html, nothing } from './lit-html.js'
import { ago, badge, empty, select, stored } from './parts.js'
import { proofButton } from './proof.js'
import { href } from './router.js'
import { createListing } from './table.js'

const rowsPerPage = 50
const kinds = [
  'policy',
  'issuer',
  'key',
  'preset',
  'organization',
  'workspace',
  'user',
  'signing_key',
  'upstream',
  'price',
  'archive',
]
const ignored = ['updated_at']

/** @param {Pick<Change, 'target_id'> & Partial<Change>} change */
function nameOf({ before, after, target_id: id }) {
  const { name, slug } = /** @type {Record<string, unknown>} */ (after ?? before ?? {})
  return name ?? slug ?? id
}

/** @param {Change} change */
function who({ actor, actor_key_name: key, actor_subject: subject }) {
  if (actor === 'server') return badge('off', 'server')
  return actor === 'local'
    ? html`<span class="muted">local command</span>`
    : subject === null
      ? stored(key, 80)
      : html`${stored(subject, 80)}<div class="muted small">${stored(key, 80)}</div>`
}

/** @param {Page} page @param {Change} change */
function fields(page, { id, before, after }) {
  const of = (/** @type {object | null} */ row) =>
    row && Object.fromEntries(Object.entries(row).filter(([name]) => !ignored.includes(name)))
  const [old, now] = [of(before), of(after)]
  const names = Object.keys({ ...old, ...now }).filter(
    (name) => JSON.stringify(old?.[name]) !== JSON.stringify(now?.[name]),
  )
  const summary =
    old === null
      ? 'Created'
      : names.length === 0
        ? 'Nothing differs'
        : names.slice(0, 4).join(', ') + (names.length > 4 ? ` and ${names.length - 4} more` : '')
  return html`<details class="wide"><summary>${summary}</summary>${fieldDiff(old, now)}${proofButton(page, { change_id: id })}</details>`
}

/** @type {View} */
export const view = (page) => {
  const listing = createListing(page, {
    load: async ({ cursor }) => {
      const { kind, target } = page.query
      const asked = { installation: true, kind, target_id: target, before_id: cursor, limit: rowsPerPage }
      const { data: rows } = await get('/workload-identity/audit/changes', asked)
      return { rows: /** @type {Change[]} */ (rows), next: rows.length === rowsPerPage ? rows.at(-1).id : undefined }
    },
  })
  const choose = (/** @type {string} */ kind) => {
    page.setQuery({ kind })
    void listing.restart()
  }
  return () => html`${page.query.target === undefined ? nothing : html`<p>Only changes of ${stored(nameOf(listing.rows()?.[0] ?? { target_id: page.query.target }), 120)}: <a href=${href(['changes'])}>show all</a></p>`}
    ${listing.show({
      label: 'Changes',
      tools: select(
        'Kind',
        page.query.kind ?? '',
        [['', 'Everything'], ...kinds.map((kind) => /** @type {[string, string]} */ ([kind, kind.replace('_', ' ')]))],
        choose,
      ),
      empty: empty('No changes', 'Whatever an administrator changes is recorded here, with the row before and after.'),
      columns: [
        { title: 'Time', isHeader: true, cell: ({ at }) => ago(at) },
        { title: 'Who', cell: who },
        {
          title: 'What',
          cell: (change) => html`${stored(nameOf(change), 100)}<div class="muted small mono">${change.operation}</div>`,
        },
        { title: 'Before and after', cell: (change) => fields(page, change) },
      ],
    })}`
}
