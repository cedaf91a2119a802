// Whether a caller may infer now: the rates and the budget of its key, and the models and presets that key or token is limited to.
import type { ApiKey } from '../../db/schema.ts'
import { Fault } from '../fault.ts'
import { modelCharactersMax, nanodollarsPerDollar } from '../limits.ts'
import { compilePatterns } from '../values/pattern.ts'
import type { Principal } from './bearer.ts'
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

type List = 'allowedModels' | 'allowedPresets'
const reasons: Record<List, string> = { allowedModels: 'model_not_allowed', allowedPresets: 'preset_not_allowed' }
type Bound = { who: string; names: string[]; reason: string }

/** What the key is limited to, and what the access token is, where they are. */
function boundsOf({ key, accessToken }: Principal, list: List): Bound[] {
  const bounds: Bound[] = []
  const ofKey = key[list]
  if (ofKey !== null) bounds.push({ who: 'key', names: ofKey, reason: `${reasons[list]}, key ${key.id}` })
  const ofToken = accessToken?.[list] ?? null
  if (ofToken !== null)
    bounds.push({ who: 'access token', names: ofToken, reason: `${reasons[list]}, policy ${accessToken?.policyId}` })
  return bounds
}

/** Whether the caller may use some of them only. */
export function isLimited(principal: Principal, list: List): boolean {
  return boundsOf(principal, list).length > 0
}

/** Whether the caller may use this model, or the preset with this slug. */
export function isAllowed(principal: Principal, list: List): (name: string) => boolean {
  const bounds = boundsOf(principal, list).map(({ names }) => compilePatterns(names))
  return (name) => bounds.every((fits) => fits(name))
}

/** @throws Fault `forbidden`, naming what is allowed, when the caller is limited to other models than these; to name none is another */
export function checkModels(principal: Principal, models: readonly string[]): void {
  for (const { who, names, reason } of boundsOf(principal, 'allowedModels')) {
    const mayUse = compilePatterns(names)
    const other = models.find((model) => !mayUse(model))
    if (models.length > 0 && other === undefined) continue
    const which =
      other === undefined
        ? 'a model has to be named'
        : `${JSON.stringify(other.slice(0, modelCharactersMax))} is none of them`
    throw new Fault('forbidden', `This ${who} may only use the models: ${names.join(', ')}; ${which}`, { reason })
  }
}

/** @throws Fault `forbidden`, naming what is allowed, when the caller is limited to other presets than this; to name none is another */
export function checkPreset(principal: Principal, slug: string | undefined): void {
  for (const { who, names, reason } of boundsOf(principal, 'allowedPresets')) {
    if (slug !== undefined && compilePatterns(names)(slug)) continue
    throw new Fault('forbidden', `This ${who} may only use the presets: ${names.join(', ')}`, { reason })
  }
}
