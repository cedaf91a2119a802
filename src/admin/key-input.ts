// What admins send about API keys: the shapes of the inputs, and the columns that bounds set.
import { type ApiKey, keyKinds } from '../../db/schema.ts'
import { Fault } from '../fault.ts'
import { keyStates } from '../keys/api-key.ts'
import { keyBounds } from '../keys/bounds.ts'
import { nanodollarsPerDollar } from '../limits.ts'
import { type } from '../values/shape.ts'
import { nameShape, referenceShape } from '../values/shapes.ts'
import { organizationInput } from './references.ts'

const boundsInput = type(keyBounds)

export const createInput = type({
  '+': 'reject',
  ...organizationInput,
  ...keyBounds,
  name: nameShape,
  'kind?': type.enumerated(...keyKinds),
  'owner?': nameShape,
  'workspace?': referenceShape,
})

export const listInput = type({
  '+': 'reject',
  ...organizationInput,
  'owner?': referenceShape,
  'state?': type.enumerated(...keyStates),
})

export const updateInput = type({
  '+': 'reject',
  ...organizationInput,
  ...keyBounds,
  key: referenceShape,
  'name?': nameShape,
  'disabled?': 'boolean',
})

export const oneInput = type({ '+': 'reject', ...organizationInput, key: referenceShape })

const keysAtOnceMax = 100

export const someInput = type({
  '+': 'reject',
  ...organizationInput,
  'key?': referenceShape,
  'keys?': referenceShape.array().moreThanLength(0).atMostLength(keysAtOnceMax),
}).narrow(
  ({ key, keys }, context) => (key === undefined) !== (keys === undefined) || context.mustBe('with either key or keys'),
)

/** The columns that the given bounds set; what is absent stays as it is. */
export function boundsOf(input: typeof boundsInput.infer, now: number): Partial<ApiKey> {
  const { expires_at, limit, limit_reset, requests_per_minute, tokens_per_minute, allowed_models, allowed_presets } =
    input
  if (expires_at instanceof Date && expires_at.getTime() <= now)
    throw new Fault('invalid', 'expires_at must be in the future')
  return {
    ...(expires_at === undefined ? {} : { expiresAt: expires_at?.getTime() ?? null }),
    ...(limit === undefined
      ? {}
      : { limitNanodollars: limit === null ? null : Math.round(limit * nanodollarsPerDollar) }),
    ...(limit_reset === undefined ? {} : { limitReset: limit_reset }),
    ...(requests_per_minute === undefined ? {} : { requestsPerMinute: requests_per_minute }),
    ...(tokens_per_minute === undefined ? {} : { tokensPerMinute: tokens_per_minute }),
    ...(allowed_models === undefined ? {} : { allowedModels: allowed_models }),
    ...(allowed_presets === undefined ? {} : { allowedPresets: allowed_presets }),
  }
}

/** A management key calls no inference, so that a bound on inference would promise what nothing keeps; and so would the period of no limit. */
export function checkBounds(key: ApiKey, { limit_reset }: typeof boundsInput.infer): void {
  const { kind, limitNanodollars, requestsPerMinute, tokensPerMinute, allowedModels, allowedPresets } = key
  const bounds = [limitNanodollars, requestsPerMinute, tokensPerMinute, allowedModels, allowedPresets]
  const isBounded = bounds.some((bound) => bound !== null)
  if (kind !== 'inference' && isBounded)
    throw new Fault(
      'invalid',
      'Limits, rates, models and presets are for inference keys; a management key calls no inference',
    )
  if (typeof limit_reset === 'string' && limitNanodollars === null)
    throw new Fault('invalid', `There is no limit that could begin anew ${limit_reset}; give one with the period`)
}
