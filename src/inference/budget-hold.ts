// What a request holds of its budgets while it runs: an estimate, which what it used corrects.
import type { Principal } from '../keys/bearer.ts'
import type { BudgetRequest } from '../spending/budget-state.ts'
import type { Budgets } from '../spending/budgets.ts'
import { recordedText } from '../values/recorded-text.ts'
import type { Call } from './call.ts'
import { completionTokensAsked } from './expectation.ts'
import { costOf, type PriceList, priceInForce } from './prices.ts'

type HoldContext = { budgets: Budgets; registry: { readonly priceOf: PriceList }; now: () => number }
type HeldRequest = { call: Call; attribution: string | null; signal: AbortSignal; recheck: () => void }

const nothingHeld = () => {}

/** Who asks for which models, as budgets read it. */
export function askedOf({ accessToken }: Principal, attribution: string | null, { models, said }: Call): BudgetRequest {
  return { policyId: accessToken?.policyId ?? null, attribution, session: recordedText(said.sessionId), models }
}

/**
 * Returns the release. Near a limit it waits for requests that run. `recheck` is called after a wait.
 * @throws Fault `rate_limited` when others hold the rest for long, and what `recheck` throws
 */
export function holdBudgets(
  principal: Principal,
  { call, attribution, signal, recheck }: HeldRequest,
  { budgets, registry, now }: HoldContext,
): (() => void) | Promise<() => void> {
  if (budgets.all().length === 0) return nothingHeld
  const { json, fields, path, models } = call
  const [model] = models
  const row = model === undefined ? undefined : registry.priceOf(model)
  const priceOf = (promptTokens: number, completionTokens: number) => {
    // How long audio is, and how many images come, is known at the end: what earlier ones cost counts.
    if (row === undefined || path.unit !== undefined) return undefined
    const tokens = { promptTokens, completionTokens: path.generates ? completionTokens : 0 }
    const counts = { ...tokens, totalTokens: promptTokens + completionTokens, cachedTokens: null }
    return costOf(priceInForce(row, now()), { counts, units: undefined }, path) ?? undefined
  }
  const planned = {
    model,
    bytes: json?.bytes.byteLength ?? 0,
    outputMax: completionTokensAsked(fields) ?? row?.maxOutputTokens ?? undefined,
  }
  return budgets.hold(principal.key, {
    asking: askedOf(principal, attribution, call),
    estimate: (rule) => budgets.estimates.of(rule, planned, priceOf),
    ...{ check: recheck, signal, now, waitMilliseconds: principal.key.queueSeconds * 1_000 },
  })
}
