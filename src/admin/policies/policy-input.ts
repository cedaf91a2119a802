// What admins send to create or change a policy (reference: Policy).

import { ruleNames } from '../../federation/lint/rules.ts'
import { expectations } from '../../federation/policy-test.ts'
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
const policyTestsMax = 50
/** As JSON. */
const policyTestsBytesMax = 64 * 1_024

/** Compiling it checks the other rules, and reports where one is broken. */
const conditionShape = textCheckedLater(
  conditionCharactersMax,
  'A CEL expression of type bool over `subject`, `audience`, `scopes`, `token_type` and `claims`',
)
/** A letter that is seen: fillers and blank hieroglyphs count as letters too. */
const visibleLetter = /[\p{L}--[\p{Default_Ignorable_Code_Point}\u{13441}\u{13442}]]/v
/** For the next reviewer. */
const reasonShape = textShape(1, exceptionReasonCharactersMax)
  .narrow((text, context) => visibleLetter.test(text) || context.mustBe('a reason in words, with visible letters'))
  .configure({ pattern: '\\p{L}', says: 'Why the finding is accepted, in words' })
const exceptionsShape = type({ '+': 'reject', rule: type.enumerated(...ruleNames), because: reasonShape })
  .array()
  .atMostLength(ruleNames.length)
  .configure({ says: 'Findings of the linter that are accepted, and why' })
/** They run when the policy is saved. */
const testsShape = type({
  '+': 'reject',
  name: nameShape,
  claims: type({ '[string]': 'unknown' }),
  expect: type.enumerated(...expectations),
})
  .array()
  .atMostLength(policyTestsMax)
  .narrow((tests, context) => {
    if (Buffer.byteLength(JSON.stringify(tests)) > policyTestsBytesMax)
      return context.mustBe(`at most ${policyTestsBytesMax} bytes as JSON`)
    return new Set(tests.map(({ name }) => name)).size === tests.length || context.mustBe('tests with different names')
  })
  .configure({
    says: 'Claims and what the policy must decide: `allow`, or a reason of the audit. `iss`, `aud`, `sub`, `iat`, `exp` and `jti` have defaults that the policy accepts',
  })
/** Null removes an optional value. */
export const policyFields = {
  'subject?': claimValueShape.or('null'),
  'condition?': conditionShape.or('null'),
  'required_scope?': claimValueShape.or('null'),
  'required_token_type?': claimValueShape.or('null'),
  'replay_protection?': 'boolean',
  'allowed_models?': modelPatternsShape.or('null'),
  'allowed_presets?': presetPatternsShape.or('null'),
  'lint_exceptions?': exceptionsShape.or('null'),
  'tests?': testsShape.or('null'),
  'max_lifetime_seconds?': `${accessTokenLifetimeSecondsMin} <= number.integer <= ${accessTokenLifetimeSecondsMax}`,
} as const
export const policyCreation = type({
  '+': 'reject',
  ...organizationInput,
  ...policyFields,
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
  ...policyFields,
  policy: referenceShape,
  'enabled?': 'boolean',
  'name?': nameShape,
  'issuer?': referenceShape,
  'key?': referenceShape,
  'audience?': claimValueShape,
  'dry_run?': 'boolean',
  'if_match?': 'string',
}).configure({ minProperties: 1 })
/** A policy that is only linted or tested. Without a saved issuer, its URL decides what tokens look like. */
export const policyDraft = type({
  '+': 'reject',
  ...policyFields,
  'name?': nameShape,
  'issuer?': referenceShape,
  'issuer_url?': referenceShape,
  'key?': referenceShape,
  audience: claimValueShape,
})
/** Policies of a file or of a form. */
const draftsShape = policyDraft
  .array()
  .narrow(
    ({ length }, context) =>
      length <= draftsMax ||
      context.reject({ expected: `at most ${draftsMax} policies in a file: split it`, actual: String(length) }),
  )
  .configure({ maxItems: draftsMax })
export const lintInput = type({
  '+': 'reject',
  ...organizationInput,
  'policy?': referenceShape.configure({ says: 'Only this policy, by name or id' }),
  'policies?': referenceShape
    .array()
    .atMostLength(draftsMax)
    .configure({ says: 'Only these policies, such as those of a page' }),
  'drafts?': draftsShape.configure({ says: 'Policies that are not saved', maxItems: draftsMax }),
})
/** Policies of a file, whose tests run without a server. */
export const testedDrafts = draftsShape
export const testInput = type({
  '+': 'reject',
  ...organizationInput,
  'policy?': referenceShape.configure({ says: 'Only this policy, by name or id' }),
})
