// Whether a key may call inference now: its rates and its budget, and the models that it is limited to.
import type { ApiKey } from '../../db/schema.ts'
import { Fault } from '../fault.ts'
import { compileModelPatterns } from '../inference/model-pattern.ts'
import type { KeyRates } from './key-rates.ts'
import { remainingOf, type Spending } from './spending.ts'

/** @throws Fault `payment_required` when its budget is spent, `rate_limited` when it asks too often or has used too many tokens of late */
export function admit(
  key: Readonly<ApiKey>,
  { spending, keyRates }: { spending: Spending; keyRates: KeyRates },
  now: number,
): void {
  if (key.limitNanodollars !== null && remainingOf(key, spending.of(key.id, now)) === 0) {
    const period = key.limitReset === null ? '' : ` ${key.limitReset}`
    throw new Fault('payment_required', `The${period} limit of this key is spent`, { reason: 'key_limit_spent' })
  }
  const seconds = keyRates.take(key, now)
  if (seconds > 0)
    throw new Fault('rate_limited', 'Too many requests or tokens for this key; try again later', {
      reason: 'key_rate',
      headers: { 'retry-after': String(seconds) },
    })
}

/** @throws Fault `forbidden`, naming what is allowed, when the key is limited to other models than these, or none is named */
export function checkModels({ allowedModels }: Readonly<ApiKey>, models: readonly string[]): void {
  if (allowedModels === null) return
  const isAllowed = compileModelPatterns(allowedModels)
  if (models.length > 0 && models.every(isAllowed)) return
  throw new Fault('forbidden', `This key may only use the models: ${allowedModels.join(', ')}`)
}
