// Tables. `table({ label, columns, rows, key, empty })` shows rows; a row with the same key is the same row after a refresh. listing.js adds
// search, filters, paging and refreshing. In lists, Tab stops once in each row, and the arrow keys lead to other rows and to what else is in a row.
/** @import { Column, Content } from '../types.ts' */
/** @import { Choosing } from './bulk.js' */
import { html, nothing } from './lit-html.js'
import { repeat } from './repeat.js'

/**
 * Elements that belong to their rows: a new row moves no open details and no focus to another one.
 * @template Row
 * @param {readonly Row[]} rows @param {(row: Row) => unknown} key @param {(row: Row) => Content} template
 */
export function keyed(rows, key, template) {
  /** @type {Map<unknown, number>} */
  const seen = new Map()
  // Two rows with one key would break both.
  const unique = (/** @type {Row} */ row) => {
    const name = key(row)
    const times = seen.get(name) ?? 0
    seen.set(name, times + 1)
    return times === 0 ? name : `${name} ${times}`
  }
  return /** @type {Content} */ (repeat(rows, unique, template))
}

/** @typedef {{ by: string, isDescending: boolean, choose: (title: string) => void }} Order the title of a column, and what a click on one does */

/**
 * A table that becomes a list of cards where it is narrow.
 * @template Row
 * @param {{ label: string, columns: readonly Column<Row>[], rows: readonly Row[], key?: (row: Row) => unknown, empty?: Content, order?: Order, isList?: boolean, choosing?: Choosing<Row> | undefined }} options
 *   `key` is the `id` of a row where it has one, otherwise all that the row says; `isList`: one line for each row; `choosing`: with a box before each row
 */
export function table({ label, columns, rows, key = identity, empty = nothing, order, isList = false, choosing }) {
  if (rows.length === 0) return empty
  return html`<div class=${isList ? 'table list' : 'table'}>
    <table role="table" aria-label=${label}>
      <thead role="rowgroup">
        <tr role="row">${choosing === undefined ? nothing : html`<th scope="col" role="columnheader" class="choose">${choosing.all()}</th>`}${columns.map((column) => titleOf(column, order))}</tr>
      </thead>
      <tbody role="rowgroup" @click=${openRow}>
        ${keyed(rows, key, (row) => html`<tr role="row">${choosing === undefined ? nothing : html`<td role="cell" class="choose">${choosing.one(row)}</td>`}${columns.map((column) => cell(column, row))}</tr>`)}
      </tbody>
    </table>
  </div>`
}

/** @param {Column<any>} column @param {Order | undefined} order */
function titleOf({ title, align, value }, order) {
  const isSorted = order?.by === title
  const sorted = isSorted ? (order?.isDescending ? 'descending' : 'ascending') : nothing
  const shown =
    title === ''
      ? html`<span class="hidden">Actions</span>`
      : value === undefined || order === undefined
        ? title
        : html`<button type="button" class="quiet" @click=${() => order.choose(title)}>${title}${isSorted ? (order.isDescending ? ' ↓' : ' ↑') : nothing}</button>`
  return html`<th scope="col" role="columnheader" class=${align ?? ''} aria-sort=${sorted}>${shown}</th>`
}

/** The whole row is the link that its header has, unless somebody clicks something else in it or marks text. @param {MouseEvent} event */
function openRow(event) {
  const target = /** @type {Element} */ (event.target)
  if (target.closest('a, button, input, label, select, summary') || String(getSelection()) !== '') return
  const link = /** @type {HTMLAnchorElement | null | undefined} */ (target.closest('tr')?.querySelector('th a'))
  if (!link || event.defaultPrevented) return
  // So that Back leads to it again.
  link.focus()
  link.click()
}

/** @template Row @param {readonly Row[]} rows @param {readonly Column<Row>[]} columns @param {Omit<Order, 'choose'>} order */
export function sorted(rows, columns, { by, isDescending }) {
  const value = columns.find(({ title }) => title === by)?.value
  if (value === undefined) return rows
  const direction = isDescending ? -1 : 1
  return rows.toSorted((one, other) => direction * compare(value(one), value(other)))
}

/** What has no value comes last. @param {string | number | null | undefined} one @param {string | number | null | undefined} other */
function compare(one, other) {
  const [isNone, isOtherNone] = [one ?? '', other ?? ''].map((value) => value === '')
  if (isNone || isOtherNone) return Number(isNone) - Number(isOtherNone)
  if (typeof one === 'number' && typeof other === 'number') return one - other
  return String(one).localeCompare(String(other), undefined, { numeric: true, sensitivity: 'base' })
}

/** @param {any} row */
const identity = (row) => row?.id ?? JSON.stringify(row)

/** @template Row @param {Column<Row>} column @param {Row} row */
function cell({ title, cell: show, align: side, isHeader }, row) {
  const align = side ?? ''
  const label = title === '' ? nothing : html`<span class="label" aria-hidden="true">${title}</span>`
  return isHeader === true
    ? html`<th scope="row" role="rowheader" class=${align}>${label}<div>${show(row)}</div></th>`
    : html`<td role="cell" class=${align}>${label}<div>${show(row)}</div></td>`
}

const controls = 'a[href], button, input, select, summary, [tabindex]'

/** The controls of a row, the link first that it is; what somebody opened in it keeps its own order. @param {Element} row */
function controlsOf(row) {
  const all = /** @type {HTMLElement[]} */ ([...row.querySelectorAll(controls)])
  const own = all.filter((each) => each.tagName === 'SUMMARY' || each.closest('details') === null)
  const main = row.querySelector('th a') ?? own[0]
  return { own, main }
}

/** Rows arrive and change at any time, so that this runs when somebody presses Tab. */
function keepOneStop() {
  for (const row of document.querySelectorAll('.list > table > tbody > tr')) {
    const { own, main } = controlsOf(row)
    for (const each of own) each.tabIndex = each === main ? 0 : -1
  }
}

/** @param {KeyboardEvent} event */
function moveInRows(event) {
  const at = /** @type {HTMLElement} */ (event.target)
  const row = at.closest('.list > table > tbody > tr')
  if (row === null || at.matches('select, input:not([type="checkbox"])')) return
  const { own } = controlsOf(row)
  const place = own.indexOf(at)
  if (place < 0) return
  const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
  const next = { ArrowUp: row.previousElementSibling, ArrowDown: row.nextElementSibling }[event.key]
  const to = side === undefined ? next && sameIn(next, own, at) : own[place + side]
  if (!to) return
  event.preventDefault()
  to.focus()
}

/** The same control of another row, or its link. @param {Element} row @param {readonly HTMLElement[]} own @param {HTMLElement} at */
function sameIn(row, own, at) {
  const { own: others, main } = controlsOf(row)
  return others.length === own.length ? others[own.indexOf(at)] : /** @type {HTMLElement | undefined} */ (main)
}

/** Listens until the page is left. */
export function listenInRows() {
  addEventListener(
    'keydown',
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (event.key === 'Tab') keepOneStop()
      else if (event.key.startsWith('Arrow')) moveInRows(event)
    },
    true,
  )
}
