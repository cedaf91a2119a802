// Amounts of budgets on the page: limits as rows that somebody types, the windows that the API takes, and both in words.
/** @import { Budget } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page } from '../types.ts' */
import { field } from './form.js'
import { html, nothing } from './lit-html.js'
import { numberOf, numberProblem, numberText } from './number.js'
import { at, callout, count, meter, moneyAlike } from './parts.js'
import { href } from './router.js'

/** @typedef {Budget['windows'][number]} Window */
/** @typedef {NonNullable<Budget['spent']>[number]} Spent */
/** @typedef {{ per: Window['per'], unit: Spent['unit'], amount: string }} Limit */
/** @typedef {Limit & { value: string }} Override */

/** @type {readonly (readonly [Spent['unit'], string])[]} */
export const units = [
  ['usd', 'US dollars'],
  ['tokens', 'tokens'],
  ['requests', 'requests'],
]
/** @type {readonly (readonly [Window['per'], string])[]} */
export const periods = [
  ['hour', 'an hour'],
  ['day', 'a day'],
  ['week', 'a week'],
  ['month', 'a month'],
  ['lifetime', 'in all'],
]
/** @type {ReadonlyMap<string, string>} */
const periodWords = new Map(periods)
/** @type {ReadonlyMap<string, string>} */
const unitWords = new Map(units)

/** @type {() => Limit} */
export const newLimit = () => ({ per: 'month', unit: 'usd', amount: '' })

/** @param {readonly Window[]} windows @returns {Limit[]} */
export function limitsOf(windows) {
  return windows.flatMap((window) =>
    units.flatMap(([unit]) =>
      window[unit] === undefined ? [] : [{ per: window.per, unit, amount: numberText(window[unit]) }],
    ),
  )
}

/** As somebody typed them. @param {readonly Limit[]} limits */
export const limitsText = (limits) =>
  limits.map(({ amount, unit, per }) => `${amount} ${unitWords.get(unit)} ${periodWords.get(per)}`).join(', ')

/** @param {readonly Override[]} rows */
export const overridesText = (rows) => rows.map((row) => `${row.value}: ${limitsText([row])}`).join('; ')

/** Rows of one period become one window. An amount that is no number stays a text, which the server refuses. @param {readonly Limit[]} limits */
export function windowsOf(limits) {
  return [...Map.groupBy(limits, ({ per }) => per)].map(([per, rows]) => ({
    per,
    ...Object.fromEntries(rows.map(({ unit, amount }) => [unit, numberOf(amount, { isWhole: unit !== 'usd' }) ?? ''])),
  }))
}

/** Whether its amount is a number. @param {Limit} limit */
export function isComplete({ amount, unit }) {
  return numberProblem(amount, { isWhole: unit !== 'usd', isRequired: true }) === undefined
}

/** @param {Budget['overrides']} overrides @returns {Override[]} */
export function overrideRows(overrides) {
  return Object.entries(overrides ?? {}).flatMap(([value, windows]) =>
    limitsOf(windows).map((limit) => ({ value, ...limit })),
  )
}

/** @param {readonly Override[]} rows */
export function overridesOf(rows) {
  if (rows.length === 0) return null
  const byValue = Map.groupBy(rows, ({ value }) => value.trim())
  return Object.fromEntries([...byValue].map(([value, limits]) => [value, windowsOf(limits)]))
}

/**
 * One row of a form. `name` is unique in it.
 * @param {string} name @param {Limit} limit @param {(change: Partial<Limit>) => void} change @param {() => void} remove @param {Content} [before]
 */
export function limitRow(name, limit, change, remove, before = nothing) {
  const { per, unit, amount } = limit
  const isBegun = amount.trim() === '' || /[.,]$/.test(amount)
  return html`<div class="limit">
    ${before}
    ${field({
      ...{ label: 'At most', name: `${name}-amount`, value: amount, inputMode: unit === 'usd' ? 'decimal' : 'numeric' },
      onInput: (text) => change({ amount: text }),
      error: isBegun ? undefined : numberProblem(amount, { isWhole: unit !== 'usd' }),
    })}
    ${field({
      ...{ label: 'Of', name: `${name}-unit`, value: unit, options: units },
      onInput: (text) => change({ unit: /** @type {Spent['unit']} */ (text) }),
    })}
    ${field({
      ...{ label: 'In', name: `${name}-per`, value: per, options: periods },
      onInput: (text) => change({ per: /** @type {Window['per']} */ (text) }),
    })}
    <div class="field"><button type="button" aria-label="Remove this limit" @click=${remove}>Remove</button></div>
  </div>`
}

/** @typedef {(value: number) => string} Money */

/** @param {Spent['unit']} unit @param {number} value @param {Money} money */
function amountText(unit, value, money) {
  if (unit === 'usd') return money(value)
  return `${count(value)} ${value === 1 ? unit.slice(0, -1) : unit}`
}

/** The format of windows that stand below each other. @param {readonly Window[]} windows */
export const windowsMoney = (windows) =>
  moneyAlike(
    [],
    windows.flatMap(({ usd }) => usd ?? []),
  )

/** @param {readonly Window[]} windows @param {Money} [money] */
export function windowsText(windows, money = windowsMoney(windows)) {
  return limitsOf(windows)
    .map(({ per, unit, amount }) => `${amountText(unit, Number(amount), money)} ${periodWords.get(per)}`)
    .join(', ')
}

/** The format of amounts that stand below each other. @param {readonly Spent[]} spent */
export function spentMoney(spent) {
  const inDollars = spent.filter(({ unit }) => unit === 'usd')
  return moneyAlike(
    inDollars.map((each) => each.spent),
    inDollars.map(({ limit }) => limit),
  )
}

/** Each limit as a bar. @param {readonly Spent[]} spent @param {Money} [money] */
export function meters(spent, money = spentMoney(spent)) {
  return spent.map(({ unit, per, limit, spent: used }) =>
    meter(
      used,
      limit,
      `${unit === 'usd' ? money(used) : count(used)} of ${amountText(unit, limit, money)} ${periodWords.get(per)}`,
    ),
  )
}

/** When requests are refused, and until when. @param {readonly Spent[]} spent @param {string} mode @returns {Content} */
export function refusedNote(spent, mode) {
  const full = spent.filter(({ remaining }) => remaining === 0)
  if (mode !== 'block' || full.length === 0) return nothing
  const resets = full.map(({ resets_at }) => resets_at)
  const last = resets
    .filter((each) => each !== null)
    .sort()
    .at(-1)
  const until = resets.includes(null) ? 'until it is raised or topped up' : html`until ${at(last)}`
  return html`<div class="small"><strong>Requests are refused</strong> ${until}</div>`
}

/** The requests of unknown cost of one counter. @param {readonly Spent[]} spent */
export const withoutCostIn = (spent) => Math.max(0, ...spent.map(({ requests_without_cost: own = 0 }) => own))

/** What a budget in dollars does not count, and what to do. @param {Page} page @param {number | undefined} requests @param {string} [of] of when they are @returns {Content} */
export function withoutCostNote(page, requests = 0, of = '') {
  if (requests === 0) return nothing
  const words =
    requests === 1
      ? '1 request has an unknown cost and counts as free.'
      : `${count(requests)} requests have an unknown cost and count as free.`
  const set = page.may('prices.set')
    ? html` · <a href=${href(['upstreams', 'prices', 'new'])}>Set the price of a model</a>`
    : nothing
  return callout(
    'warn',
    html`${of}${words} <a href=${href(['usage'], { by: 'model', days: 'month' })}>See the models</a>${set}`,
  )
}
