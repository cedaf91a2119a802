// Gives load balancers time to notice that a node is going to stop, before it refuses connections.
import { setTimeout as pause } from 'node:timers/promises'
import type { Follow } from './follow.ts'

/** What leaving needs. */
export type LeaveContext = { follow: Pick<Follow, 'liveNodes'>; readiness: { beginStop: () => void } }

/** Two checks of a load balancer that asks every two seconds, or the time in which Kubernetes removes an endpoint. */
const leaveMilliseconds = 5_000

/**
 * Reports not ready and serves on for five seconds. Each response closes its connection, so that a proxy keeps none.
 * Returns at once where no other node serves meanwhile.
 */
export async function leave({ follow, readiness }: LeaveContext, milliseconds = leaveMilliseconds): Promise<void> {
  readiness.beginStop()
  if (follow.liveNodes() > 1) await pause(milliseconds)
}
