// What admins send to create or change a policy (reference: Policy).

import { ruleNames } from '../../federation/lint/rules.ts'
import { accessTokenLifetimeSecondsMax, accessTokenLifetimeSecondsMin, conditionCharactersMax } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import {
  claimValueShape,
  modelPatternsShape,
  nameShape,
  presetPatternsShape,
  referenceShape,
  textCheckedLater,
  textShape,
} from '../../values/shapes.ts'
import { organizationInput } from '../operation/references.ts'

const exceptionReasonCharactersMax = 500
const draftsMax = 100

/** Compiling it checks the other rules, and reports where one is broken. */
const conditionShape = textCheckedLater(
  conditionCharactersMax,
  'A CEL expression of type bool over `subject`, `audience`, `scopes`, `token_type` and `claims`',
)
/** Each with the reason, for the next reviewer. */
const exceptionsShape = type({
  '+': 'reject',
  rule: type.enumerated(...ruleNames),
  because: textShape(1, exceptionReasonCharactersMax),
})
  .array()
  .atMostLength(ruleNames.length)
  .configure({ says: 'Findings of the linter that are accepted, and why' })
/** Null removes an optional value. */
const fields = {
  'subject?': claimValueShape.or('null'),
  'condition?': conditionShape.or('null'),
  'required_scope?': claimValueShape.or('null'),
  'required_token_type?': claimValueShape.or('null'),
  'replay_protection?': 'boolean',
  'allowed_models?': modelPatternsShape.or('null'),
  'allowed_presets?': presetPatternsShape.or('null'),
  'lint_exceptions?': exceptionsShape.or('null'),
  'max_lifetime_seconds?': `${accessTokenLifetimeSecondsMin} <= number.integer <= ${accessTokenLifetimeSecondsMax}`,
} as const
export const policyCreation = type({
  '+': 'reject',
  ...organizationInput,
  ...fields,
  'dry_run?': 'boolean',
  name: nameShape,
  issuer: referenceShape,
  key: referenceShape,
  audience: claimValueShape,
}).configure({
  anyOf: ['subject', 'condition'].map((name) => ({ required: [name], properties: { [name]: { type: 'string' } } })),
})
export const policyChange = type({
  '+': 'reject',
  ...organizationInput,
  ...fields,
  policy: referenceShape,
  'enabled?': 'boolean',
  'name?': nameShape,
  'issuer?': referenceShape,
  'key?': referenceShape,
  'audience?': claimValueShape,
  'dry_run?': 'boolean',
}).configure({ minProperties: 1 })
/** A policy that is only linted. Without a saved issuer, its URL decides what tokens look like. */
const lintDraft = type({
  '+': 'reject',
  ...fields,
  'name?': nameShape,
  'issuer?': referenceShape,
  'issuer_url?': referenceShape,
  'key?': referenceShape,
  audience: claimValueShape,
})
export const lintInput = type({
  '+': 'reject',
  ...organizationInput,
  'policy?': referenceShape.configure({ says: 'Only this policy, by name or id' }),
  'drafts?': lintDraft.array().atMostLength(draftsMax).configure({ says: 'Policies that are not saved' }),
})
