// What follows from a kind's table of fields: what its form holds of a record, what is sent, and which fields are numbers. The tables are in
// policy-fields.js, issuer-fields.js and key-fields.js; a test holds them against those of the API.
/** @import { NumberRule } from './number.js' */
import { numberOf, numberText } from './number.js'

/**
 * `of`: its name in a response. `place`: where the form shows it by its label and help. `common`: what a new one has. `isKept`: a number that
 * is never without a value. `isNeeded`: a text that is never empty.
 * @typedef {object} FormField
 * @property {keyof Held} form
 * @property {string} [of]
 * @property {string} [place]
 * @property {string} [label]
 * @property {string} [help]
 * @property {unknown} [common]
 * @property {true} [isKept]
 * @property {true} [isNeeded]
 * @property {readonly (readonly [value: string, label: string])[]} [options]
 */
/** @typedef {{ rule: string, because: string }[]} Exceptions */
/**
 * What a form holds. A word is trimmed; `money` may have decimals, `number` not. A secret is sent and never read: without one, it stays as it is.
 * @typedef {{ name: string, text: string, word: string, lines: string, pairs: string, number: string, money: string, flag: boolean, answer: string, time: string, json: string, secret: string, exceptions: Exceptions }} Held
 */
/** @template {Readonly<Record<string, FormField>>} Table @typedef {{ -readonly [Name in keyof Table]: Held[Table[Name]['form']] }} ValuesOf */

/** @type {Record<keyof Held, (value: any) => unknown>} */
const toHeld = {
  name: textOf,
  text: textOf,
  word: textOf,
  lines: (value) => (value ?? []).join('\n'),
  pairs: (value) =>
    Object.entries(value ?? {})
      .map((pair) => pair.join('='))
      .join('\n'),
  number: numberText,
  money: numberText,
  flag: (value) => value ?? false,
  answer: (value) => (value == null ? '' : String(value)),
  time: (value) => (value ? localTime(new Date(value)) : ''),
  json: (value) => (value ? JSON.stringify(value, null, 2) : ''),
  secret: () => '',
  exceptions: (value) => value ?? [],
}

/** @type {Record<keyof Held, (value: any) => unknown>} */
const toSent = {
  name: textOrNull,
  text: textOrNull,
  word: (value) => textOrNull(value.trim()),
  lines: linesOrNull,
  pairs: (value) => {
    const pairs = linesOrNull(value)?.map((line) => line.split('='))
    return pairs ? Object.fromEntries(pairs.map(([name, ...rest]) => [name?.trim(), rest.join('=').trim()])) : null
  },
  number: (value) => numberOf(value, { isWhole: true }),
  money: (value) => numberOf(value),
  flag: (value) => value,
  answer: (value) => (value === '' ? null : value === 'true'),
  time: (value) => (value === '' ? null : new Date(value).toISOString()),
  json: (value) => (value.trim() === '' ? null : parse(value)),
  secret: (value) => (value.trim() === '' ? undefined : value.trim()),
  exceptions: (value) => (value.length === 0 ? null : value),
}

/** @param {string | null | undefined} value */
function textOf(value) {
  return value ?? ''
}

/** @param {string} value */
function textOrNull(value) {
  return value.trim() === '' ? null : value
}

/** @param {string} value */
function linesOrNull(value) {
  const lines = value.split('\n').map((line) => line.trim())
  return lines.some(Boolean) ? lines.filter(Boolean) : null
}

/** As a field of the browser has it. @param {Date} time */
function localTime(time) {
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** Text that is not JSON stays text, which the server refuses. @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** What the fields of the form hold of a record. @template {Readonly<Record<string, FormField>>} Table @param {Table} table @param {object | undefined} record */
export function heldIn(table, record) {
  const values = Object.entries(table).map(([name, { form, of = name, common }]) => {
    const sent = /** @type {any} */ (record)?.[of] ?? common
    return [name, toHeld[form](sent)]
  })
  return /** @type {ValuesOf<Table>} */ (Object.fromEntries(values))
}

/** What is sent: null removes a value. @template {Readonly<Record<string, FormField>>} Table @param {Table} table @param {ValuesOf<Table>} values @returns {Record<string, unknown>} */
export function sentFrom(table, values) {
  return Object.fromEntries(Object.entries(table).map(([name, { form }]) => [name, toSent[form](values[name])]))
}

/** What is wrong with what was typed, by field: pairs of which one would be lost. @param {Readonly<Record<string, FormField>>} table @param {Record<string, any>} values @returns {Record<string, string>} */
export function problemsIn(table, values) {
  const pairs = Object.entries(table).filter(([, { form }]) => form === 'pairs')
  const problems = pairs.map(([name]) => [name, pairsProblem(values[name])])
  return Object.fromEntries(problems.filter(([, problem]) => problem !== undefined))
}

/** @param {string} text one `name=value` a line */
export function pairsProblem(text) {
  const lines = linesOrNull(text) ?? []
  const bare = lines.find((line) => !/^[^=]+=/.test(line))
  if (bare !== undefined) return `Write "${bare.slice(0, 60)}" as name=value`
  const names = lines.map((line) => line.slice(0, line.indexOf('=')).trim())
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  return twice === undefined ? undefined : `"${twice.slice(0, 60)}" has two values: keep one of its lines`
}

/** The rules of the numbers. @param {Readonly<Record<string, FormField>>} table @returns {Record<string, NumberRule>} */
export function numbersIn(table, isNew = false) {
  const numbers = Object.entries(table).filter(([, { form }]) => form === 'number' || form === 'money')
  return Object.fromEntries(
    numbers.map(([name, { form, isKept = false, common }]) => [
      name,
      { isWhole: form === 'number', isRequired: isKept && (!isNew || common !== undefined) },
    ]),
  )
}
