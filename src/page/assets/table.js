// Tables. `table({ label, columns, rows, key, empty })` shows rows; a row with the same key is the same row after a refresh.
// `createListing(page, { load })` adds search, paging and refreshing: `load({ search, cursor })` returns
// `{ rows, next, total }`, `next` being the cursor of the next page; show it
// with `listing.show({ label, columns, empty })`, and run `listing.restart()` when a filter changes.
/** @import { Column, Content, Page } from '../types.ts' */
import { get } from './client.js'
import { html, nothing } from './lit-html.js'
import { count, loading, stored } from './parts.js'
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
 * @param {{ label: string, columns: readonly Column<Row>[], rows: readonly Row[], key?: (row: Row) => unknown, empty?: Content, order?: Order, isList?: boolean }} options
 *   `key` is the `id` of a row where it has one, otherwise all that the row says; `isList`: one line for each row
 */
export function table({ label, columns, rows, key = identity, empty = nothing, order, isList = false }) {
  if (rows.length === 0) return empty
  return html`<div class=${isList ? 'table list' : 'table'}>
    <table role="table" aria-label=${label}>
      <thead role="rowgroup">
        <tr role="row">${columns.map((column) => titleOf(column, order))}</tr>
      </thead>
      <tbody role="rowgroup" @click=${openRow}>
        ${keyed(rows, key, (row) => html`<tr role="row">${columns.map((column) => cell(column, row))}</tr>`)}
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
  if (link && !event.defaultPrevented) link.click()
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

const searchDelayMilliseconds = 80
const pagesRefreshed = 4
/** So many rows are loaded to sort them. */
const pagesSorted = 10

/**
 * @template Row
 * @typedef {{ rows: Row[], next?: string | number | undefined, total?: number | undefined }} Part
 */

/**
 * @template Row
 * @param {Page} page
 * @param {{ load: (asked: { search: string, cursor: string | number | undefined }) => Promise<Part<Row>>,
 *   search?: string, seconds?: number }} options `search` names what the search field finds
 */
export function createListing(page, { load, search: searchLabel, seconds }) {
  /** @type {Part<Row> | undefined} */
  let part
  /** The query of the rows that are shown. */
  let shownFor = ''
  let pages = 1
  let asked = 0

  /** Every page that is shown, unless there are too many to ask for again and again. */
  async function reload() {
    const turn = ++asked
    const { sort: _sort, ...filters } = page.query
    const query = JSON.stringify(filters)
    if (query !== shownFor) pages = 1
    if (pages > pagesRefreshed) return
    try {
      /** @type {Part<Row> | undefined} */
      let loaded
      for (let number = 0; number < pages && (number === 0 || loaded?.next !== undefined); number++)
        loaded = await loadAfter(loaded)
      if (turn === asked) [part, shownFor] = [loaded, query]
    } catch (error) {
      if (turn !== asked) return
      // Rows of other filters must not stand below the failure of these.
      if (query !== shownFor) part = undefined
      throw error
    }
  }

  /** @param {Part<Row> | undefined} before @returns {Promise<Part<Row>>} */
  async function loadAfter(before) {
    const loaded = await load({ search: page.query.search ?? '', cursor: before?.next })
    return { ...loaded, rows: [...(before?.rows ?? []), ...loaded.rows], total: loaded.total ?? before?.total }
  }

  async function more() {
    pages += 1
    if (pages <= pagesRefreshed) return reload()
    asked += 1
    part = await loadAfter(part)
  }

  function restart() {
    pages = 1
    return page.refresh()
  }

  /** A click on a title sorts by it, the next one the other way round. @param {string} title */
  function sortBy(title) {
    const { sort } = page.query
    page.setQuery({ sort: sort === title ? `-${title}` : title })
    void page.run(async () => {
      while (part?.next !== undefined && pages < pagesSorted) await more()
    })
  }

  const search = createSearch(page, searchLabel, restart)
  page.poll(reload, seconds)
  return {
    restart,
    rows: () => part?.rows,
    /** @param {{ label: string, columns: readonly Column<Row>[], key?: (row: Row) => unknown, empty: Content, tools?: Content }} shown */
    show({ label, columns, key, empty, tools = nothing }) {
      const { search: text = '', sort = '' } = page.query
      const order = { by: sort.replace(/^-/, ''), isDescending: sort.startsWith('-'), choose: sortBy }
      const field = search()
      return html`${field === nothing && tools === nothing ? nothing : html`<div class="tools" role="search">${field}${tools}</div>`}
      ${part === undefined ? (page.hasFailed() ? nothing : loading()) : table({ label, columns, rows: sorted(part.rows, columns, order), order, isList: true, ...(key && { key }), empty: text === '' ? empty : nothingFound(text) })}
      ${footer(part, pages <= pagesRefreshed, sort !== '', () => page.run(more))}`
    },
  }
}

/**
 * The field that searches while somebody types. @param {Page} page @param {string | undefined} label none without it
 * @param {() => unknown} restart @returns {() => Content}
 */
function createSearch(page, label, restart) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  // A view that is left must not write into the address of the next one.
  page.onClose(() => clearTimeout(timer))
  const onSearch = (/** @type {InputEvent} */ event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.target)
    clearTimeout(timer)
    timer = setTimeout(() => {
      page.setQuery({ search: value })
      void restart()
    }, searchDelayMilliseconds)
  }
  return () =>
    label === undefined
      ? nothing
      : html`<input type="search" aria-label=${label} placeholder=${label} .value=${page.query.search ?? ''} @input=${onSearch} />`
}

/**
 * @template Row
 * @param {Part<Row> | undefined} part @param {boolean} isRefreshed @param {boolean} isSorted @param {() => void} more
 */
function footer(part, isRefreshed, isSorted, more) {
  if (part === undefined || part.rows.length === 0) return nothing
  const { rows, next, total = rows.length } = part
  const words = total === rows.length ? count(total) : `${count(rows.length)} of ${count(total)}`
  return html`<div class="footer">
    <span class="muted" role="status">${words} ${total === 1 ? 'row' : 'rows'}${isRefreshed ? '' : '; so many are not refreshed'}${isSorted && next !== undefined ? '; only these are sorted: search for less to sort all' : ''}</span>
    ${next === undefined ? nothing : html`<button type="button" @click=${more}>Show more</button>`}
  </div>`
}

/** @param {string} search */
function nothingFound(search) {
  return html`<div class="empty"><p>Nothing matches “${stored(search.slice(0, 100))}”. Search for less of it.</p></div>`
}

/**
 * One part of a list of the API that takes offset and limit.
 * @param {string} path @param {Record<string, string | undefined>} filters
 * @param {{ search: string, cursor: string | number | undefined }} asked
 * @returns {Promise<Part<any>>}
 */
export async function partOf(path, filters, { search, cursor = 0 }, limit = 50) {
  const { data: rows, total_count: total = 0 } = await get(path, {
    ...filters,
    contains: search,
    offset: cursor,
    limit,
  })
  const end = Number(cursor) + rows.length
  return { rows, next: end < total ? end : undefined, total }
}
