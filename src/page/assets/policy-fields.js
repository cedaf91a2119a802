// The fields of a policy on the page: what the form holds of each, and those that it shows from here with their labels. What the API takes is
// in admin/kinds/policy.ts; a test compares the two.
/** @import { Policy } from '../../admin/transport/response-types.ts' */
/** @import { FormField, ValuesOf } from './fields.js' */
import { heldIn, sentFrom } from './fields.js'

/** `isJudged`: past exchanges are judged by it. `isFact`: the page of a policy shows it where it is set. @typedef {FormField & { isJudged?: true, isFact?: true }} PolicyField */
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
    isKept: true,
  },
  replay_protection: {
    form: 'flag',
    isJudged: true,
    place: 'more',
    label: 'Accept each token only once',
    help: 'Tokens then need a jti',
  },
  tests: {
    form: 'json',
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

/** @typedef {keyof typeof policyFields} PolicyFieldName */
/** @typedef {ValuesOf<typeof policyFields>} PolicyValues */

/** What the fields of the form hold of a policy. @param {Policy | undefined} policy */
export const heldOf = (policy) => heldIn(policyFields, policy)

/** What is sent: null removes a value. @param {PolicyValues} values */
export const sentOf = (values) => sentFrom(policyFields, values)
