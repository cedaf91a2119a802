// What admins send to create or change a policy (reference: Policy).
import { accessTokenLifetimeSecondsMax, accessTokenLifetimeSecondsMin, conditionCharactersMax } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import {
  claimValueShape,
  modelPatternsShape,
  nameShape,
  presetPatternsShape,
  referenceShape,
  textCheckedLater,
} from '../../values/shapes.ts'
import { organizationInput } from '../operation/references.ts'

/** Compiling it checks the other rules, and reports where one is broken. */
const conditionShape = textCheckedLater(
  conditionCharactersMax,
  'A CEL expression of type bool over `subject`, `audience`, `scopes`, `token_type` and `claims`',
)
/** Null removes an optional value. */
const fields = {
  'subject?': claimValueShape.or('null'),
  'condition?': conditionShape.or('null'),
  'required_scope?': claimValueShape.or('null'),
  'required_token_type?': claimValueShape.or('null'),
  'replay_protection?': 'boolean',
  'allowed_models?': modelPatternsShape.or('null'),
  'allowed_presets?': presetPatternsShape.or('null'),
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
}).configure({ minProperties: 1 })
