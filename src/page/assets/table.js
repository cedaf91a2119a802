// Tables. `table({ label, columns, rows, empty })` shows rows. `createListing(page, { load })` adds search, paging and
// refreshing: `load({ search, cursor })` returns `{ rows, next, total }`, `next` being the cursor of the next page; show it
// with `listing.show({ label, columns, empty })`, and run `listing.restart()` when a filter changes.
/** @import { Column, Content, Page } from '../types.ts' */
import { get } from './client.js'
import { html, nothing } from './lit-html.js'
import { count, loading, problem, stored } from './parts.js'

/**
 * A table that becomes a list of cards where it is narrow.
 * @template Row
 * @param {{ label: string, columns: readonly Column<Row>[], rows: readonly Row[], empty?: Content }} options
 */
export function table({ label, columns, rows, empty = nothing }) {
  if (rows.length === 0) return empty
  return html`<div class="table">
    <table role="table" aria-label=${label}>
      <thead role="rowgroup">
        <tr role="row">
          ${columns.map(({ title, align }) => html`<th scope="col" role="columnheader" class=${align ?? ''}>${title === '' ? html`<span class="hidden">Actions</span>` : title}</th>`)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map((row) => html`<tr role="row">${columns.map((column) => cell(column, row))}</tr>`)}
      </tbody>
    </table>
  </div>`
}

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
  /** @type {unknown} */
  let failure
  let pages = 1
  let asked = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer

  /** Every page that is shown, unless there are too many to ask for again and again. */
  async function reload() {
    const turn = ++asked
    if (pages > pagesRefreshed) return
    try {
      /** @type {Part<Row> | undefined} */
      let loaded
      for (let number = 0; number < pages && (number === 0 || loaded?.next !== undefined); number++)
        loaded = await loadAfter(loaded)
      if (turn === asked) [part, failure] = [loaded, undefined]
    } catch (error) {
      if (turn === asked) failure = error
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

  async function restart() {
    pages = 1
    await reload()
    page.update()
  }

  const onSearch = (/** @type {InputEvent} */ event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.target)
    clearTimeout(timer)
    timer = setTimeout(() => {
      page.setQuery({ search: value })
      void restart()
    }, searchDelayMilliseconds)
  }

  page.poll(reload, seconds)
  return {
    restart,
    rows: () => part?.rows,
    /** @param {{ label: string, columns: readonly Column<Row>[], empty: Content, tools?: Content, more?: Content }} shown */
    show({ label, columns, empty, tools = nothing }) {
      const search = page.query.search ?? ''
      const field =
        searchLabel === undefined
          ? nothing
          : html`<input type="search" aria-label=${searchLabel} placeholder=${searchLabel} .value=${search} @input=${onSearch} />`
      const hasTools = searchLabel !== undefined || tools !== nothing
      return html`${hasTools ? html`<div class="tools" role="search">${field}${tools}</div>` : nothing}
      ${failure === undefined ? nothing : problem(failure)}
      ${part === undefined ? (failure === undefined ? loading() : nothing) : table({ label, columns, rows: part.rows, empty: search === '' ? empty : nothingFound(search) })}
      ${footer(part, pages <= pagesRefreshed, () => page.run(more))}`
    },
  }
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
