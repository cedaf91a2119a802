// What a filtered list has, as a file: CSV (RFC 4180) or JSON, with the fields of the API.
/** @import { Page } from '../types.ts' */
/** @import { Asked, Part } from './listing.js' */
import { download } from './download.js'
import { html } from './lit-html.js'
import { notify } from './notice.js'
import { count } from './parts.js'

const [rowsMax, rowsPerRead] = [10_000, 100]

/**
 * @template Row
 * @param {Page} page @param {string} name of the file @param {(asked: Asked) => Promise<Part<Row>>} load
 */
export function exportMenu(page, name, load) {
  const save = (/** @type {'csv' | 'json'} */ form) => () =>
    page.run(async () => {
      const { rows, isWhole } = await readAll(load, page.query.search ?? '')
      const file = `${name}-${new Date().toISOString().slice(0, 10)}.${form}`
      if (form === 'csv') download(file, csvOf(rows), 'text/csv')
      else download(file, `${JSON.stringify(rows, null, 2)}\n`, 'application/json')
      if (!isWhole) notify('info', `The file has the first ${count(rows.length)} rows: filter for less to get all`)
    })
  return html`<span class="exports"><span class="muted small">Export</span>
    <button type="button" class="quiet" aria-label="Export as CSV" @click=${save('csv')}>CSV</button>
    <button type="button" class="quiet" aria-label="Export as JSON" @click=${save('json')}>JSON</button></span>`
}

/** @template Row @param {(asked: Asked) => Promise<Part<Row>>} load @param {string} search */
async function readAll(load, search) {
  /** @type {Row[]} */
  const rows = []
  /** @type {string | number | undefined} */
  let cursor
  do {
    const part = await load({ search, cursor, limit: rowsPerRead })
    rows.push(...part.rows)
    cursor = part.next
  } while (cursor !== undefined && rows.length < rowsMax)
  return { rows: rows.slice(0, rowsMax), isWhole: cursor === undefined && rows.length <= rowsMax }
}

/** All fields that a row has; what is no text or number is JSON. @param {readonly unknown[]} rows */
export function csvOf(rows) {
  const objects = /** @type {readonly Record<string, unknown>[]} */ (rows)
  const names = [...new Set(objects.flatMap((row) => Object.keys(row)))]
  return [names, ...objects.map((row) => names.map((name) => row[name]))]
    .map((line) => `${line.map(cell).join(',')}\r\n`)
    .join('')
}

/** A spreadsheet must not take a stored text for a formula, not even one that ends cells at semicolons. @param {unknown} value */
function cell(value) {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const stored = typeof value === 'object' ? JSON.stringify(value) : String(value)
  const text = stored.replace(/(?<=(?:^|[,;\t\r\n])[\s"']*)[=+\-@\t\r＝＋－＠]/g, "'$&")
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
