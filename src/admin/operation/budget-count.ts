// How many budgets a key may have.
import { createPace } from '../../../db/read/pace.ts'
import type { Budget } from '../../../db/schema/budget-schema.ts'
import { Fault } from '../../fault.ts'
import { compileBudget, type KeyFacts } from '../../spending/budget.ts'

const budgetsOfKeyMax = 50

/** A key as budgets read it. */
export type NamedKey = KeyFacts & { name: string }

/**
 * Every budget of a key costs each of its requests time.
 * @throws Fault `invalid` if one of these keys would have too many of these budgets
 */
export async function rejectCrowd(rows: Iterable<Readonly<Budget>>, keys: Iterable<NamedKey>): Promise<void> {
  const inForce = [...rows].filter(({ deletedAt, enabled }) => deletedAt === null && enabled)
  if (inForce.length <= budgetsOfKeyMax) return
  const compiled = inForce.map((row) => compileBudget(row, null))
  const pace = createPace()
  for (const key of keys) {
    const count = compiled.filter((budget) => budget.appliesToKey(key)).length
    if (count > budgetsOfKeyMax)
      throw new Fault(
        'invalid',
        `The key ${JSON.stringify(key.name)} would have ${count} budgets; a key has at most ${budgetsOfKeyMax}: narrow applies_to, or delete budgets`,
      )
    const wait = pace()
    if (wait !== undefined) await wait
  }
}
