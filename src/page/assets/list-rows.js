// The rows of a list as they are read: page by page, again while they are shown, and what is newer than they.
/** @import { Page } from '../types.ts' */
/** @import { Asked, Listing, Part } from './listing.js' */
import { rowsKept } from './router.js'

export const rowsPerPage = 50
const pagesRefreshed = 4
/** So many rows are loaded to sort them. */
const pagesSorted = 10
/** More are not kept: a click loads the list again. */
export const newerMax = 500

/** @template Row @param {Page} page @param {Pick<Listing<Row>, 'load' | 'newer'>} listing */
export function createRows(page, { load, newer }) {
  /** @type {Part<Row> | undefined} */
  let part
  /** @type {Row[]} */
  let waiting = []
  /** The query of the rows that are shown. */
  let shownFor = ''
  let pages = Math.min(Math.max(Math.ceil(rowsKept() / rowsPerPage), 1), pagesRefreshed)
  let asked = 0

  async function poll() {
    const [newest] = [...waiting, ...(part?.rows ?? [])]
    if (newer === undefined || newest === undefined || filtersIn(page) !== shownFor) return reload()
    if (waiting.length >= newerMax) return
    const turn = ++asked
    const found = await newer(newest)
    if (turn === asked) waiting.unshift(...found)
  }

  /** Every page that is shown, unless there are too many to ask for again and again. */
  async function reload() {
    const turn = ++asked
    const query = filtersIn(page)
    if (shownFor !== '' && query !== shownFor) pages = 1
    if (pages > pagesRefreshed) return
    try {
      /** @type {Part<Row> | undefined} */
      let loaded
      for (let number = 0; number < pages && (number === 0 || loaded?.next !== undefined); number++)
        loaded = await readAfter(load, page, loaded)
      if (turn === asked) [part, shownFor, waiting] = [loaded, query, []]
    } catch (error) {
      if (turn !== asked) return
      // Rows of other filters must not stand below the failure of these.
      if (query !== shownFor) part = undefined
      throw error
    }
  }

  async function more() {
    pages += 1
    if (pages <= pagesRefreshed && newer === undefined) return reload()
    asked += 1
    part = await readAfter(load, page, part)
  }

  function restart() {
    pages = 1
    shownFor = ''
    return page.refresh()
  }

  /** Those that wait, on top; many may have left a gap. */
  function showNewer() {
    if (part === undefined || waiting.length >= rowsPerPage) return void page.run(restart)
    part = { ...part, rows: [...waiting, ...part.rows] }
    waiting = []
    page.update()
  }

  const readToSort = async () => {
    while (part?.next !== undefined && pages < pagesSorted) await more()
  }

  return {
    part: () => part,
    waiting: () => waiting,
    isRefreshed: () => newer !== undefined || pages <= pagesRefreshed,
    ...{ poll, more, restart, showNewer, readToSort },
  }
}

/** Sorting reads nothing else. @param {Page} page */
function filtersIn({ query: { sort: _sort, ...filters } }) {
  return JSON.stringify(filters)
}

/**
 * @template Row
 * @param {Listing<Row>['load']} load @param {Page} page @param {Part<Row> | undefined} before @returns {Promise<Part<Row>>}
 */
async function readAfter(load, { query }, before) {
  const loaded = await load({ search: query.search ?? '', cursor: before?.next, limit: rowsPerPage })
  return { ...loaded, rows: [...(before?.rows ?? []), ...loaded.rows], total: loaded.total ?? before?.total }
}
