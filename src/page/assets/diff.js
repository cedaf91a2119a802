// What changed: `fieldDiff(before, after)` shows the fields of two objects that differ; `lineDiff(before, after)` shows two
// texts line by line. Signs and words say what was removed and added, not the color alone.
import { html, nothing } from './lit-html.js'
import { stored } from './parts.js'
import { table } from './table.js'
import { readable } from './words.js'

/** @param {unknown} value */
const show = (value) =>
  value === undefined || value === null ? '–' : typeof value === 'string' ? value : JSON.stringify(value)

/**
 * @param {Record<string, unknown> | null | undefined} before null for what was created
 * @param {Record<string, unknown> | null | undefined} after null for what was deleted
 */
export function fieldDiff(before, after, labels = /** @type {[string, string]} */ (['Before', 'After'])) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  const rows = names.filter((name) => show(before?.[name]) !== show(after?.[name]))
  const value =
    (/** @type {Record<string, unknown> | null | undefined} */ side, /** @type {'del' | 'ins'} */ sign) =>
    (/** @type {string} */ name) => {
      const text = show(readable(name, side?.[name])).slice(0, 2_000)
      return sign === 'del' ? html`<del>${stored(text, 2_000)}</del>` : html`<ins>${stored(text, 2_000)}</ins>`
    }
  return table({
    label: 'Changed fields',
    columns: [
      { title: 'Field', isHeader: true, cell: (name) => html`<span class="mono">${name}</span>` },
      { title: labels[0], cell: value(before, 'del') },
      { title: labels[1], cell: value(after, 'ins') },
    ],
    rows,
    empty: html`<p class="muted">No field differs.</p>`,
  })
}

const linesMax = 1_000

/** @param {string} before @param {string} after */
export function lineDiff(before, after) {
  const [old, now] = [before.split('\n').slice(0, linesMax), after.split('\n').slice(0, linesMax)]
  return html`<pre class="diff" tabindex="0" role="group" aria-label="Changed lines">${compare(old, now).map(
    ([sign, line]) =>
      sign === '-'
        ? html`<del>- ${line}\n</del>`
        : sign === '+'
          ? html`<ins>+ ${line}\n</ins>`
          : html`<span>  ${line}\n</span>`,
  )}${before.length + after.length === 0 ? nothing : ''}</pre>`
}

/** The longest common lines. @param {string[]} old @param {string[]} now @returns {[' ' | '-' | '+', string][]} */
function compare(old, now) {
  const width = now.length + 1
  const common = new Uint16Array((old.length + 1) * width)
  const lengthAt = (/** @type {number} */ i, /** @type {number} */ j) => common[i * width + j] ?? 0
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      common[i * width + j] =
        old[i] === now[j] ? lengthAt(i + 1, j + 1) + 1 : Math.max(lengthAt(i + 1, j), lengthAt(i, j + 1))
  /** @type {[' ' | '-' | '+', string][]} */
  const lines = []
  let [i, j] = [0, 0]
  while (i < old.length || j < now.length) {
    const [one, other] = [old[i], now[j]]
    if (one !== undefined && one === other) {
      lines.push([' ', one])
      i++
      j++
    } else if (one !== undefined && (other === undefined || lengthAt(i + 1, j) >= lengthAt(i, j + 1))) {
      lines.push(['-', one])
      i++
    } else if (other !== undefined) {
      lines.push(['+', other])
      j++
    }
  }
  return lines
}
