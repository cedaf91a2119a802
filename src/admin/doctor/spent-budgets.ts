// Which budgets refuse requests now because they are spent, and for which values. Read from the sums in memory.
import { createPace } from '../../../db/read/pace.ts'
import type { Budget } from '../../spending/budget.ts'
import { nameOfValue } from '../budgets/resolve-scope.ts'
import type { Needs } from '../operation/context.ts'
import type { SpentBudget } from './organization-rules.ts'

/** Of one budget: more are counted only. */
const valuesMax = 100

/** By organization: the budgets that refuse requests, while other work goes on. */
export async function readSpentBudgets(
  context: Needs<'registry' | 'budgets' | 'now'>,
  only: string | undefined,
): Promise<Map<string, SpentBudget[]>> {
  const found = new Map<string, SpentBudget[]>()
  const pace = createPace()
  for (const budget of context.budgets.all()) {
    const { organizationId, mode } = budget.row
    if (mode !== 'block' || organizationId !== (only ?? organizationId)) continue
    const spent = await spentOf(context, budget, pace)
    if (spent !== undefined) found.set(organizationId, [...(found.get(organizationId) ?? []), spent])
  }
  return found
}

async function spentOf(
  context: Needs<'registry' | 'budgets' | 'now'>,
  budget: Budget,
  pace: ReturnType<typeof createPace>,
): Promise<SpentBudget | undefined> {
  const { budgets, now } = context
  const { name, each } = budget.row
  const at = now()
  const spent: SpentBudget = { name, values: [], count: 0, resetsAt: 0 }
  for (const value of each === null ? [''] : valuesOf(budgets, budget)) {
    if (budgets.shareOf(budget, value, at) >= 1 || allowsNothing(budget, value, at)) {
      spent.count += 1
      if (each !== null && spent.values.length < valuesMax)
        spent.values.push(nameOfValue(context, each, value) ?? value)
      for (const { remaining, resetsAt } of budgets.spentOf(budget, value, at))
        if (remaining === 0) spent.resetsAt = Math.max(spent.resetsAt, resetsAt)
    }
    const wait = pace()
    if (wait !== undefined) await wait
  }
  return spent.count === 0 ? undefined : spent
}

/** Those that used something, and those with overrides, which can allow nothing. */
function* valuesOf(budgets: Needs<'budgets'>['budgets'], budget: Budget): Generator<string> {
  const sums = budgets.sums()
  yield* sums.countersOf(budget)
  for (const value of Object.keys(budget.row.overrides ?? {})) if (sums.placeOf(budget, value) < 0) yield value
}

function allowsNothing({ windows, limitOf }: Budget, value: string, at: number): boolean {
  return windows.some((_, index) => Object.values(limitOf(value, index, at)).includes(0))
}
