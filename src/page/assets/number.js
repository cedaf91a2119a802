// Numbers as people type them. A point stands before decimals and nothing stands between thousands, whatever the language of the
// browser: `25,50` and `1.000` mean other numbers to other people, so they are refused with how to write them.

const plain = /^\d+(?:\.\d+)?$/
const whole = /^\d+$/
/** One in some languages, and a thousand in others. */
const ambiguous = /^[1-9]\d{0,2}[.,]\d{3}$/
const grouped = /^\d{1,3}(?:[.,\s'’_]\d{3})+$/
const withDecimals = /^(\d[\d.,\s'’_]*)[.,](\d+)$/

/** @typedef {{ isWhole?: boolean, isRequired?: boolean }} NumberRule */

/** What is wrong with a number that was typed, or undefined. @param {string} text @param {NumberRule} [rule] */
export function numberProblem(text, { isWhole = false, isRequired = false } = {}) {
  const typed = text.trim()
  if (typed === '') return isRequired ? 'Enter a number' : undefined
  const digits = typed.replaceAll(/\D/g, '')
  if (ambiguous.test(typed))
    return `"${typed}" means different numbers in different languages: write ${digits}${isWhole ? '' : ` or ${typed.replace(',', '.')}0`}`
  if (isWhole ? whole.test(typed) : plain.test(typed)) return undefined
  if (grouped.test(typed)) return `"${typed}" has separators: write ${digits}`
  if (plain.test(typed)) return `"${typed}" is not a whole number`
  const [, before = '', after = ''] = withDecimals.exec(typed) ?? []
  const [number, example] = isWhole ? ['whole number', '1250'] : ['number', '1250.50']
  if (before === '' || isWhole) return `"${typed}" is not a ${number}: write digits only, such as ${example}`
  return `"${typed}" has a comma or separators: write ${before.replaceAll(/\D/g, '')}.${after}`
}

/** What was typed as the API takes it: null for an empty field. A text that is no number stays one. @param {string} text @param {NumberRule} [rule] */
export function numberOf(text, rule) {
  const typed = text.trim()
  return typed === '' ? null : numberProblem(typed, rule) === undefined ? Number(typed) : typed
}

/** A stored number as a text that means the same number when it is read again. @param {number | null | undefined} value */
export function numberText(value) {
  const text = value?.toLocaleString('en-US', { useGrouping: false, maximumFractionDigits: 20 }) ?? ''
  return ambiguous.test(text) ? `${text}0` : text
}
