// Usage as a CSV file, all groups of it up to a bound.
import { get } from './client.js'
import { download } from './download.js'
import { csvOf } from './export.js'

const [rowsMax, rowsPerPage] = [10_000, 1_000]

/** @param {string} path @param {{ by: string, since: string, until: string }} filter */
export async function downloadCsv(path, filter) {
  /** @type {Record<string, unknown>[]} */
  const rows = []
  for (let groups = 1; rows.length < Math.min(groups, rowsMax); ) {
    const { data, total_count: total } = await get(path, {
      ...filter,
      last_used: true,
      limit: rowsPerPage,
      offset: rows.length,
    })
    if (data.length === 0) break
    rows.push(...data)
    groups = total
  }
  const name = `usage-by-${filter.by}-${filter.since}-to-${filter.until}.csv`
  download(name, usageCsv(rows), 'text/csv')
}

/** A cost of which nothing is known is empty, not nothing. @param {readonly Record<string, any>[]} rows */
export function usageCsv(rows) {
  const known = rows.map((row) => (row.cost === 0 && row.requests_without_cost > 0 ? { ...row, cost: null } : row))
  return csvOf(known)
}
