// The rules of the values of a policy that have more than a type (reference: Policy).

import { ruleNames } from '../../federation/lint/rules.ts'
import { expectations } from '../../federation/policy-test.ts'
import { conditionCharactersMax } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { nameShape, textCheckedLater, textShape } from '../../values/shapes.ts'

const exceptionReasonCharactersMax = 500
const policyTestsMax = 50
/** As JSON. */
const policyTestsBytesMax = 64 * 1_024

/** Compiling it checks the other rules, and reports where one is broken. */
export const conditionShape = textCheckedLater(
  conditionCharactersMax,
  'A CEL expression of type bool over `subject`, `audience`, `scopes`, `token_type` and `claims`',
)
/** The same. */
export const attributionShape = textCheckedLater(
  conditionCharactersMax,
  'A CEL expression of type string over the variables of conditions: whose usage it is',
)
/** A letter that is seen: fillers and blank hieroglyphs count as letters too. */
const visibleLetter = /[\p{L}--[\p{Default_Ignorable_Code_Point}\u{13441}\u{13442}]]/v
/** For the next reviewer. */
const reasonShape = textShape(1, exceptionReasonCharactersMax)
  .narrow((text, context) => visibleLetter.test(text) || context.mustBe('a reason in words, with visible letters'))
  .configure({ pattern: '\\p{L}', says: 'Why the finding is accepted, in words' })
export const exceptionsShape = type({ '+': 'reject', rule: type.enumerated(...ruleNames), because: reasonShape })
  .array()
  .atMostLength(ruleNames.length)
  .configure({ says: 'Findings of the linter that are accepted, and why' })
/** They run when the policy is saved. */
export const testsShape = type({
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
