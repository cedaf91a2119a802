// Routes that are served from memory for some time while the database is away.
import { isUnreachable } from '../../db/remote/server-errors.ts'
import type { Follow } from '../nodes/follow.ts'

/** Waits for a refresh. Returns whether the route is served from memory instead. */
export async function refreshOrStale(
  refreshing: Promise<void>,
  { staleSecondsMax = 0 }: { staleSecondsMax?: number },
  { follow }: { follow: Pick<Follow, 'age' | 'isUpToDate'> },
): Promise<boolean> {
  const isKnown = () => follow.age() < staleSecondsMax * 1_000
  // Nobody waits for a refresh that is bound to fail.
  if (!follow.isUpToDate() && isKnown()) {
    refreshing.catch(() => {})
    return true
  }
  try {
    await refreshing
    return false
  } catch (error) {
    if (!isUnreachable(error) || !isKnown()) throw error
    return true
  }
}
