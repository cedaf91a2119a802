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

/**
 * A table that becomes a list of cards where it is narrow.
 * @template Row
 * @param {{ label: string, columns: readonly Column<Row>[], rows: readonly Row[], key?: (row: Row) => unknown, empty?: Content }} options
 *   `key` is the `id` of a row where it has one, otherwise all that the row says
 */
export function table({ label, columns, rows, key = identity, empty = nothing }) {
  if (rows.length === 0) return empty
  return html`<div class="table">
    <table role="table" aria-label=${label}>
      <thead role="rowgroup">
        <tr role="row">
          ${columns.map(({ title, align }) => html`<th scope="col" role="columnheader" class=${align ?? ''}>${title === '' ? html`<span class="hidden">Actions</span>` : title}</th>`)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${keyed(rows, key, (row) => html`<tr role="row">${columns.map((column) => cell(column, row))}</tr>`)}
      </tbody>
    </table>
  </div>`
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
    const query = JSON.stringify(page.query)
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

  const search = createSearch(page, searchLabel, restart)
  page.poll(reload, seconds)
  return {
    restart,
    rows: () => part?.rows,
    /** @param {{ label: string, columns: readonly Column<Row>[], key?: (row: Row) => unknown, empty: Content, tools?: Content }} shown */
    show({ label, columns, key, empty, tools = nothing }) {
      const { search: text = '' } = page.query
      const field = search()
      return html`${field === nothing && tools === nothing ? nothing : html`<div class="tools" role="search">${field}${tools}</div>`}
      ${part === undefined ? (page.hasFailed() ? nothing : loading()) : table({ label, columns, rows: part.rows, ...(key && { key }), empty: text === '' ? empty : nothingFound(text) })}
      ${footer(part, pages <= pagesRefreshed, () => page.run(more))}`
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
 * @param {Part<Row> | undefined} part @param {boolean} isRefreshed @param {() => void} more
 */
function footer(part, isRefreshed, more) {
  if (part === undefined || part.rows.length === 0) return nothing
  const { rows, next, total = rows.length } = part
  const words = total === rows.length ? count(total) : `${count(rows.length)} of ${count(total)}`
  return html`<div class="footer">
    <span class="muted" role="status">${words} ${total === 1 ? 'row' : 'rows'}${isRefreshed ? '' : '; so many are not refreshed'}</span>
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
