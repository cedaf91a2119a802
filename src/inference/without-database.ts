// What an inference request may do while a server database is away or takes no commits: nothing, unless LATCHKEY_DATABASE_GRACE says so, and
// then not what other nodes can have used up meanwhile.
import { isUnreachable } from '../../db/remote/server-errors.ts'
import { Fault } from '../fault.ts'
import type { Key } from '../keys/api-key.ts'
import { requireWritable, type WriteState } from '../observe/write-check.ts'
import type { BudgetRequest } from '../spending/budget-state.ts'
import type { Budgets } from '../spending/budgets.ts'

export type InferenceGrace = {
  /** Whether inference may be served now, whatever the database does. */
  mayServe: () => boolean
  /** Whether the database is away or takes no commits, or rows of usage still wait: what was spent is not known. */
  isUncertain: () => boolean
  /** Call it for each request that is served without the database. */
  noteUse: () => void
}

/** `grace` is undefined where the settings give none. */
type GraceContext = { grace: InferenceGrace | undefined }

/**
 * Undefined where the usage of a request can be recorded, or may wait on the disk.
 * @throws Fault `unavailable`
 */
export function requireRecordable(context: WriteState & GraceContext): Promise<void> | undefined {
  if (!context.isWriteFailing() || context.grace?.mayServe() !== true) return requireWritable(context)
  // A probe notices when the database takes commits again. Nobody waits for it.
  void context.isWritable()
  return undefined
}

/** Whether a refresh has succeeded. @throws its error where nothing may be served without it */
export async function isRefreshed(refreshing: Promise<void>, { grace }: GraceContext): Promise<boolean> {
  try {
    await refreshing
    return true
  } catch (error) {
    if (!isUnreachable(error) || grace?.mayServe() !== true) throw error
    return false
  }
}

/**
 * Refuses a caller with a budget while nobody knows what other nodes have spent of it. `isStale`: the request was not refreshed.
 * @throws Fault `unavailable`
 */
export function checkGrace(
  isStale: boolean,
  key: Key,
  asking: BudgetRequest,
  { grace, budgets }: GraceContext & { budgets: Pick<Budgets, 'blocks'> },
): void {
  if (grace === undefined || !(isStale || grace.isUncertain())) return
  if (key.limitNanodollars !== null || budgets.blocks(key, asking))
    throw new Fault('unavailable', 'The service is temporarily unavailable; try again later', {
      reason: 'database_away_budget',
      headers: { 'retry-after': '5' },
    })
  grace.noteUse()
}
