// What admins send about API keys: the shapes of the inputs, and what bounds must satisfy.
import type { ApiKey } from '../../../db/schema/schema.ts'
import { keyKinds } from '../../../db/schema/value-names.ts'
import { Fault } from '../../fault.ts'
import { keyStates } from '../../keys/api-key.ts'
import { type } from '../../values/shape.ts'
import { referenceShape, unusedInput } from '../../values/shapes.ts'
import { given } from '../kinds/fields.ts'
import { keyFields } from '../kinds/key.ts'
import { listPage } from '../operation/list-page.ts'
import { organizationInput } from '../operation/references.ts'

export const createInput = type({ '+': 'reject', ...organizationInput, ...given(keyFields, 'create') })

export const listInput = type({
  '+': 'reject',
  ...organizationInput,
  'owner?': referenceShape,
  'state?': type.enumerated(...keyStates),
  'kind?': type.enumerated(...keyKinds),
  'workspace?': referenceShape,
  'include_disabled?': 'boolean',
  ...unusedInput,
  ...listPage,
})

export const updateInput = type({
  '+': 'reject',
  ...organizationInput,
  ...given(keyFields, 'change'),
  key: referenceShape,
  'if_match?': 'string',
})

export const oneInput = type({ '+': 'reject', ...organizationInput, key: referenceShape })

const keysAtOnceMax = 100

export const someInput = type({
  '+': 'reject',
  ...organizationInput,
  'key?': referenceShape,
  'keys?': referenceShape.array().moreThanLength(0).atMostLength(keysAtOnceMax),
}).narrow(
  ({ key, keys }, context) =>
    (key === undefined) !== (keys === undefined) || context.mustBe('an object with either key or keys'),
)

/** @throws Fault `invalid` for a time of expiry before now, in milliseconds */
export function rejectExpired({ expires_at }: { expires_at?: Date | null }, now: number): void {
  if (expires_at instanceof Date && expires_at.getTime() <= now)
    throw new Fault('invalid', 'expires_at is in the past: give a time in the future', {
      field: 'expires_at',
    })
}

/** @throws Fault `invalid` for a bound that would have no effect: one on inference for a management key, or a period without a limit */
export function checkBounds(key: ApiKey, { limit_reset }: { limit_reset?: string | null }): void {
  const { kind, limitNanodollars, requestsPerMinute, tokensPerMinute, allowedModels, allowedPresets } = key
  const rates = [requestsPerMinute, tokensPerMinute, key.concurrentRequests]
  const bounds = [limitNanodollars, ...rates, allowedModels, allowedPresets]
  if (kind !== 'inference' && key.attributeFromHeader !== null)
    throw new Fault('invalid', 'A management key cannot call inference: remove attribute_from_header')
  const isBounded = bounds.some((bound) => bound !== null)
  if (kind !== 'inference' && isBounded)
    throw new Fault('invalid', 'A management key cannot call inference: remove its limits, rates, models and presets')
  if (typeof limit_reset === 'string' && limitNanodollars === null)
    throw new Fault('invalid', `limit_reset is ${JSON.stringify(limit_reset)}, but the key has no limit: set limit too`)
}
