// Lists that are searched, filtered, paged and refreshed. `createListing(page, { load })` does it: `load({ search, cursor, limit })` returns
// `{ rows, next, total }`, `next` being the cursor of the next page; show it with `listing.show({ label, columns, empty })`. With `newer`, the
// list is of what happens, newest first: what is new is counted and shown when somebody asks, so that nothing moves while they read.
/** @import { Column, Content, Page } from '../types.ts' */
/** @import { BulkAction } from './bulk.js' */
/** @import { Filter } from './filters.js' */
import { createSelection } from './bulk.js'
import { get } from './client.js'
import { exportMenu } from './export.js'
import { createFilters } from './filters.js'
import { createRows, newerMax } from './list-rows.js'
import { html, nothing } from './lit-html.js'
import { count, loading, stored } from './parts.js'
import { sorted, table } from './table.js'

const searchDelayMilliseconds = 80

/**
 * @template Row
 * @typedef {{ rows: Row[], next?: string | number | undefined, total?: number | undefined }} Part
 */
/** @typedef {{ search: string, cursor: string | number | undefined, limit: number }} Asked */

/**
 * @template Row
 * @typedef {object} Listing
 * @property {(asked: Asked) => Promise<Part<Row>>} load
 * @property {(newest: Row) => Promise<Row[]>} [newer] the rows after the newest one, newest first
 * @property {string} [search] names what the search field finds
 * @property {number} [seconds]
 * @property {readonly Filter[]} [filters]
 * @property {string} [file] the name of an export
 */

/** @template Row @param {Page} page @param {Listing<Row>} listing */
export function createListing(page, { load, newer, search: searchLabel, seconds, filters = [], file }) {
  const read = createRows(page, { load, newer })
  const { restart } = read

  /** A click on a title sorts by it, the next one the other way round. @param {string} title */
  function sortBy(title) {
    const { sort } = page.query
    page.setQuery({ sort: sort === title ? `-${title}` : title })
    void page.run(read.readToSort)
  }

  const search = createSearch(page, searchLabel, restart)
  const filterBar = createFilters(page, filters, restart)
  const selection = createSelection(page)
  page.poll(read.poll, seconds)
  return {
    restart,
    rows: () => read.part()?.rows,
    /**
     * @param {{ label: string, columns: readonly Column<Row>[], key?: (row: Row) => unknown, empty: Content, tools?: Content,
     *   name?: (row: Row) => string, bulk?: readonly BulkAction<Row>[] }} shown `name` names a row where several are chosen for `bulk`
     */
    show({ label, columns, key, empty, tools = nothing, name = () => '', bulk = [] }) {
      const { search: text = '', sort = '' } = page.query
      const order = { by: sort.replace(/^-/, ''), isDescending: sort.startsWith('-'), choose: sortBy }
      const [part, waiting] = [read.part(), read.waiting()]
      const rows = part === undefined ? [] : sorted(part.rows, columns, order)
      const exporting = file === undefined || rows.length === 0 ? nothing : exportMenu(page, file, load)
      const bars = [search(), filterBar.show(), exporting, tools]
      const keyOf = key ?? ((row) => /** @type {any} */ (row)?.id ?? JSON.stringify(row))
      const choosing = bulk.length === 0 ? undefined : selection.of(rows, keyOf, name)
      const isFiltered = text !== '' || filterBar.isSet()
      return html`${bars.every((each) => each === nothing) ? nothing : html`<div class="tools" role="search">${bars}</div>`}
      ${choosing === undefined ? nothing : choosing.bar(bulk)}
      ${newerBar(waiting.length, read.showNewer)}
      ${part === undefined ? (page.hasFailed() ? nothing : loading()) : table({ label, columns, rows, order, isList: true, key: keyOf, choosing, empty: isFiltered ? nothingFound(text, filterBar.clear) : empty })}
      ${footer(part, read.isRefreshed(), sort !== '', () => page.run(read.more))}`
    },
  }
}

/** @param {number} number @param {() => void} show */
function newerBar(number, show) {
  if (number === 0) return nothing
  const words = `${count(number)}${number >= newerMax ? ' or more' : ''} new: show`
  return html`<p class="newer" role="status"><button type="button" @click=${show}>${words}</button></p>`
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
  /** The browser empties the field first. */
  const leave = (/** @type {KeyboardEvent} */ { key, target }) => {
    const input = /** @type {HTMLInputElement} */ (target)
    if (key === 'Escape' && input.value === '') input.blur()
  }
  return () =>
    label === undefined
      ? nothing
      : html`<input type="search" aria-label=${label} placeholder=${label} .value=${page.query.search ?? ''} @input=${onSearch} @keydown=${leave} />`
}

/**
 * @template Row
 * @param {Part<Row> | undefined} part @param {boolean} isRefreshed @param {boolean} isSorted @param {() => void} more
 */
function footer(part, isRefreshed, isSorted, more) {
  if (part === undefined || part.rows.length === 0) return nothing
  const { rows, next, total = rows.length } = part
  const words = total === rows.length ? count(total) : `${count(rows.length)} of ${count(total)}`
  return html`<div class="footer" data-rows=${rows.length}>
    <span class="muted" role="status">${words} ${total === 1 ? 'row' : 'rows'}${isRefreshed ? '' : '; so many are not refreshed'}${isSorted && next !== undefined ? '; only these are sorted: search for less to sort all' : ''}</span>
    ${next === undefined ? nothing : html`<button type="button" @click=${more}>Show more</button>`}
  </div>`
}

/** @param {string} search @param {() => void} clear */
function nothingFound(search, clear) {
  const what = search === '' ? 'these filters' : html`“${stored(search.slice(0, 100))}”`
  return html`<div class="empty"><p>Nothing matches ${what}.</p><button type="button" @click=${clear}>Clear search and filters</button></div>`
}

/**
 * One part of a list of the API that takes offset and limit.
 * @param {string} path @param {Record<string, string | boolean | undefined>} filters @param {Asked} asked
 * @returns {Promise<Part<any>>}
 */
export async function partOf(path, filters, { search, cursor = 0, limit }) {
  const { data: rows, total_count: total = 0 } = await get(path, {
    ...filters,
    contains: search,
    offset: cursor,
    limit,
  })
  const end = Number(cursor) + rows.length
  return { rows, next: end < total ? end : undefined, total }
}
