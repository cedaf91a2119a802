// Shapes of the values that admins and callers set: names, references, times, money, patterns. Each rule serves the check and the OpenAPI
// document.
import {
  claimCharactersMax,
  modelCharactersMax,
  modelPatternsMax,
  nameCharactersMax,
  nanodollarsPerDollar,
  offsetMax,
  presetSlugCharactersMax,
  ratePerMinuteMax,
  referenceCharactersMax,
} from '../limits.ts'
import { apiKeyInText, uuidText } from './id-text.ts'
import { presetMarker } from './preset-text.ts'
import { type Statement, type } from './shape.ts'
import { readTime, timeText } from './time-text.ts'

/** The database would truncate a text at its first U+0000. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: this is about U+0000
export const withoutNul = /^[^\x00]*$/

/** A text of `min` to `max` Unicode code points, as JSON Schema counts them, that the database returns unchanged. */
export function textShape(min: number, max: number, statement: Statement = {}) {
  return type('string')
    .narrow((text, context) => {
      const length = [...text].length
      if (length < min || length > max) return context.mustBe(`${min} to ${max} characters long`)
      return (withoutNul.test(text) && text.isWellFormed()) || context.mustBe('without U+0000 and lone surrogates')
    })
    .configure({ minLength: min, maxLength: max, pattern: withoutNul.source, ...statement })
}

/** Texts that are shown to others must not be a secret that somebody pasted. */
export function withoutApiKey(shape: ReturnType<typeof textShape>) {
  return shape.narrow((text, context) => !apiKeyInText.test(text) || context.mustBe('a text without an API key'))
}

/** A text for which a later rule includes these checks and has a better message. */
export function textCheckedLater(max: number, says: string) {
  return type('string').configure({ minLength: 1, maxLength: max, pattern: withoutNul.source, says })
}

/** `.` and `..` change a path; the others are paths below issuers and policies. */
export const reservedNames = ['.', '..', 'check', 'lint', 'verify'] as const
/** The hash of a key, in either case. */
const hashText = /^[0-9A-Fa-f]{64}$/
/** JSON Schema has no flags. */
const apiKeyPattern = '[Ss][Kk]-[Ll][Kk]-[Vv]1-[0-9A-Fa-f]{64}'
const visibleText = /^[^\p{C}\s]([^\p{C}]*[^\p{C}\s])?$/u

/** A name chosen by a person: visible characters, and not the form of an id. */
export const nameShape = withoutApiKey(textShape(1, nameCharactersMax))
  .narrow((text, context) => {
    if (!visibleText.test(text))
      return context.mustBe('without control or format characters and surrounding white space')
    if (reservedNames.some((name) => name === text)) return context.mustBe(`none of ${reservedNames.join(', ')}`)
    return !(uuidText.test(text) || hashText.test(text)) || context.mustBe('something that does not look like an id')
  })
  .configure({
    minLength: 1,
    maxLength: nameCharactersMax,
    pattern: visibleText.source,
    says: 'Visible characters (no control, format, private or unassigned ones), without surrounding white space; not the form of an id, and no API key',
    not: {
      anyOf: [
        { enum: reservedNames },
        { pattern: uuidText.source },
        { pattern: hashText.source },
        { pattern: apiKeyPattern },
      ],
    },
  })

/** A value that is compared with a claim, and therefore at most as long as an accepted claim. */
export const claimValueShape = textShape(1, claimCharactersMax)

/** The id or the name of something. */
export const referenceShape = textShape(1, referenceCharactersMax)

export const uuidShape = type('string')
  .narrow((text, context) => uuidText.test(text) || context.mustBe('a UUID'))
  .configure({ pattern: uuidText.source })

/** US dollars. An amount below a billionth would be stored as zero. */
export function moneyShape(max: number) {
  const min = 1 / nanodollarsPerDollar
  return type('number')
    .atLeast(min)
    .atMost(max)
    .describe(`an amount from ${min.toFixed(9)} to ${max}`)
    .or('0')
}

/** Patterns of models. No model name has a comma; a text with one is usually a list. */
export const modelPatternsShape = textShape(1, modelCharactersMax)
  .narrow((text, context) => {
    if (text.includes(','))
      return context.mustBe('one model or pattern; send several as separate values, without commas')
    return !text.includes(presetMarker) || context.mustBe('a model; presets are allowed by allowed_presets')
  })
  .configure({ pattern: '^[^,\\x00]+$', not: { pattern: presetMarker } })
  .array()
  .moreThanLength(0)
  .atMostLength(modelPatternsMax)

const presetPattern = new RegExp(`^[A-Za-z0-9._~*-]{1,${presetSlugCharactersMax}}$`)

/** Patterns of presets, by slug. */
export const presetPatternsShape = type('string')
  .narrow(
    (text, context) => presetPattern.test(text) || context.mustBe('the slug of a preset, or a pattern with * in it'),
  )
  .configure({ pattern: presetPattern.source })
  .array()
  .moreThanLength(0)
  .atMostLength(modelPatternsMax)

export const rateShape = type(`1 <= number.integer <= ${ratePerMinuteMax}`)

export const timeShape = type('string')
  .configure({
    pattern: timeText.source,
    says: 'ISO 8601: a date, or a date and a time of day such as `2026-11-21T09:30:00Z`. Without a zone it is UTC. The day must exist.',
  })
  .pipe((text, context) => {
    const time = readTime(text)
    return time === undefined ? context.error('a time such as 2026-11-21T09:30:00Z') : new Date(time)
  })

/** The number of items of a list to skip. */
export const offsetShape = type(`0 <= number.integer <= ${offsetMax}`)

/** Input of lists of what is used. */
export const unusedInput = {
  'unused_since?': timeShape.configure({
    says: 'Only those that were made before this time and have not worked since. ISO 8601',
  }),
  'never_used?': type('boolean').configure({
    says: 'Only those that have never worked, and were made more than a day ago',
  }),
} as const
