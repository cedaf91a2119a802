// What admins send to create or change a policy (reference: Policy).

import { type } from '../../values/shape.ts'
import { referenceShape } from '../../values/shapes.ts'
import { given } from '../kinds/fields.ts'
import { policyFields } from '../kinds/policy.ts'
import { organizationInput } from '../operation/references.ts'

const draftsMax = 100

const creation = given(policyFields, 'create')
export const policyCreation = type({
  '+': 'reject',
  ...organizationInput,
  ...creation,
  'dry_run?': 'boolean',
}).configure({
  anyOf: ['subject', 'condition'].map((name) => ({ required: [name], properties: { [name]: { type: 'string' } } })),
})
export const policyChange = type({
  '+': 'reject',
  ...organizationInput,
  ...given(policyFields, 'change'),
  policy: referenceShape,
  'dry_run?': 'boolean',
  'if_match?': 'string',
}).configure({ minProperties: 1 })
const { name, issuer, key, ...rules } = creation
/** A policy that is only linted or tested. Without a saved issuer, its URL decides what tokens look like. */
export const policyDraft = type({
  '+': 'reject',
  ...rules,
  'name?': name,
  'issuer?': issuer,
  'issuer_url?': referenceShape,
  'key?': key,
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
