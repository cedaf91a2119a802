// Small building blocks: stored(text), badge('ok', 'enabled'), ago(iso), at(iso), count(12345), money(0.5), code(text),
// copyButton(text), meter(used, limit), problem(error), empty(title, what to do, action), heading(title, ...actions).
/** @import { Content, Page, Tone } from '../types.ts' */
import { asProblem } from './client.js'
import { icon } from './icons.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { bothTimes, timeText } from './zone.js'

/** Control characters as their code, those that turn the direction of text above all. @param {string} text */
export function visible(text) {
  return text.replace(
    /[^\P{C}\n\t]/gu,
    (found) => `‹U+${found.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}›`,
  )
}

/** A text that somebody stored or sent: its direction cannot leak, and a long one is cut. @param {unknown} value */
export function stored(value, charactersMax = 300) {
  const text = value === null || value === undefined ? '–' : String(value)
  return html`<bdi class="stored">${visible(text.slice(0, charactersMax))}${text.length > charactersMax ? '…' : ''}</bdi>`
}

/**
 * An id, subject or URL in one line: its middle is left out where it is long, since such texts differ at their ends. The whole text is in
 * the title, and is what is copied. @param {string | null | undefined} text @param {string} label what is copied
 */
export function brief(text, label, charactersMax = 36) {
  if (!text) return html`<span class="muted">–</span>`
  if (text.length <= charactersMax) return mono(text)
  const [start, end] = [Math.ceil(charactersMax * 0.55), Math.floor(charactersMax * 0.45) - 1]
  const shown = `${visible(text.slice(0, start))}…${visible(text.slice(-end))}`
  return html`<span class="copyable"><bdi class="mono stored" title=${visible(text)}>${shown}</bdi>${copyButton(text, label)}</span>`
}

/** The same in the font of code. @param {unknown} value */
export function mono(value, charactersMax = 300) {
  return html`<span class="mono">${stored(value, charactersMax)}</span>`
}

/** A state in color, shape and word. @param {Tone} tone @param {Content} text @param {string} [title] */
export function badge(tone, text, title) {
  return html`<span class="badge ${tone}" title=${title ?? nothing}>${icon(tone)}${text}</span>`
}

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })
/** @type {[number, Intl.RelativeTimeFormatUnit][]} */
const units = [
  [31_536_000, 'year'],
  [2_592_000, 'month'],
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
]

/** How long ago, or in how long; the time on hover. @param {string | null | undefined} iso */
export function ago(iso) {
  if (!iso) return html`<span class="muted">never</span>`
  const date = new Date(iso)
  const seconds = Math.round((date.getTime() - Date.now()) / 1_000)
  const [length, unit] = units.find(([size]) => Math.abs(seconds) >= size) ?? [1, 'second']
  const text = relative.format(Math.trunc(seconds / length), unit)
  return html`<time datetime=${iso} title=${bothTimes(date)}>${text}</time>`
}

/** When it was last used; of what was never used, how old it is. @param {{ last_used_at?: string | null, created_at: string }} row */
export function lastUse({ last_used_at: used, created_at: created }) {
  return used ? ago(used) : html`<span class="muted line">never, made ${ago(created)}</span>`
}

/** The time in the zone that the navigation names; in UTC too on hover. @param {string | null | undefined} iso */
export function at(iso) {
  if (!iso) return html`<span class="muted">–</span>`
  const date = new Date(iso)
  return html`<time datetime=${iso} title=${bothTimes(date)}>${timeText(date)}</time>`
}

const counts = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })
/** @param {number} value */
export function count(value) {
  return counts.format(value)
}

const leastShown = 0.0001

/** US dollars; small amounts with more digits. @param {number} value @returns {string} */
export function money(value) {
  // What cost something is not shown as nothing.
  if (value > 0 && value < leastShown) return `<${money(leastShown)}`
  const maximumFractionDigits = value !== 0 && Math.abs(value) < 1 ? 4 : 2
  return value.toLocaleString(undefined, { style: 'currency', currency: 'USD', maximumFractionDigits })
}

/**
 * The format of amounts that stand below each other: with cents, or with as many digits as the smallest one needs to differ from zero.
 * @param {readonly number[]} amounts @param {readonly number[]} [exact] those of which no digit may be lost
 * @returns {(value: number) => string}
 */
export function moneyAlike(amounts, exact = []) {
  const smallest = Math.min(...amounts.filter((amount) => amount > 0))
  const forSmallest = smallest === Infinity || smallest >= 0.01 ? 2 : smallest >= leastShown ? 4 : 6
  // As text, a very small number has an exponent.
  const plain = exact.map((amount) => amount.toLocaleString('en-US', { maximumFractionDigits: 20 }))
  const digits = Math.max(forSmallest, ...plain.map((text) => text.split('.')[1]?.length ?? 0))
  const least = 10 ** -digits
  const format = new Intl.NumberFormat(undefined, {
    ...{ style: 'currency', currency: 'USD' },
    ...{ minimumFractionDigits: digits, maximumFractionDigits: digits },
  })
  return (value) => (value > 0 && value < least ? `<${format.format(least)}` : format.format(value))
}

/** @typedef {{ cost: number, requests_without_cost: number }} Spent */

/** Whether nothing is known of a cost, which is not the same as a cost of nothing. @param {Spent} sums */
export const isUnknown = ({ cost, requests_without_cost: unknown }) => cost === 0 && unknown > 0

/** The known cost, and how many requests have an unknown one. @param {Spent} sums */
export function spendText(sums) {
  if (isUnknown(sums)) return 'cost unknown'
  return `${money(sums.cost)}${sums.requests_without_cost === 0 ? '' : ` and ${unknownText(sums)}`}`
}

/** @param {Spent} sums */
const unknownText = ({ requests_without_cost: unknown }) => `${count(unknown)} unknown`

/** What stands for a cost that nobody knows. */
export function unknownCost(words = 'unknown') {
  const why = 'No inference server reported a cost, and no price is set for the model'
  return html`<span class="muted" title=${why}>${words}</span>`
}

/** The same for a cell. @param {Spent} sums @param {(value: number) => string} [format] that of its column */
export function spend(sums, format = money) {
  if (isUnknown(sums)) return unknownCost()
  if (sums.requests_without_cost === 0) return format(sums.cost)
  return html`${format(sums.cost)} ${unknownCost(`(${unknownText(sums)})`)}`
}

/** @param {string} text @param {string} [label] what is copied, for screen readers */
export function copyButton(text, label = 'text') {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      notify('ok', `Copied the ${label}`)
    } catch {
      notify('bad', 'The browser refused to copy: select the text and copy it by hand')
    }
  }
  return html`<button type="button" class="quiet icon" @click=${copy} aria-label=${`Copy the ${label}`} title="Copy">
    ${icon('copy')}
  </button>`
}

/** An id with its copy button. @param {string} text @param {string} [label] */
export function copyable(text, label) {
  return html`<span class="copyable">${mono(text)}${copyButton(text, label)}</span>`
}

/** A block of code with a copy button; it scrolls, also by keyboard. @param {string} text @param {string} [label] */
export function code(text, label = 'code') {
  return html`<div class="code">
    ${copyButton(text, label)}
    <pre tabindex="0" role="group" aria-label=${label}><code dir="ltr">${visible(text)}</code></pre>
  </div>`
}

/** How much of a limit is used, as bar and words. @param {number} used @param {number | null} limit @param {Content} words */
export function meter(used, limit, words) {
  if (limit === null) return html`<span class="meter">${words}</span>`
  const share = limit > 0 ? Math.min(used / limit, 1) : 1
  const tone = share >= 1 ? 'bad' : share >= 0.8 ? 'warn' : 'ok'
  return html`<span class="meter"
    ><svg class=${tone} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" width="100" height="6"></rect>
      <rect width=${share * 100} height="6"></rect></svg
    ><span>${words} <span class="muted">(${count(Math.floor((limit > 0 ? used / limit : 1) * 100))}%)</span></span></span
  >`
}

/** A failure as a sentence with its request id. @param {unknown} error */
export function problem(error) {
  const { message, requestId } = asProblem(error)
  return callout(
    'bad',
    html`${stored(message, 2_000)}${/[.!?]$/.test(message) ? '' : '.'}
    ${requestId === null ? nothing : html`<span class="muted">Request id ${mono(requestId)}</span>`}`,
    true,
  )
}

/** A box with something to know. @param {Tone} tone @param {Content} content @param {boolean} [isAlert] */
export function callout(tone, content, isAlert = false) {
  return html`<div class="callout ${tone}" role=${isAlert ? 'alert' : nothing}>${icon(tone)}<div>${content}</div></div>`
}

/** What a form shows to who may not save it. @param {Pick<Page, 'session'>} page @param {import('../types.ts').Act} act */
export function mayNot({ session: { role, needs } }, act) {
  const needed = needs[act] ?? 'admin'
  return callout(
    'info',
    `The role ${role} may not do this. It needs the role ${needed}${needed === 'admin' ? '' : ' or a stronger one'}: sign in with a management key that has it.`,
  )
}

/** What stands where nothing is yet: says what to do. @param {string} title @param {Content} what @param {Content} [action] */
export function empty(title, what, action) {
  return html`<div class="empty"><h2>${title}</h2><p>${what}</p>${action}</div>`
}

/** The heading of a section with its buttons. @param {Content} title @param {...Content} actions */
export function heading(title, ...actions) {
  return html`<div class="heading"><h2>${title}</h2><div class="actions">${actions}</div></div>`
}

/** A button that does something and shows its failure. @param {Page} page @param {string} text @param {() => Promise<unknown>} act @param {string} [label] */
export function button(page, text, act, kind = '', label) {
  const run = () => page.run(async () => void (await act()))
  return html`<button type="button" class=${kind} aria-label=${label ?? nothing} @click=${run}>${text}</button>`
}

/** @param {string} label @param {string} value @param {readonly (readonly [string, string])[]} options @param {(value: string) => void} choose */
export function select(label, value, options, choose) {
  const read = (/** @type {Event} */ event) => choose(/** @type {HTMLSelectElement} */ (event.target).value)
  return html`<select aria-label=${label} @change=${read}>
    ${options.map(([key, text]) => html`<option value=${key} ?selected=${key === value} .selected=${key === value}>${text}</option>`)}
  </select>`
}

/** Names with values, aligned. @param {readonly (readonly [string, Content])[]} rows */
export function facts(rows) {
  return html`<dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

export function loading() {
  return html`<p class="loading muted" role="status">Loading…</p>`
}

/** JSON to read. @param {unknown} value */
export function json(value) {
  return JSON.stringify(value, null, 2)
}
