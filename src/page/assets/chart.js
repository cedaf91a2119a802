// Stacked bars with the same numbers in a table behind them: `barChart({ label, labels, series, format })`, at most 92 bars
// and 8 series; colors repeat after that. A value of null is unknown. The pointer or the arrow keys show the numbers of a bar.
/** @import { Content } from '../types.ts' */
import { labeledBars, niceStep } from './chart-scale.js'
import { html, nothing, render, svg } from './lit-html.js'
import { count, stored } from './parts.js'

/**
 * @typedef {{ name: string, values: readonly (number | null)[], tone?: 'ok' | 'bad' | 'rest', choose?: () => void }} Series
 *   `choose` is called when somebody clicks the name of the series
 * @typedef {{ label: string, labels: readonly string[], series: readonly Series[], format?: (value: number) => string, choose?: (index: number) => void }} Chart
 *   `label` names the chart, `labels` its bars; `choose` is called with the bar that somebody clicks, or chooses with Enter
 */

/** @param {Chart} chart @returns {Content} */
export function barChart({ label, labels, series, format = count, choose }) {
  const totals = labels.map((_, index) => sumAt(series, index))
  const most = Math.max(...totals, 0)
  // Half a request is no number of requests.
  const step = niceStep(most, format === count)
  const top = Math.max(Math.ceil(most / step), 1) * step
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => top - index * step)
  const formatKnown = (/** @type {number | null} */ value) => (value === null ? 'unknown' : format(value))
  const chart = { labels, series, format: formatKnown, choose }
  return html`<figure class="chart">
    <figcaption>
      <strong>${label}</strong>
      <span class="legend">${series.length < 2 ? nothing : series.map(legendOf)}</span>
    </figcaption>
    <div class="plot">
      <div class="scale" aria-hidden="true">${ticks.map((value) => html`<span>${format(value)}</span>`)}</div>
      <div class="bars">
        <svg viewBox="0 0 ${labels.length} 100" preserveAspectRatio="none" role="img" tabindex="0" class=${choose === undefined ? '' : 'chooses'}
          aria-label=${`${label}; the table below has the numbers`} @click=${(/** @type {MouseEvent} */ event) => choose?.(indexAt(event, labels.length))}
          @pointermove=${(/** @type {PointerEvent} */ event) => showCard(event, chart, indexAt(event, labels.length))}
          @pointerleave=${hideCard} @blur=${hideCard} @keydown=${(/** @type {KeyboardEvent} */ event) => moveCard(event, chart)}>
          ${ticks.map((_, index) => svg`<line x1="0" x2=${labels.length} y1=${(index * 100) / (ticks.length - 1)} y2=${(index * 100) / (ticks.length - 1)}></line>`)}
          ${labels.map((_, index) => bar(series, index, top))}
        </svg>
        ${most === 0 ? html`<p class="muted">Nothing in this time</p>` : nothing}
        <div class="card-at" role="status"></div>
      </div>
      <div class="times" aria-hidden="true">${timesOf(labels)}</div>
    </div>
    <details><summary>Numbers</summary>${numbers(label, chart)}</details>
  </figure>`
}

/** @param {readonly Series[]} series @param {number} index */
const sumAt = (series, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0)

/** @param {Series} one @param {number} index */
const classOf = ({ tone }, index) => tone ?? `s${index % 8}`

/** @param {Series} one @param {number} index @returns {Content} */
function legendOf(one, index) {
  const text = html`<i class=${classOf(one, index)}></i>${stored(one.name, 60)}`
  return one.choose === undefined
    ? html`<span>${text}</span>`
    : html`<button type="button" class="quiet" title=${`Only ${one.name}`} @click=${one.choose}>${text}</button>`
}

/** @param {readonly Series[]} series @param {number} index @param {number} top */
function bar(series, index, top) {
  let below = 0
  return series.map((one, each) => {
    const size = ((one.values[index] ?? 0) / top) * 100
    if (size === 0) return nothing
    below += size
    return svg`<rect class=${classOf(one, each)} x=${index + 0.12} y=${100 - below} width="0.76" height=${Math.max(size, 0.5)}></rect>`
  })
}

/** Each begins where its bar does. @param {readonly string[]} labels */
function timesOf(labels) {
  return labeledBars(labels.length).map(
    (index) => html`<span .style=${`--at: ${(index / labels.length) * 100}%`}>${labels[index]}</span>`,
  )
}

/** @typedef {{ labels: readonly string[], series: readonly Series[], format: (value: number | null) => string, choose: ((index: number) => void) | undefined }} Drawn */

/** @param {MouseEvent} event @param {number} bars */
function indexAt({ currentTarget, clientX }, bars) {
  const { left, width } = /** @type {Element} */ (currentTarget).getBoundingClientRect()
  return Math.min(bars - 1, Math.max(0, Math.floor(((clientX - left) / width) * bars)))
}

/** @param {Event} event @param {Drawn} drawn @param {number} index */
function showCard({ currentTarget }, { labels, series, format }, index) {
  const drawing = /** @type {SVGElement} */ (currentTarget)
  const card = /** @type {HTMLElement} */ (drawing.parentElement?.querySelector('.card-at'))
  drawing.dataset.index = String(index)
  const share = (index + 0.5) / labels.length
  card.style.setProperty('--at', `${share * 100}%`)
  card.classList.toggle('before', share > 0.5)
  const known = series.filter(({ values }) => values[index] !== 0)
  const total =
    series.length > 1 ? html`<div class="sum"><dt>Total</dt><dd>${format(sumAt(series, index))}</dd></div>` : nothing
  const rows = known.map(
    (one) =>
      html`<div><dt><i class=${classOf(one, series.indexOf(one))}></i>${stored(one.name, 60)}</dt><dd>${format(one.values[index] ?? null)}</dd></div>`,
  )
  render(html`<strong>${labels[index]}</strong><dl>${rows}${total}</dl>`, card)
}

/** @param {Event} event */
function hideCard({ currentTarget }) {
  const drawing = /** @type {SVGElement} */ (currentTarget)
  delete drawing.dataset.index
  render(nothing, /** @type {HTMLElement} */ (drawing.parentElement?.querySelector('.card-at')))
}

/** @param {KeyboardEvent} event @param {Drawn} drawn */
function moveCard(event, drawn) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
  if (event.key === 'Escape') return hideCard(event)
  const before = /** @type {SVGElement} */ (event.currentTarget).dataset.index
  if (event.key === 'Enter' && before !== undefined) return drawn.choose?.(Number(before))
  if (step === undefined) return
  event.preventDefault()
  const bars = drawn.labels.length
  const index = before === undefined ? (step > 0 ? 0 : bars - 1) : Number(before) + step
  if (index >= 0 && index < bars) showCard(event, drawn, index)
}

/** @param {string} label @param {Drawn} drawn */
function numbers(label, { labels, series, format }) {
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${`Numbers: ${label}`}><table>
    <thead><tr><th scope="col">Time</th>${series.map(({ name }) => html`<th scope="col" class="end">${stored(name)}</th>`)}</tr></thead>
    <tbody>${labels.map(
      (text, index) =>
        html`<tr><th scope="row">${text}</th>${series.map(({ values }) => html`<td class="end">${format(values[index] ?? null)}</td>`)}</tr>`,
    )}</tbody>
  </table></div>`
}
