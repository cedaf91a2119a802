// The budgets in force with what was used of them, and which of them a request has.
import type { BudgetPeriod } from '../../db/schema/budget-schema.ts'
import { nanodollarsPerDollar } from '../limits.ts'
import type { Amounts, Budget, KeyFacts, RequestFacts } from './budget.ts'
import type { BudgetSums, UsedAmounts } from './sums.ts'

/** A request that wants to begin. `models`: those that it names. */
export type BudgetRequest = RequestFacts & { models: readonly string[] }

export type BudgetState = {
  budgets: readonly Budget[]
  sums: BudgetSums
  /** Found once for each key: a key that changes is another object. */
  ofKeys: WeakMap<KeyFacts, KeyBudgets>
}

/** The budgets of a key, and of each the counter that its last request had. */
type KeyBudgets = { budgets: readonly Budget[]; counters: (Counter | undefined)[] }

/** What a budget counts for one value. `name`: of all counters. `place`: in the sums. */
export type Counter = { readonly budget: Budget; readonly value: string; readonly name: string; place: number }

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
  /** Requests whose cost is unknown, so that they are not in what was spent; 0 in other measures than dollars. */
  requestsWithoutCost: number
}

export function createBudgetState(budgets: readonly Budget[], sums: BudgetSums): BudgetState {
  return { budgets, sums, ofKeys: new WeakMap() }
}

export function budgetsOf(state: BudgetState, key: KeyFacts): readonly Budget[] {
  return state.budgets.length === 0 ? state.budgets : budgetsOfKey(state, key).budgets
}

function budgetsOfKey({ budgets, ofKeys }: BudgetState, key: KeyFacts): KeyBudgets {
  const known = ofKeys.get(key)
  if (known !== undefined) return known
  const own = budgets.filter((budget) => budget.appliesToKey(key))
  const found = { budgets: own, counters: own.map(() => undefined) }
  ofKeys.set(key, found)
  return found
}

/** The counters of a request, one for each budget of its key. */
export function countersOf(state: BudgetState, key: KeyFacts, request: RequestFacts): readonly Counter[] {
  if (state.budgets.length === 0) return []
  const { budgets, counters } = budgetsOfKey(state, key)
  const found: Counter[] = []
  for (let index = 0; index < budgets.length; index++) {
    const budget = budgets[index]
    if (budget === undefined) continue
    const value = budget.counterOf(key, request)
    let counter = counters[index]
    if (counter?.value !== value) {
      counter = { budget, value, name: counterName(budget.row.id, value), place: -1 }
      counters[index] = counter
    }
    if (counter.place < 0) counter.place = state.sums.placeOf(budget, value)
    found.push(counter)
  }
  return found
}

/** A counter among those of all budgets: ids have no blanks. */
const counterName = (budgetId: string, value: string) => `${budgetId} ${value}`

export function counterNamed(name: string): { budgetId: string; counter: string } {
  const end = name.indexOf(' ')
  return { budgetId: name.slice(0, end), counter: name.slice(end + 1) }
}

/** A request that names no model gets one that the inference server chooses. */
export function isAbout(budget: Budget, { policyId, models }: BudgetRequest): boolean {
  if (!budget.appliesToPolicy(policyId)) return false
  return budget.models === undefined || models.length === 0 || models.some(budget.models)
}

/** What was read last: it is read several times for each request. */
const used: UsedAmounts = { nanodollars: 0, tokens: 0, requests: 0, requestsWithoutCost: 0 }

/** What is left of a counter: of each measure, in the window that has the least. Negative where it is overspent. */
export function leftOf({ sums }: BudgetState, { budget, value, place }: Counter, now: number): Amounts {
  const left = { nanodollars: Infinity, tokens: Infinity, requests: Infinity }
  for (let index = 0; index < budget.windows.length; index++) {
    const limit = budget.limitOf(value, index, now)
    sums.read(budget, place, index, now, used)
    left.nanodollars = Math.min(left.nanodollars, limit.nanodollars - used.nanodollars)
    left.tokens = Math.min(left.tokens, limit.tokens - used.tokens)
    left.requests = Math.min(left.requests, limit.requests - used.requests)
  }
  return left
}

export const isSpent = ({ nanodollars, tokens, requests }: Amounts) => nanodollars <= 0 || tokens <= 0 || requests <= 0

/** As `isSpent` of what is left. */
export function isCounterSpent({ sums }: BudgetState, { budget, value, place }: Counter, now: number): boolean {
  for (let index = 0; index < budget.windows.length; index++) {
    const limit = budget.limitOf(value, index, now)
    sums.read(budget, place, index, now, used)
    if (limit.nanodollars <= used.nanodollars || limit.tokens <= used.tokens || limit.requests <= used.requests)
      return true
  }
  return false
}

/** The greatest share that a counter has spent of what it may use, over all windows and measures. */
export function shareSpent(
  { sums }: BudgetState,
  { budget, value, place }: Pick<Counter, 'budget' | 'value' | 'place'>,
  at: number,
): number {
  let share = 0
  for (let index = 0; index < budget.windows.length; index++) {
    const limit = budget.limitOf(value, index, at)
    sums.read(budget, place, index, at, used)
    if (used.nanodollars > 0) share = Math.max(share, used.nanodollars / limit.nanodollars)
    if (used.tokens > 0) share = Math.max(share, used.tokens / limit.tokens)
    if (used.requests > 0) share = Math.max(share, used.requests / limit.requests)
  }
  return share
}

/** The requests of unknown cost of a counter: in the window in dollars that has the most of them. */
export function requestsWithoutCost(
  { sums }: BudgetState,
  { budget, value, place }: Pick<Counter, 'budget' | 'value' | 'place'>,
  at: number,
): number {
  let most = 0
  for (let index = 0; index < budget.windows.length; index++) {
    if (budget.limitOf(value, index, at).nanodollars === Infinity) continue
    sums.read(budget, place, index, at, used)
    most = Math.max(most, used.requestsWithoutCost)
  }
  return most
}

const units: [RemainingAmount['unit'], keyof Amounts, divisor: number][] = [
  ['usd', 'nanodollars', nanodollarsPerDollar],
  ['tokens', 'tokens', 1],
  ['requests', 'requests', 1],
]

/** What a counter of a budget spent, by window and measure. */
export function amountsSpent({ sums }: BudgetState, budget: Budget, counter: string, now: number): RemainingAmount[] {
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
              requestsWithoutCost: unit === 'usd' ? used.requestsWithoutCost : 0,
            },
          ],
    )
  })
}
