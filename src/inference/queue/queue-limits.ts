// How many requests this node lets run at a server, with a key and of a budget: its part of each limit.
import type { RunningLimits } from '../../spending/running-limits.ts'
import type { Upstream } from '../upstream/targets.ts'

export type QueueLimits = {
  registry: {
    readonly upstreams: ReadonlyMap<string, Upstream>
    readonly keys: { get: (id: string) => { concurrentRequests: number | null } | undefined }
  }
  budgets: Pick<RunningLimits, 'limitOf' | 'nameOf'>
  /** How many nodes share the limits. */
  liveNodes: () => number
}

/** What waits for a server that is gone starts, and finds that out. */
export function limitOf(state: QueueLimits, upstream: Upstream | undefined): number {
  const { maxRunning = null, deletedAt = 0 } = upstream ?? {}
  return maxRunning === null || deletedAt !== null ? Number.POSITIVE_INFINITY : shareOf(state, maxRunning)
}

/** A key that is gone has no limit: what waits with it starts, and finds that out. */
export function limitOfKey(state: QueueLimits, id: string): number {
  const limit = state.registry.keys.get(id)?.concurrentRequests ?? null
  return limit === null ? Number.POSITIVE_INFINITY : shareOf(state, limit)
}

/** The same of a budget that is gone. */
export function limitOfBudget(state: QueueLimits, counter: string): number {
  const limit = state.budgets.limitOf(counter)
  return limit === undefined ? Number.POSITIVE_INFINITY : shareOf(state, limit)
}

/** What this node lets run. */
function shareOf({ liveNodes }: QueueLimits, limit: number): number {
  return Math.max(1, Math.floor(limit / liveNodes()))
}
