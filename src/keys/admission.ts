// Whether a caller may infer now: the rates, the state and the budget of its key, and the models and presets that it is
// limited to.
import { Fault, type FaultSubject } from '../fault.ts'
import { modelCharactersMax, nanodollarsPerDollar } from '../limits.ts'
import type { AllowList, AllowLists } from './allow-lists.ts'
import { checkKeyState, type Key } from './api-key.ts'
import type { KeyRegistry, Principal } from './bearer.ts'
import type { KeyRates } from './key-rates.ts'
import { remainingOf, resetAfter, type Spending } from './spending.ts'

/** What admission needs. */
export type AdmissionContext = {
  registry: Pick<KeyRegistry, 'keys'>
  spending: Spending
  keyRates: KeyRates
  now: () => number
}

/**
 * Takes one request from the rate of a key.
 * @throws Fault `rate_limited` when the key has none left, or has used too many tokens
 */
export function takeRate(key: Key, { keyRates, now }: Pick<AdmissionContext, 'keyRates' | 'now'>): void {
  const { id, requestsPerMinute, tokensPerMinute } = key
  const seconds = keyRates.take(key, now())
  if (seconds === 0) return
  const limits = [
    ...(requestsPerMinute === null ? [] : [`${requestsPerMinute} requests`]),
    ...(tokensPerMinute === null ? [] : [`${tokensPerMinute} tokens`]),
  ]
  throw new Fault('rate_limited', `This key is limited to ${limits.join(' and ')} a minute; retry in ${seconds} s`, {
    reason: 'key_rate',
    subject: { kind: 'key', id },
    headers: { 'retry-after': String(seconds) },
  })
}

/**
 * The caller with its key as of the last acknowledged change, since the key may have changed while the body arrived.
 * @throws Fault `unauthorized` when the key is no longer usable
 */
export function refresh(
  { key: { id }, accessToken }: Principal,
  { registry, now }: Pick<AdmissionContext, 'registry' | 'now'>,
): Principal {
  return { key: checkKeyState(registry.keys.get(id), now()), accessToken }
}

/**
 * Returns a check, cheap enough for each chunk of a response, of whether the key is still usable: the fault when it is
 * not. `key` is a key of the registry.
 */
export function watchKey(
  key: Key,
  { registry, now }: Pick<AdmissionContext, 'registry' | 'now'>,
): () => Fault | undefined {
  let usable = key
  return () => {
    const current = registry.keys.get(usable.id)
    if (current === usable && usable.expiresAt === null) return undefined
    try {
      usable = checkKeyState(current, now())
      return undefined
    } catch (error) {
      return error as Fault
    }
  }
}

/** @throws Fault `payment_required` when the budget of the key is spent */
export function checkBudget(key: Key, { spending, now }: Pick<AdmissionContext, 'spending' | 'now'>): void {
  const { id, limitNanodollars, limitReset } = key
  if (limitNanodollars === null || remainingOf(key, spending.of(id, now())) !== 0) return
  const period = limitReset === null ? '' : `${limitReset} `
  const dollars = limitNanodollars / nanodollarsPerDollar
  const spent = `The ${period}limit of this key, ${dollars} USD, is spent`
  // A limit of nothing stays spent.
  const reset = limitNanodollars === 0 ? null : resetAfter(limitReset, now())
  const next =
    reset === null
      ? 'it does not reset: ask an administrator to raise it'
      : `it resets at ${new Date(reset).toISOString().slice(0, 16).replace('T', ' ')} UTC`
  throw new Fault('payment_required', `${spent}; ${next}`, {
    reason: 'key_limit_spent',
    subject: { kind: 'key', id },
  })
}

type Kind = keyof AllowLists
type Limit = { who: string; list: AllowList; subject: FaultSubject }

/** The limits of the key and of the access token, as far as there are any; `subject` is whose limit it is. */
function limitsOf({ key, accessToken }: Principal, kind: Kind): Limit[] {
  const limits: Limit[] = []
  const ofKey = key.allowed[kind]
  if (ofKey !== undefined) limits.push({ who: 'key', list: ofKey, subject: { kind: 'key', id: key.id } })
  const ofToken = accessToken?.allowed[kind]
  if (accessToken !== undefined && ofToken !== undefined)
    limits.push({ who: 'access token', list: ofToken, subject: { kind: 'policy', id: accessToken.policyId } })
  return limits
}

export function isLimited({ key, accessToken }: Principal, kind: Kind): boolean {
  return key.allowed[kind] !== undefined || accessToken?.allowed[kind] !== undefined
}

/** Whether the caller may use this model, or the preset with this slug. */
export function isAllowed({ key, accessToken }: Principal, kind: Kind, name: string): boolean {
  return (key.allowed[kind]?.allows(name) ?? true) && (accessToken?.allowed[kind]?.allows(name) ?? true)
}

/**
 * Refuses a limited caller that names another model, or none.
 * @throws Fault `forbidden`, with the models that are allowed
 */
export function checkModels(principal: Principal, models: readonly string[]): void {
  for (const { who, list, subject } of limitsOf(principal, 'models')) {
    const other = models.find((model) => !list.allows(model))
    if (models.length > 0 && other === undefined) continue
    const problem =
      other === undefined ? 'name a model' : `${JSON.stringify(other.slice(0, modelCharactersMax))} is not one of them`
    throw new Fault('forbidden', `This ${who} may only use the models: ${list.names.join(', ')}; ${problem}`, {
      reason: 'model_not_allowed',
      subject,
    })
  }
}

/**
 * Refuses a limited caller that names another preset, or none.
 * @throws Fault `forbidden`, with the presets that are allowed
 */
export function checkPreset(principal: Principal, slug: string | undefined): void {
  for (const { who, list, subject } of limitsOf(principal, 'presets')) {
    if (slug !== undefined && list.allows(slug)) continue
    throw new Fault('forbidden', `This ${who} may only use the presets: ${list.names.join(', ')}; name one of them`, {
      reason: 'preset_not_allowed',
      subject,
    })
  }
}
