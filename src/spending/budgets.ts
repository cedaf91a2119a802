// The budgets in force: whether a request may begin, what it holds meanwhile, and what remains. It knows no database.
import type { BudgetPeriod } from '../../db/schema/budget-schema.ts'
import type { SliceAmounts, SlicedCounter } from '../../db/tables/budget-slices.ts'
import { Fault } from '../fault.ts'
import { amountText } from '../values/amount-text.ts'
import type { Budget, KeyFacts, RequestFacts } from './budget.ts'
import {
  amountsSpent,
  type BudgetRequest,
  type BudgetState,
  budgetsOf,
  countersOf,
  createBudgetState,
  isAbout,
  isCounterSpent,
  type RemainingAmount,
  requestsWithoutCost,
  shareSpent,
} from './budget-state.ts'
import { createEstimates, type Estimates } from './estimates.ts'
import { createHolds } from './holds.ts'
import { limitRunning, type RunningLimits } from './running-limits.ts'
import { type Slices, slicesOf } from './slices.ts'
import { type BudgetSums, createBudgetSums, type UsageAmounts } from './sums.ts'
import { holdInTurn, type WaitingRequest } from './turns.ts'

export type Budgets = {
  /** Takes budgets and what was used of them in place of those before. */
  install: (budgets: readonly Budget[], sums: BudgetSums) => void
  /** Shares what is left of budgets near their limits with other nodes. Returns what lists the slices of this node, for its reports. */
  share: (slices: Slices, now: () => number) => () => (SlicedCounter & SliceAmounts)[]
  estimates: Estimates
  /** All budgets in force. */
  all: () => readonly Budget[]
  sums: () => BudgetSums
  /** Called when a counter has spent at least the lowest percent at which its budget alerts. `at` is in the period in question. */
  onNear: ((budget: Budget, counter: string, at: number) => void)[]
  /** Adds what a request used, once its row is committed. */
  add: (key: KeyFacts, used: UsageAmounts) => void
  /**
   * @throws Fault `payment_required` when a budget that blocks is spent; `forbidden` for a model without a price, or when a budget has too
   * many counters
   */
  check: (key: KeyFacts, asking: BudgetRequest, hasPrice: (model: string) => boolean, now: number) => void
  /** Whether a budget that blocks is about this request. */
  blocks: (key: KeyFacts, asking: BudgetRequest) => boolean
  /**
   * Holds what a request will probably use of its budgets until it is released, which can be done more than once. Near a limit it waits for
   * others.
   * @throws Fault `rate_limited` when it has waited for long, and what its check throws
   */
  hold: (key: KeyFacts, waiting: WaitingRequest) => (() => void) | Promise<() => void>
  /** How many requests may run at once. */
  running: RunningLimits
  /**
   * Called when the sums must be built again, at most once a minute: the clock was set back or ahead into a period that they no longer have,
   * or a budget has as many counters as it can have, of which some may be of the past.
   */
  onStale: (() => void)[]
  /** The greatest share that a counter has spent of what it may use, over all windows and measures. */
  shareOf: (budget: Budget, counter: string, at: number) => number
  /** The requests of a counter whose cost is unknown, in the window in dollars that has the most of them. */
  withoutCostOf: (budget: Budget, counter: string, at: number) => number
  /** What a counter of a budget spent, by window and measure. */
  spentOf: (budget: Budget, counter: string, now: number) => RemainingAmount[]
  /** What remains of every budget that a caller has, whatever models they ask for. */
  remainingFor: (key: KeyFacts, request: RequestFacts, now: number) => RemainingAmount[]
}

export function createBudgets(): Budgets {
  const [holds, estimates] = [createHolds(), createEstimates()]
  const onNear: Budgets['onNear'] = []
  let state = createBudgetState(
    [],
    createBudgetSums([], () => 0),
  )
  let running = limitRunning([])
  const onStale: Budgets['onStale'] = []
  const reportStale = limitStale(() => {
    for (const act of onStale) act()
  })
  /** Of the times that the sums were asked for since they were built. */
  let newest = 0
  let shared: Slices | undefined
  return {
    share: (slices, now) => {
      shared = slices
      return () => slicesOf(state, holds, slices, now())
    },
    install: (budgets, sums) => {
      state = createBudgetState(budgets, sums)
      running = limitRunning(budgets)
      holds.wakeAll()
    },
    estimates,
    all: () => state.budgets,
    sums: () => state.sums,
    onNear,
    add: (key, used) => {
      const ofKey = budgetsOf(state, key)
      state.sums.add(ofKey, key, used)
      if (onNear.length > 0) noteNear(state, key, used, onNear)
    },
    check: (key, asking, hasPrice, now) => {
      newest = Math.max(newest, now)
      const isStale = now < newest - setBackMilliseconds || now >= state.sums.droppedLater()
      if (isStale && reportStale(now)) newest = now
      check(state, key, asking, hasPrice, now, reportStale)
    },
    onStale,
    blocks: (key, asking) =>
      budgetsOf(state, key).some((budget) => budget.row.mode === 'block' && isAbout(budget, asking)),
    hold: (key, waiting) => holdInTurn({ state: () => state, holds, slices: shared }, key, waiting),
    running: {
      countersOf: (...asked) => running.countersOf(...asked),
      limitOf: (counter) => running.limitOf(counter),
      nameOf: (counter) => running.nameOf(counter),
    },
    shareOf: (budget, value, at) => shareSpent(state, { budget, value, place: state.sums.placeOf(budget, value) }, at),
    withoutCostOf: (budget, value, at) =>
      requestsWithoutCost(state, { budget, value, place: state.sums.placeOf(budget, value) }, at),
    spentOf: (...asked) => amountsSpent(state, ...asked),
    remainingFor: (key, request, now) =>
      budgetsOf(state, key).flatMap((budget) =>
        budget.appliesToPolicy(request.policyId)
          ? amountsSpent(state, budget, budget.counterOf(key, request), now)
          : [],
      ),
  }
}

function noteNear(state: BudgetState, key: KeyFacts, used: UsageAmounts, acts: Budgets['onNear']): void {
  for (const counter of countersOf(state, key, used)) {
    const { budget, value } = counter
    const [lowest] = budget.row.alerts
    if (lowest === undefined || !budget.counts(used)) continue
    if (shareSpent(state, counter, used.at) * 100 >= lowest) for (const act of acts) act(budget, value, used.at)
  }
}

/** The shortest period: sums have the current one and its neighbors. */
const setBackMilliseconds = 60 * 60 * 1_000
const staleEveryMilliseconds = 60_000

/** At most once a minute, by clocks that can be set back. Returns whether it acted. */
function limitStale(act: () => void): (now: number) => boolean {
  let last = Number.NEGATIVE_INFINITY
  return (now) => {
    if (Math.abs(now - last) < staleEveryMilliseconds) return false
    last = now
    act()
    return true
  }
}

function check(
  state: BudgetState,
  ...[key, asking, hasPrice, now, reportStale]: [...Parameters<Budgets['check']>, (now: number) => boolean]
): void {
  let spent: RemainingAmount[] | undefined
  for (const counter of countersOf(state, key, asking)) {
    const { budget, value } = counter
    if (budget.row.mode !== 'block' || !isAbout(budget, asking)) continue
    if (budget.row.unpriced === 'refuse') rejectUnpriced(budget, asking.models, hasPrice)
    if (counter.place < 0 && !state.sums.hasRoomFor(budget, value)) {
      reportStale(now)
      throw tooManyCounters(budget)
    }
    if (isCounterSpent(state, counter, now))
      spent = [...(spent ?? []), ...amountsSpent(state, budget, value, now).filter(({ remaining }) => remaining === 0)]
  }
  if (spent !== undefined)
    throw spentFault(spent.reduce((one, other) => (one.resetsAt >= other.resetsAt ? one : other)))
}

const periodNames: Record<BudgetPeriod, string> = {
  hour: 'hourly ',
  day: 'daily ',
  week: 'weekly ',
  month: 'monthly ',
  lifetime: '',
}

/** The caller must wait for the latest reset, so that one is named. A client must not try again before: there is no `Retry-After`. */
function spentFault({ budget, counter, per, unit, limit, spent, resetsAt }: RemainingAmount): Fault {
  const { name, id, each } = budget.row
  const reset = resetsAt === Infinity ? null : new Date(resetsAt).toISOString()
  const whose = each === null || each === 'key' || counter === '' ? '' : ` of ${JSON.stringify(counter)}`
  const next = reset === null ? 'it does not reset: ask an administrator to raise it' : `it resets at ${reset}`
  return new Fault(
    'payment_required',
    `The ${periodNames[per]}budget ${JSON.stringify(name)}${whose}, ${amountText(limit, unit)}, is spent; ${next}`,
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
  const which =
    unpriced === undefined
      ? 'name a model'
      : `${JSON.stringify(unpriced)} has none: use another model, or ask an administrator to set its price`
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
