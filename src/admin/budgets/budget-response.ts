// What operations return of a budget: its row, and what was spent of it.
import { createPace } from '../../../db/read/pace.ts'
import type { Budget as BudgetRow } from '../../../db/schema/budget-schema.ts'
import { spentShape } from '../../keys/openapi.ts'
import { createLargest } from '../../values/largest.ts'
import { type } from '../../values/shape.ts'
import { budgetFields } from '../kinds/budget.ts'
import { responseOf, showFields } from '../kinds/fields.ts'
import type { Needs } from '../operation/context.ts'
import { timeOf } from '../operation/references.ts'
import { showRemaining } from '../operation/remaining-response.ts'
import { nameOfValue } from './resolve-scope.ts'
import { mapScope, type ScopeNames } from './scope.ts'

/** `name` where the value is an id. */
const valueShape = type({ value: 'string', 'name?': 'string', spent: spentShape.array() })
/**
 * `spent` of a budget without `each`, or else `values`, with those that run out next first. `requests_without_cost`: the requests of the
 * current periods of windows in dollars whose cost is unknown; a budget without such a window has none.
 */
export const budgetResponse = type({
  ...responseOf(budgetFields),
  'spent?': spentShape.array(),
  'values?': valueShape.array(),
  'value_count?': 'number.integer',
  'requests_without_cost?': 'number.integer',
  'warnings?': 'string[]',
}).configure({ title: 'Budget' })

export type ShowContext = Needs<'registry' | 'budgets' | 'now'>

export function showBudget(
  { registry }: ShowContext,
  row: Readonly<BudgetRow>,
  workspaceName: ScopeNames['workspaces'],
) {
  const applies_to = mapScope(row.appliesTo, {
    workspaces: workspaceName,
    keys: (id) => registry.keys.get(id)?.name ?? id,
    policies: (id) => registry.policies.get(id)?.name ?? id,
  })
  const topUps = (row.topUps ?? []).map(({ until, at, ...rest }) => ({ ...rest, until: timeOf(until), at: timeOf(at) }))
  return showFields(budgetFields, row, { applies_to, top_ups: topUps }) as Omit<
    typeof budgetResponse.infer,
    keyof SpentResponse | 'warnings'
  >
}

type SpentResponse = Pick<typeof budgetResponse.infer, 'spent' | 'values' | 'value_count' | 'requests_without_cost'>

/** What was spent of a budget, while other work goes on. Those of a budget that is not in force are unknown. */
export async function showSpent(
  context: ShowContext,
  row: Readonly<BudgetRow>,
  valuesMax: number,
): Promise<SpentResponse> {
  const { budgets, now } = context
  const budget = budgets.all().find((each) => each.row.id === row.id)
  if (budget === undefined) return {}
  const at = now()
  const unknown = (requests: number) => (budget.limitsDollars ? { requests_without_cost: requests } : {})
  if (row.each === null)
    return {
      spent: budgets.spentOf(budget, '', at).map(showRemaining),
      ...unknown(budgets.withoutCostOf(budget, '', at)),
    }
  const first = createLargest<{ value: string; share: number; withoutCost: number }>(
    valuesMax,
    (one, other) =>
      other.share - one.share || other.withoutCost - one.withoutCost || (one.value < other.value ? -1 : 1),
  )
  const pace = createPace()
  let [value_count, requests] = [0, 0]
  for (const value of budgets.sums().countersOf(budget)) {
    const share = budgets.shareOf(budget, value, at)
    const withoutCost = budgets.withoutCostOf(budget, value, at)
    requests += withoutCost
    if (share > 0 || withoutCost > 0) {
      value_count += 1
      first.add({ value, share, withoutCost })
    }
    const wait = pace()
    if (wait !== undefined) await wait
  }
  const values = first.values().map(({ value }) => ({
    ...namedValue(value, nameOfValue(context, row.each, value)),
    spent: budgets.spentOf(budget, value, at).map(showRemaining),
  }))
  return { values, value_count, ...unknown(requests) }
}

/** A value, with the name of what it is the id of. */
export function namedValue(value: string, name: string | undefined): { value: string; name?: string } {
  return name === undefined ? { value } : { value, name }
}
