// Notices that a database has gone back to an older state, or is another one: it lacks what was known of it. A node that sleeps meanwhile can
// find as many changes as it knows, or more, so each is compared by more than its number.
import { setTimeout as pause } from 'node:timers/promises'
import type { Position, RefreshResult, SharedDatabase } from '../../db/remote/shared-database.ts'

/** Why what is read now does not continue what was known, as a sentence without a full stop; undefined if it does. */
export function setbackOf(seen: RefreshResult, known: Position, installation: string): string | undefined {
  if (seen.installation !== installation) return 'The database server has a different database now'
  const lost = lostSince(seen, known)
  return lost === undefined ? undefined : `The database has gone back to an older state: ${lost}`
}

function lostSince(seen: RefreshResult, known: Position): string | undefined {
  if (!seen.isContinued)
    return seen.revision.id < known.revision.id
      ? `revision ${seen.revision.id} after ${known.revision.id}`
      : `it lacks the admin change of revision ${known.revision.id}, and has another one`
  if (seen.usageId < known.usageId) return `request ${seen.usageId} of the ledger after ${known.usageId}`
  if (seen.auditId < known.auditId) return `exchange ${seen.auditId} of the audit after ${known.auditId}`
  return seen.hasOwnCommits ? undefined : 'it lacks a commit that it has confirmed'
}

export const onReplica =
  'LATCHKEY_DATABASE_URL reaches a replica, which shows commits late: set it to the primary database server'

/** A replica lags by moments. */
const pauses = [50, 100, 200, 400]

/** Whether the same database shows what it lacked a moment ago: then it is a replica, and nothing is lost. */
export async function isLag(
  refresh: SharedDatabase['refresh'],
  known: Position,
  installation: string,
): Promise<boolean> {
  for (const milliseconds of pauses) {
    await pause(milliseconds)
    const seen = await refresh(known).catch(() => undefined)
    if (seen !== undefined && setbackOf(seen, known, installation) === undefined) return true
  }
  return false
}
