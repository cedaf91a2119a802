// Whether a key may call inference now: its rates and its budget, and the models that it is limited to.
import type { ApiKey } from '../../db/schema.ts'
import { Fault } from '../fault.ts'
import { compileModelPatterns } from '../inference/model-pattern.ts'
import { nanodollarsPerDollar } from '../limits.ts'
import type { KeyRates } from './key-rates.ts'
import { remainingOf, type Spending } from './spending.ts'

/** @throws Fault `payment_required` when its budget is spent */
export function checkBudget(key: Readonly<ApiKey>, spending: Spending, now: number): void {
  const { id, limitNanodollars, limitReset } = key
  if (limitNanodollars === null || remainingOf(key, spending.of(id, now)) !== 0) return
  const limit = `${limitReset === null ? '' : `${limitReset} `}limit of this key, ${limitNanodollars / nanodollarsPerDollar} USD,`
  throw new Fault('payment_required', `The ${limit} is spent`, { reason: `key_limit_spent, key ${id}` })
}

/** Takes one request of its rate. @throws Fault `rate_limited` when it asks too often or has used too many tokens of late */
export function takeRate(key: Readonly<ApiKey>, keyRates: KeyRates, now: number): void {
  const { id, requestsPerMinute, tokensPerMinute } = key
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

/** @throws Fault `forbidden`, naming what is allowed, when the key is limited to other models than these, or it is not sure which are asked for */
export function checkModels(
  { id, allowedModels }: Readonly<ApiKey>,
  { models, namesMemberTwice }: { models: readonly string[]; namesMemberTwice: () => boolean },
): void {
  if (allowedModels === null) return
  const isAllowed = compileModelPatterns(allowedModels)
  if (models.length > 0 && models.every(isAllowed) && !namesMemberTwice()) return
  throw new Fault('forbidden', `This key may only use the models: ${allowedModels.join(', ')}`, {
    reason: `key_models, key ${id}`,
  })
}
