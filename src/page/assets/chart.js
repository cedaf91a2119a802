// Stacked bars with the same numbers in a table behind them: `barChart({ label, labels, series, format })`, at most 92 bars
// and 8 series; colors repeat after that. Numbers are shown by `format`.
/** @import { Content } from '../types.ts' */
import { html, nothing, svg } from './lit-html.js'
import { count, stored } from './parts.js'

const [height, bottom] = [160, 20]

/**
 * @param {{ label: string, labels: readonly string[], series: readonly { name: string, values: readonly number[], tone?: 'ok' | 'bad' }[],
 *   format?: (value: number) => string, width?: number }} options `label` names the chart, `labels` its bars; a chart in
 *   half a column has half the `width`, and one on a narrow screen less, so that its text stays readable
 * @returns {Content}
 */
export function barChart({ label, labels, series, format = count, width: widthMax = 720 }) {
  const width = Math.min(widthMax, Math.max(innerWidth - 64, 240))
  const totals = labels.map((_, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0))
  const most = Math.max(...totals, 0)
  const top = niceTop(most)
  const step = width / Math.max(labels.length, 1)
  const every = Math.ceil(labels.length / (width / 90))
  const classOf = (/** @type {number} */ index) => series[index]?.tone ?? `s${index % 8}`
  const bar = (/** @type {number} */ index) => {
    let below = 0
    return series.map(({ name, values }, each) => {
      const value = values[index] ?? 0
      const size = (value / top) * (height - bottom - 8)
      below += size
      return value === 0
        ? nothing
        : svg`<rect class=${classOf(each)} x=${index * step + step * 0.12} y=${height - bottom - below} width=${step * 0.76} height=${Math.max(size, 0.5)}>
          <title>${`${labels[index]}: ${name} ${format(value)}`}</title></rect>`
    })
  }
  return html`<figure class="chart">
    <figcaption>
      <strong>${label}</strong>
      ${series.map(({ name }, index) => html`<span><i class=${classOf(index)}></i>${stored(name)}</span>`)}
    </figcaption>
    <svg viewBox="0 0 ${width} ${height}" role="img" aria-label=${`${label}; the table below has the numbers`}>
      <line x1="0" x2=${width} y1="8" y2="8"></line>
      <line x1="0" x2=${width} y1=${height - bottom} y2=${height - bottom}></line>
      ${most === 0 ? svg`<text x=${width / 2} y=${height / 2 - 6} text-anchor="middle">Nothing in this time</text>` : svg`<text x="0" y="20">${format(top)}</text>`}
      ${labels.map((_, index) => bar(index))}
      ${labels.map((text, index) => (index % every === 0 && index * step < width - 60 ? svg`<text x=${index * step} y=${height - 4}>${text}</text>` : nothing))}
    </svg>
    <details><summary>Numbers</summary>${numbers(label, labels, series, format)}</details>
  </figure>`
}

/**
 * @param {string} label @param {readonly string[]} labels
 * @param {readonly { name: string, values: readonly number[] }[]} series @param {(value: number) => string} format
 */
function numbers(label, labels, series, format) {
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${`Numbers: ${label}`}><table>
    <thead><tr><th scope="col">Time</th>${series.map(({ name }) => html`<th scope="col" class="end">${stored(name)}</th>`)}</tr></thead>
    <tbody>${labels.map(
      (text, index) =>
        html`<tr><th scope="row">${text}</th>${series.map(({ values }) => html`<td class="end">${format(values[index] ?? 0)}</td>`)}</tr>`,
    )}</tbody>
  </table></div>`
}

/** The next of 1, 2, 5, 10, 20 … @param {number} most */
function niceTop(most) {
  if (most <= 0) return 1
  const size = 10 ** Math.floor(Math.log10(most))
  return ([1, 2, 5, 10].find((factor) => factor * size >= most) ?? 10) * size
}
