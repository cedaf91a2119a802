// What remains of a budget, as operations on budgets and on keys return it.
import type { spentShape } from '../../keys/openapi.ts'
import type { RemainingAmount } from '../../spending/budget-state.ts'
import { timeOf } from './references.ts'

export function showRemaining({
  per,
  unit,
  limit,
  spent,
  remaining,
  resetsAt,
  requestsWithoutCost,
}: RemainingAmount): typeof spentShape.infer {
  const resets_at = timeOf(resetsAt === Infinity ? null : resetsAt)
  const unknown = unit === 'usd' ? { requests_without_cost: requestsWithoutCost } : {}
  return { per, unit, limit, spent, remaining, resets_at, ...unknown }
}
