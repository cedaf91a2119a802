// What was used of each budget, in memory: one sum for each counter and period. The ledger's totals are the truth; these sums
// are built from them, and grow with every row that is committed.
import type { Amounts, Budget, KeyFacts, RequestFacts } from './budget.ts'

type Sum = Amounts & { start: number }
/** By window: the sums of its latest periods. */
type Counter = Sum[][]

/** What requests used at a time, in milliseconds. */
export type UsageAmounts = RequestFacts & { model: string | null; at: number; amounts: Amounts }

export type BudgetSums = {
  /** Adds what was used at a time (milliseconds) to those of the budgets of the key that it belongs to. */
  add: (ofKey: readonly Budget[], key: KeyFacts, used: UsageAmounts) => void
  /** What a counter used in the period of a window that has this time. */
  usedOf: (budget: Budget, counter: string, window: number, at: number) => Readonly<Amounts>
  /** The counters of a budget. */
  countersOf: (budget: Budget) => Iterable<string>
  /** Reports whether a counter is known, or can be added. */
  hasRoomFor: (budget: Budget, counter: string) => boolean
}

/** Requests that began before the end of a period end after it, and clocks are set back. */
const periodsMax = 3
/** More than one budget needs; each takes some hundred bytes. */
const countersMaxByDefault = 100_000

const nothing: Readonly<Amounts> = Object.freeze({ nanodollars: 0, tokens: 0, requests: 0 })

/** `budgets`: those that are in force. */
export function createBudgetSums(budgets: readonly Budget[], countersMax = countersMaxByDefault): BudgetSums {
  const counters = new Map<Budget, Map<string, Counter>>(budgets.map((budget) => [budget, new Map()]))

  function addTo(budget: Budget, counter: string, at: number, used: Amounts): void {
    const known = counters.get(budget)
    if (known === undefined || budget.windows.length === 0) return
    const counted = known.get(counter) ?? budget.windows.map(() => [])
    if (!known.has(counter)) known.set(counter, counted)
    for (const [index, window] of budget.windows.entries()) {
      const { start } = window.periodAt(at)
      const sums = counted[index] ?? []
      const sum = sums.find((each) => each.start === start) ?? begin(sums, start)
      sum.nanodollars += used.nanodollars
      sum.tokens += used.tokens
      sum.requests += used.requests
    }
  }

  return {
    add: (ofKey, key, used) => {
      for (const budget of ofKey) {
        if (!budget.appliesToPolicy(used.policyId) || budget.models?.(used.model ?? '') === false) continue
        addTo(budget, budget.counterOf(key, used), used.at, used.amounts)
      }
    },
    usedOf: (budget, counter, index, at) => {
      const sums = counters.get(budget)?.get(counter)?.[index]
      const window = budget.windows[index]
      if (sums === undefined || window === undefined) return nothing
      const { start } = window.periodAt(at)
      return sums.find((each) => each.start === start) ?? nothing
    },
    countersOf: (budget) => counters.get(budget)?.keys() ?? [],
    hasRoomFor: (budget, counter) => {
      const known = counters.get(budget)
      return known === undefined || known.size < countersMax || known.has(counter)
    },
  }
}

/** The sum of the earliest period is dropped. */
function begin(sums: Sum[], start: number): Sum {
  const sum = { start, nanodollars: 0, tokens: 0, requests: 0 }
  sums.push(sum)
  if (sums.length > periodsMax) {
    const earliest = sums.reduce((one, other) => (one.start <= other.start ? one : other))
    sums.splice(sums.indexOf(earliest), 1)
  }
  return sum
}
