// Usage as a CSV file, all groups of it up to a bound.
import { get, segment } from './client.js'
import { download } from './download.js'
import { csvOf } from './export.js'

const [rowsMax, rowsPerPage] = [10_000, 1_000]

/** @typedef {{ by: string, since: string, until: string, key?: string | undefined, policy?: string | undefined }} Filter */

/** @param {string} path @param {Filter} filter */
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
  const name = `usage${await ownerOf(filter)}-by-${filter.by}-${filter.since}-to-${filter.until}.csv`
  download(name, usageCsv(rows), 'text/csv')
}

/** Whose usage it is, as part of a file name. @param {Filter} filter */
async function ownerOf({ key, policy }) {
  if (key === undefined && policy === undefined) return ''
  const path = key === undefined ? `/workload-identity/policies/${segment(policy ?? '')}` : `/keys/${segment(key)}`
  const { data } = await get(path)
  return `-of-${data.name.replaceAll(/[^\w.-]+/g, '-').slice(0, 60)}`
}

/** A cost of which nothing is known is empty, not nothing. @param {readonly Record<string, any>[]} rows */
export function usageCsv(rows) {
  const known = rows.map((row) => (row.cost === 0 && row.requests_without_cost > 0 ? { ...row, cost: null } : row))
  return csvOf(known)
}
