// What admins send about API keys: the shapes of the inputs, and the columns that bounds set.
import { type ApiKey, keyKinds } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import { keyStates } from '../../keys/api-key.ts'
import { keyBounds } from '../../keys/settable-limits.ts'
import { nanodollarsPerDollar } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { nameShape, referenceShape } from '../../values/shapes.ts'
import { unusedInput } from '../operation/last-use-response.ts'
import { listPage } from '../operation/list-page.ts'
import { organizationInput } from '../operation/references.ts'

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
  'kind?': type.enumerated(...keyKinds),
  'workspace?': referenceShape,
  'include_disabled?': 'boolean',
  ...unusedInput,
  ...listPage,
})

export const updateInput = type({
  '+': 'reject',
  ...organizationInput,
  ...keyBounds,
  key: referenceShape,
  'name?': nameShape,
  'disabled?': 'boolean',
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

/** The columns that the given bounds set. Absent bounds stay as they are. */
export function boundsOf(input: typeof boundsInput.infer, now: number): Partial<ApiKey> {
  const { expires_at, limit, limit_reset, requests_per_minute, tokens_per_minute, allowed_models, allowed_presets } =
    input
  if (expires_at instanceof Date && expires_at.getTime() <= now)
    throw new Fault('invalid', 'expires_at is in the past: give a time in the future')
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

/** @throws Fault `invalid` for a bound that would have no effect: one on inference for a management key, or a period without a limit */
export function checkBounds(key: ApiKey, { limit_reset }: typeof boundsInput.infer): void {
  const { kind, limitNanodollars, requestsPerMinute, tokensPerMinute, allowedModels, allowedPresets } = key
  const bounds = [limitNanodollars, requestsPerMinute, tokensPerMinute, allowedModels, allowedPresets]
  const isBounded = bounds.some((bound) => bound !== null)
  if (kind !== 'inference' && isBounded)
    throw new Fault('invalid', 'A management key cannot call inference: remove its limits, rates, models and presets')
  if (typeof limit_reset === 'string' && limitNanodollars === null)
    throw new Fault('invalid', `limit_reset is ${JSON.stringify(limit_reset)}, but the key has no limit: set limit too`)
}
