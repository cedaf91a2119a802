// How many requests each counter of a budget may run at once. The queue in front of the inference servers counts what runs.
import type { Budget, KeyFacts } from './budget.ts'
import { type BudgetRequest, isAbout } from './budget-state.ts'

export type RunningLimits = {
  /** The counters that limit a request, one for each budget with a limit. */
  countersOf: (key: KeyFacts, asking: BudgetRequest) => readonly string[]
  /** Undefined once no budget in force has the counter. */
  limitOf: (counter: string) => number | undefined
  /** The name of its budget. */
  nameOf: (counter: string) => string | undefined
}

const none: readonly string[] = []
/** Between the id of a budget and the value that it counts. */
const separator = '\n'

/** `budgets`: those in force. Those that only warn limit nothing. */
export function limitRunning(budgets: readonly Budget[]): RunningLimits {
  const limiting = budgets.filter(({ row }) => row.concurrentRequests !== null && row.mode === 'block')
  const rows = new Map(limiting.map(({ row }) => [row.id, row]))
  const rowOf = (counter: string) => rows.get(counter.slice(0, counter.indexOf(separator)))
  return {
    countersOf: (key, asking) =>
      limiting.length === 0
        ? none
        : limiting
            .filter((budget) => budget.appliesToKey(key) && isAbout(budget, asking))
            .map((budget) => `${budget.row.id}${separator}${budget.counterOf(key, asking)}`),
    limitOf: (counter) => rowOf(counter)?.concurrentRequests ?? undefined,
    nameOf: (counter) => rowOf(counter)?.name,
  }
}
