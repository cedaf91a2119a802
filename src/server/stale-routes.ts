// Routes that are served from memory for some time while the database is away.
import { isUnreachable } from '../../db/remote/server-errors.ts'
import type { Follow } from '../nodes/follow.ts'
import type { Grace } from '../nodes/grace.ts'

/** Waits for a refresh. Returns whether the route is served from memory instead. */
export async function refreshOrStale(
  refreshing: Promise<void>,
  { staleSecondsMax = 0, servesInGrace }: { staleSecondsMax?: number; servesInGrace?: true },
  { follow, grace }: { follow: Pick<Follow, 'age' | 'isUpToDate'>; grace: Pick<Grace, 'mayServe'> | undefined },
): Promise<boolean> {
  const isKnown = () => follow.age() < staleSecondsMax * 1_000 || (servesInGrace === true && grace?.mayServe() === true)
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
