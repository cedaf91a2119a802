// A budget as it is checked: which requests it is about, to which of its counters they belong, and what each may use.
import type { BudgetAmounts, BudgetPeriod, Budget as BudgetRow, BudgetTopUp } from '../../db/schema/budget-schema.ts'
import { nanodollarsPerDollar } from '../limits.ts'
import { compilePatterns, type Patterns } from '../values/pattern.ts'
import { type Period, periodAt } from './periods.ts'

/** What a budget reads of a key. */
export type KeyFacts = {
  id: string
  organizationId: string
  workspaceId: string
  labels: Readonly<Record<string, string>> | null
}

/** What a budget reads of a request, or of totals of requests. Null where a request has none of it. */
export type RequestFacts = { policyId: string | null; attribution: string | null; session: string | null }

/** What was used, or may be. Infinite where nothing limits it. */
export type Amounts = { nanodollars: number; tokens: number; requests: number }

export type BudgetWindow = {
  per: BudgetPeriod
  limit: Amounts
  /** The period of a time; milliseconds. */
  periodAt: (time: number) => Period
}

export type Budget = {
  row: Readonly<BudgetRow>
  appliesToKey: (key: KeyFacts) => boolean
  appliesToPolicy: (policyId: string | null) => boolean
  /** Undefined: all models. */
  models: Patterns | undefined
  /** Whether it counts what a request used, whose key it applies to. */
  counts: (used: { policyId: string | null; model: string | null }) => boolean
  /** The counter of a request: one for all, or the value that the budget has one for each of; empty where that is missing. */
  counterOf: (key: KeyFacts, request: RequestFacts) => string
  windows: readonly BudgetWindow[]
  /** Whether a window or an override limits dollars. */
  limitsDollars: boolean
  /** The fewest requests that a window of any counter allows, without top-ups. */
  requestsMin: number
  /** What a counter may use in a window at a time, with overrides and top-ups. */
  limitOf: (counter: string, window: number, time: number) => Amounts
}

const labelPrefix = 'label:'

/** `timeZone`: of the organization. */
export function compileBudget(row: Readonly<BudgetRow>, timeZone: string | null): Budget {
  const { appliesTo, each, organizationId } = row
  const { workspaces, keys, labels, policies, models } = appliesTo ?? {}
  const [inWorkspaces, ofKeys, ofPolicies] = [workspaces, keys, policies].map((ids) => ids && new Set(ids))
  const wanted = Object.entries(labels ?? {})
  const windows = row.windows.map(({ per, ...amounts }) => ({
    per,
    limit: amountsOf(amounts),
    periodAt: rememberPeriod((time) => periodAt(per, time, timeZone)),
  }))
  const overrides = new Map(
    Object.entries(row.overrides ?? {}).map(([value, own]) => [
      value,
      row.windows.map((window) => amountsOf(own.find(({ per }) => per === window.per) ?? window)),
    ]),
  )
  const allLimits = [windows.map(({ limit }) => limit), ...overrides.values()].flat()
  const topUps = row.topUps ?? []
  const appliesToPolicy = (policyId: string | null) =>
    ofPolicies === undefined || (policyId !== null && ofPolicies.has(policyId))
  const compiled = models && compilePatterns(models)
  return {
    row,
    appliesToKey: (key) =>
      key.organizationId === organizationId &&
      inWorkspaces?.has(key.workspaceId) !== false &&
      ofKeys?.has(key.id) !== false &&
      wanted.every(([name, value]) => key.labels?.[name] === value),
    appliesToPolicy,
    models: compiled,
    counts: ({ policyId, model }) => appliesToPolicy(policyId) && compiled?.(model ?? '') !== false,
    counterOf: counterBy(each),
    windows,
    limitsDollars: allLimits.some(({ nanodollars }) => nanodollars !== Infinity),
    requestsMin: Math.min(...allLimits.map(({ requests }) => requests)),
    limitOf: (counter, index, time) => {
      const limit = overrides.get(counter)?.[index] ?? windows[index]?.limit ?? unlimited
      return topUps.length === 0 ? limit : toppedUp(limit, topUps, counter, time)
    },
  }
}

function counterBy(each: string | null): Budget['counterOf'] {
  if (each === null) return () => ''
  if (each === 'key') return ({ id }) => id
  if (each === 'policy') return (_key, { policyId }) => policyId ?? ''
  if (each === 'attribution') return (_key, { attribution }) => attribution ?? ''
  if (each === 'session') return (_key, { session }) => session ?? ''
  const label = each.slice(labelPrefix.length)
  return ({ labels }) => labels?.[label] ?? ''
}

const unlimited: Amounts = { nanodollars: Infinity, tokens: Infinity, requests: Infinity }

function amountsOf({ usd, tokens = Infinity, requests = Infinity }: BudgetAmounts): Amounts {
  return { nanodollars: usd === undefined ? Infinity : Math.round(usd * nanodollarsPerDollar), tokens, requests }
}

function toppedUp(limit: Amounts, topUps: readonly BudgetTopUp[], counter: string, time: number): Amounts {
  const sum = { ...limit }
  for (const { usd = 0, tokens = 0, requests = 0, until, value } of topUps) {
    if (time >= until || (value !== undefined && value !== counter)) continue
    sum.nanodollars += Math.round(usd * nanodollarsPerDollar)
    sum.tokens += tokens
    sum.requests += requests
  }
  return sum
}

/** Most times are in the period of the one before. */
function rememberPeriod(find: (time: number) => Period): (time: number) => Period {
  let last: Period = { start: 0, end: 0 }
  return (time) => {
    if (time < last.start || time >= last.end) last = find(time)
    return last
  }
}
