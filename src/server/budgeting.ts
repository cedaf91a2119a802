// Keeps the sums of budgets true while the server runs: builds them again when what they count changes, and lets nodes share what is left.
import type { Database } from '../../db/file/open.ts'
import type { Writer } from '../../db/write/write.ts'
import { describeError } from '../fault.ts'
import { type NodeSlices, shareBudgets } from '../nodes/budget-slices.ts'
import type { BudgetBuilder } from '../nodes/budget-sums.ts'
import type { Follow } from '../nodes/follow.ts'
import type { Log } from '../observe/log.ts'
import type { Registry } from '../registry/registry.ts'
import type { Budgets } from '../spending/budgets.ts'

type BudgetingParts = {
  database: Database
  registry: Registry
  budgets: Budgets
  budgetBuilder: BudgetBuilder
  writer: Pick<Writer, 'write' | 'holdLedger'>
  follow: Follow
  now: () => number
  monotonic: () => number
  log: Log
}

/** Returns the slices of this node of a server database. */
export function startBudgeting(parts: BudgetingParts): NodeSlices | undefined {
  const { database, registry, budgets, budgetBuilder, writer, log } = parts
  const build = () => budgetBuilder.build(database.shared === undefined ? writer.holdLedger : undefined)
  registry.onBudgetsChanged.push(build)
  budgets.onStale.push(() => {
    build().catch((error: unknown) => log('error', 'budget_sums_failed', { reason: describeError(error) }))
  })
  return database.shared && shareBudgets({ ...parts, orm: database.orm }, budgets, parts.now)
}
