// Whether a key may call inference now: its rates and its budget, and the models that it is limited to.
import type { ApiKey } from '../../db/schema.ts'
import { Fault } from '../fault.ts'
import { compileModelPatterns } from '../inference/model-pattern.ts'
import { nanodollarsPerDollar } from '../limits.ts'
import type { KeyRates } from './key-rates.ts'
import { remainingOf, type Spending } from './spending.ts'

/** @throws Fault `payment_required` when its budget is spent, `rate_limited` when it asks too often or has used too many tokens of late */
export function admit(
  key: Readonly<ApiKey>,
  { spending, keyRates }: { spending: Spending; keyRates: KeyRates },
  now: number,
): void {
  const { id, limitNanodollars, limitReset, requestsPerMinute, tokensPerMinute } = key
  if (limitNanodollars !== null && remainingOf(key, spending.of(id, now)) === 0) {
    const limit = `${limitReset === null ? '' : `${limitReset} `}limit of this key, ${limitNanodollars / nanodollarsPerDollar} USD,`
    throw new Fault('payment_required', `The ${limit} is spent`, { reason: `key_limit_spent, key ${id}` })
  }
  const seconds = keyRates.take(key, now)
  if (seconds === 0) return
  const bounds = [
    ...(requestsPerMinute === null ? [] : [`${requestsPerMinute} requests`]),
    ...(tokensPerMinute === null ? [] : [`${tokensPerMinute} tokens`]),
  ]
  throw new Fault('rate_limited', `This key may have ${bounds.join(' and ')} a minute; try again in ${seconds} s`, {
    reason: `key_rate, key ${id}`,
    headers: { 'retry-after': String(seconds) },
  })
}

/** @throws Fault `forbidden`, naming what is allowed, when the key is limited to other models than these, or none is named */
export function checkModels({ id, allowedModels }: Readonly<ApiKey>, models: readonly string[]): void {
  if (allowedModels === null) return
  const isAllowed = compileModelPatterns(allowedModels)
  if (models.length > 0 && models.every(isAllowed)) return
  throw new Fault('forbidden', `This key may only use the models: ${allowedModels.join(', ')}`, {
    reason: `key_models, key ${id}`,
  })
}
