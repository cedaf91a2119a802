// The budgets in force: which of them a key has, whether a request may begin, and what remains. It knows no database.
import type { BudgetPeriod } from '../../db/schema/budget-schema.ts'
import { Fault } from '../fault.ts'
import { nanodollarsPerDollar } from '../limits.ts'
import type { Amounts, Budget, KeyFacts, RequestFacts } from './budget.ts'
import { createEstimates, type Estimates } from './estimates.ts'
import { createHolds, type HeldPart } from './holds.ts'
import { type BudgetSums, createBudgetSums, type UsageAmounts } from './sums.ts'

/** A request that wants to begin. `models`: those that it names. */
export type BudgetRequest = RequestFacts & { models: readonly string[] }

/** What remains of a budget for a caller, for one measure of one window. */
export type RemainingAmount = {
  budget: Budget
  counter: string
  per: BudgetPeriod
  unit: 'usd' | 'tokens' | 'requests'
  limit: number
  spent: number
  remaining: number
  /** Milliseconds; infinite for a whole life. */
  resetsAt: number
}

/** `asking` and `check`: what the caller is now. */
export type WaitingRequest = {
  asking: BudgetRequest
  estimate: (rule: 'expected' | 'worst') => Amounts
  check: () => void
  signal: AbortSignal
  now: () => number
  waitMilliseconds?: number
}

export type Budgets = {
  /** Takes budgets and what was used of them in place of those before. */
  install: (budgets: readonly Budget[], sums: BudgetSums) => void
  estimates: Estimates
  /** All budgets in force. */
  all: () => readonly Budget[]
  sums: () => BudgetSums
  /** Adds what a request used, once its row is committed. */
  add: (key: KeyFacts, used: UsageAmounts) => void
  /**
   * @throws Fault `payment_required` when a budget that blocks is spent; `forbidden` for a model without a price, or when a budget has too
   * many counters
   */
  check: (key: KeyFacts, asking: BudgetRequest, hasPrice: (model: string) => boolean, now: number) => void
  /**
   * Holds what a request will probably use of its budgets until it is released, which can be done more than once. Near a limit it waits for
   * others.
   * @throws Fault as `check`, which it repeats after waiting; `rate_limited` when it has waited for long
   */
  hold: (key: KeyFacts, waiting: WaitingRequest) => (() => void) | Promise<() => void>
  /** What a counter of a budget spent, by window and measure. */
  spentOf: (budget: Budget, counter: string, now: number) => RemainingAmount[]
  /** What remains of every budget that a caller has, whatever models they ask for. */
  remainingFor: (key: KeyFacts, request: RequestFacts, now: number) => RemainingAmount[]
}

export function createBudgets(): Budgets {
  let [budgets, sums]: [readonly Budget[], BudgetSums] = [[], createBudgetSums([])]
  const holds = createHolds()
  const estimates = createEstimates()
  let ofKeys = new WeakMap<KeyFacts, readonly Budget[]>()

  /** Found once for each key: a key that changes is another object. */
  function budgetsOf(key: KeyFacts): readonly Budget[] {
    if (budgets.length === 0) return budgets
    const known = ofKeys.get(key) ?? budgets.filter((budget) => budget.appliesToKey(key))
    ofKeys.set(key, known)
    return known
  }

  function spentOf(budget: Budget, counter: string, now: number): RemainingAmount[] {
    return budget.windows.flatMap(({ per, periodAt }, index) => {
      const used = sums.usedOf(budget, counter, index, now)
      const limit = budget.limitOf(counter, index, now)
      const { end } = periodAt(now)
      return units.flatMap(([unit, field, divisor]) =>
        limit[field] === Infinity
          ? []
          : [
              {
                ...{ budget, counter, per, unit, limit: limit[field] / divisor, spent: used[field] / divisor },
                ...{ remaining: Math.max(0, limit[field] - used[field]) / divisor, resetsAt: end },
              },
            ],
      )
    })
  }

  function isSpent(budget: Budget, counter: string, now: number): boolean {
    for (let index = 0; index < budget.windows.length; index++) {
      const used = sums.usedOf(budget, counter, index, now)
      const limit = budget.limitOf(counter, index, now)
      if (used.nanodollars >= limit.nanodollars || used.tokens >= limit.tokens || used.requests >= limit.requests)
        return true
    }
    return false
  }

  function applies(budget: Budget, { policyId, models }: BudgetRequest): boolean {
    if (!budget.appliesToPolicy(policyId)) return false
    // A request that names no model gets one that the inference server chooses.
    return budget.models === undefined || models.length === 0 || models.some(budget.models)
  }

  function partsOf(key: KeyFacts, { asking, estimate, now }: WaitingRequest): HeldPart[] {
    const at = now()
    return budgetsOf(key).flatMap((budget) => {
      const { mode, hold, id } = budget.row
      if (mode !== 'block' || hold === 'off' || !applies(budget, asking)) return []
      const counter = budget.counterOf(key, asking)
      const left = budget.windows.map((_, index) => {
        const [limit, used] = [budget.limitOf(counter, index, at), sums.usedOf(budget, counter, index, at)]
        const of = (unit: keyof Amounts) => limit[unit] - used[unit]
        return { nanodollars: of('nanodollars'), tokens: of('tokens'), requests: of('requests') }
      })
      return [{ name: `${id} ${counter}`, own: estimate(hold), left }]
    })
  }

  async function waitFor(key: KeyFacts, waiting: WaitingRequest, first: string): Promise<() => void> {
    const until = performance.now() + (waiting.waitMilliseconds ?? holdMillisecondsMax)
    let place = holds.queue(first)
    try {
      for (;;) {
        await place.turn(until - performance.now(), waiting.signal)
        if (waiting.signal.aborted) throw new Fault('unavailable', 'The client left while the request waited')
        waiting.check()
        const held = holds.take(partsOf(key, waiting), true)
        if (typeof held !== 'string') return held
        if (performance.now() >= until) throw heldFault(budgets, held)
        if (held === place.name) continue
        place.leave()
        place = holds.queue(held)
      }
    } finally {
      place.leave()
    }
  }

  return {
    hold: (key, waiting) => {
      if (budgets.length === 0) return nothingHeld
      const parts = partsOf(key, waiting)
      if (parts.length === 0) return nothingHeld
      const held = holds.take(parts, false)
      return typeof held === 'string' ? waitFor(key, waiting, held) : held
    },
    install: (next, nextSums) => {
      ;[budgets, sums, ofKeys] = [next, nextSums, new WeakMap()]
      holds.wakeAll()
    },
    all: () => budgets,
    sums: () => sums,
    spentOf,
    estimates,
    add: (key, used) => sums.add(budgetsOf(key), key, used),
    check: (key, asking, hasPrice, now) => {
      const spent: RemainingAmount[] = []
      for (const budget of budgetsOf(key)) {
        if (budget.row.mode !== 'block' || !applies(budget, asking)) continue
        if (budget.row.unpriced === 'refuse') rejectUnpriced(budget, asking.models, hasPrice)
        const counter = budget.counterOf(key, asking)
        if (!sums.hasRoomFor(budget, counter)) throw tooManyCounters(budget)
        if (isSpent(budget, counter, now))
          spent.push(...spentOf(budget, counter, now).filter(({ remaining }) => remaining === 0))
      }
      if (spent.length > 0)
        throw spentFault(spent.reduce((one, other) => (one.resetsAt >= other.resetsAt ? one : other)))
    },
    remainingFor: (key, request, now) =>
      budgetsOf(key).flatMap((budget) =>
        budget.appliesToPolicy(request.policyId) ? spentOf(budget, budget.counterOf(key, request), now) : [],
      ),
  }
}

/** Requests wait so long for others that run. */
const holdMillisecondsMax = 30_000
const retrySeconds = 5
const nothingHeld = () => {}

function heldFault(budgets: readonly Budget[], held: string): Fault {
  const row = budgets.find((budget) => held.startsWith(`${budget.row.id} `))?.row
  const name = row?.name ?? ''
  return new Fault(
    'rate_limited',
    `The budget ${JSON.stringify(name)} is nearly spent, and running requests may use the rest; retry in ${retrySeconds} s`,
    {
      reason: 'budget_held',
      ...(row === undefined ? {} : { subject: { kind: 'budget' as const, id: row.id } }),
      headers: { 'retry-after': String(retrySeconds) },
      metadata: { budget: name },
    },
  )
}

const units: [RemainingAmount['unit'], keyof Amounts, divisor: number][] = [
  ['usd', 'nanodollars', nanodollarsPerDollar],
  ['tokens', 'tokens', 1],
  ['requests', 'requests', 1],
]

const periodNames: Record<BudgetPeriod, string> = {
  hour: 'hourly ',
  day: 'daily ',
  week: 'weekly ',
  month: 'monthly ',
  lifetime: '',
}

const unitNames: Record<RemainingAmount['unit'], string> = { usd: 'USD', tokens: 'tokens', requests: 'requests' }

/** The caller must wait for the latest reset, so that one is named. A client must not try again before: there is no `Retry-After`. */
function spentFault({ budget, counter, per, unit, limit, spent, resetsAt }: RemainingAmount): Fault {
  const { name, id, each } = budget.row
  const reset = resetsAt === Infinity ? null : new Date(resetsAt).toISOString()
  const whose = each === null || each === 'key' || counter === '' ? '' : ` of ${JSON.stringify(counter)}`
  const next = reset === null ? 'it does not reset: ask an administrator to raise it' : `it resets at ${reset}`
  return new Fault(
    'payment_required',
    `The ${periodNames[per]}budget ${JSON.stringify(name)}${whose}, ${limit} ${unitNames[unit]}, is spent; ${next}`,
    {
      reason: 'budget_spent',
      subject: { kind: 'budget', id },
      metadata: { budget: name, per, unit, limit, spent, resets_at: reset },
    },
  )
}

function rejectUnpriced({ row }: Budget, models: readonly string[], hasPrice: (model: string) => boolean): void {
  const unpriced = models.find((model) => !hasPrice(model))
  if (models.length > 0 && unpriced === undefined) return
  const which = unpriced === undefined ? 'name a model' : `${JSON.stringify(unpriced)} has none`
  throw new Fault('forbidden', `The budget ${JSON.stringify(row.name)} requires models with a price; ${which}`, {
    reason: 'model_unpriced',
    subject: { kind: 'budget', id: row.id },
    metadata: { budget: row.name },
  })
}

function tooManyCounters({ row }: Budget): Fault {
  return new Fault(
    'forbidden',
    `The budget ${JSON.stringify(row.name)} has too many different values; ask an administrator`,
    {
      reason: 'budget_values_exceeded',
      subject: { kind: 'budget', id: row.id },
    },
  )
}

/** Headers with the least that remains of each measure. */
export function remainingHeaders(remaining: readonly RemainingAmount[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [unit, name] of Object.entries(headerNames)) {
    const ofUnit = remaining.filter((each) => each.unit === unit).map((each) => each.remaining)
    if (ofUnit.length > 0) headers[name] = String(Math.min(...ofUnit))
  }
  return headers
}

const headerNames: Record<RemainingAmount['unit'], string> = {
  usd: 'x-latchkey-budget-remaining',
  tokens: 'x-ratelimit-remaining-tokens',
  requests: 'x-ratelimit-remaining-requests',
}
