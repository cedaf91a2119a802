// The fields of a policy on the page: what the form holds of each, and those that it shows from here with their labels. What the API takes is
// in admin/kinds/policy.ts; a test compares the two.
/** @import { Policy } from '../../admin/transport/response-types.ts' */
import { numberOf, numberText } from './number.js'

/**
 * `of`: its name in a response. `isJudged`: past exchanges are judged by it. `place`: where the form shows it by its label and help.
 * `common`: what a new policy has.
 * @typedef {object} PolicyField
 * @property {keyof Held} form
 * @property {string} [of]
 * @property {true} [isJudged]
 * @property {'who' | 'more'} [place]
 * @property {true} [isFact] the page of a policy shows it where it is set
 * @property {string} [label]
 * @property {string} [help]
 * @property {unknown} [common]
 */
export const policyFields = /** @type {const} */ ({
  name: { form: 'name' },
  description: { form: 'text', place: 'who', isFact: true, label: 'Description', help: 'What the policy is for' },
  issuer: { form: 'name', of: 'issuer_id' },
  key: { form: 'name', of: 'key_id' },
  audience: { form: 'name', isJudged: true },
  subject: { form: 'text', isJudged: true },
  condition: { form: 'text', isJudged: true },
  attribute_to: {
    form: 'text',
    isJudged: true,
    place: 'more',
    isFact: true,
    label: 'Attribute usage to',
    help: 'CEL, such as claims.repository_id. Empty: the subject',
  },
  required_scope: { form: 'text', isJudged: true, place: 'more', label: 'Required scope' },
  required_token_type: { form: 'text', isJudged: true, place: 'more', label: 'Required token type' },
  allowed_models: { form: 'lines', place: 'more', label: 'Allowed models', help: 'One pattern per line' },
  allowed_presets: { form: 'lines', place: 'more', label: 'Allowed presets', help: 'One pattern per line' },
  max_lifetime_seconds: {
    form: 'number',
    place: 'more',
    label: 'Lifetime of access tokens',
    help: 'Seconds, 60 to 900',
    common: 900,
  },
  replay_protection: {
    form: 'flag',
    isJudged: true,
    place: 'more',
    label: 'Accept each token only once',
    help: 'Tokens then need a jti',
  },
  tests: {
    form: 'tests',
    place: 'more',
    label: 'Tests',
    help: 'A JSON array of `{ "name", "claims", "expect" }`. An edit that breaks one is refused.',
  },
  lint_exceptions: { form: 'exceptions' },
})

/** In the order of the form. */
export const policyFieldList = /** @type {readonly (readonly [name: PolicyFieldName, field: PolicyField])[]} */ (
  Object.entries(policyFields)
)

/** @typedef {{ rule: string, because: string }[]} Exceptions */
/** What the form holds. @typedef {{ name: string, text: string, lines: string, number: string, flag: boolean, tests: string, exceptions: Exceptions }} Held */
/** @typedef {typeof policyFields} Table */
/** @typedef {keyof Table} PolicyFieldName */
/** @typedef {{ -readonly [Name in PolicyFieldName]: Held[Table[Name]['form']] }} PolicyValues */

/** @type {Record<keyof Held, (value: any) => unknown>} */
const toHeld = {
  name: (value) => value ?? '',
  text: (value) => value ?? '',
  lines: (value) => (value ?? []).join('\n'),
  number: numberText,
  flag: (value) => value ?? false,
  tests: (value) => (value ? JSON.stringify(value, null, 2) : ''),
  exceptions: (value) => value ?? [],
}

/** @type {Record<keyof Held, (value: any) => unknown>} */
const toSent = {
  name: textOrNull,
  text: textOrNull,
  lines: (/** @type {string} */ value) => {
    const lines = value.split('\n').map((line) => line.trim())
    return lines.some(Boolean) ? lines.filter(Boolean) : null
  },
  number: (value) => numberOf(value, { isWhole: true }),
  flag: (value) => value,
  tests: (value) => (value.trim() === '' ? null : parse(value)),
  exceptions: (value) => (value.length === 0 ? null : value),
}

/** @param {string} value */
function textOrNull(value) {
  return value.trim() === '' ? null : value
}

/** Text that is not JSON stays text, which the server refuses. @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** What the fields of the form hold of a policy. @param {Policy | undefined} policy */
export function heldOf(policy) {
  const values = policyFieldList.map(([name, { form, of = name, common }]) => {
    const sent = /** @type {any} */ (policy)?.[of] ?? common
    return [name, toHeld[form](sent)]
  })
  return /** @type {PolicyValues} */ (Object.fromEntries(values))
}

/** What is sent: null removes a value. @param {PolicyValues} values @returns {Record<string, unknown>} */
export function sentOf(values) {
  return Object.fromEntries(policyFieldList.map(([name, { form }]) => [name, toSent[form](values[name])]))
}
