// Usage as a CSV file (RFC 4180), all groups of it up to a bound.
import { get } from './client.js'
import { download } from './download.js'

const [rowsMax, rowsPerPage] = [10_000, 1_000]
const sums = ['requests', 'prompt_tokens', 'completion_tokens', 'total_tokens', 'cost']

/** @param {string} path @param {{ by: string, since: string, until: string }} filter @param {readonly string[]} names the fields that name a group */
export async function downloadCsv(path, filter, names) {
  /** @type {Record<string, unknown>[]} */
  const rows = []
  for (let groups = 1; rows.length < Math.min(groups, rowsMax); ) {
    const { data, total_count: total } = await get(path, { ...filter, limit: rowsPerPage, offset: rows.length })
    if (data.length === 0) break
    rows.push(...data)
    groups = total
  }
  const fields = [...names, ...sums]
  const text = [fields, ...rows.map((row) => fields.map((name) => row[name]))]
    .map((line) => `${line.map(cell).join(',')}\r\n`)
    .join('')
  download(`usage-by-${filter.by}-${filter.since}-to-${filter.until}.csv`, text, 'text/csv')
}

/** A spreadsheet must not take a stored text for a formula, not even one that ends cells at semicolons. @param {unknown} value */
function cell(value) {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number') return String(value)
  const text = String(value).replace(/(?<=(?:^|[,;\t\r\n])[\s"']*)[=+\-@\t\r＝＋－＠]/g, "'$&")
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
