// Whether the last request to each upstream got a usable response, for health checks, metrics and the doctor; and whether
// one failed just now, for requests that any upstream may serve.
import type { Upstream } from './targets.ts'

export type Reachability = {
  /** A response with a status of 500 or more is not usable. */
  note: (upstream: Upstream, isUsable: boolean) => void
  /** Undefined until something was sent to it. */
  of: (upstream: Upstream) => boolean | undefined
  /** Whether its last request failed, and so recently that it is probably still down. */
  isDown: (upstream: Upstream) => boolean
}

/** Longer would keep requests away from an upstream that is up again, since nothing else may be sent to it. */
const downMilliseconds = 10_000

/** Keyed by the immutable value of an upstream: an edit makes a new value, about which nothing is known. */
export function createReachability(monotonic: () => number): Reachability {
  const known = new WeakMap<Upstream, true | { failedAt: number }>()
  return {
    note: (upstream, isUsable) => known.set(upstream, isUsable || { failedAt: monotonic() }),
    of: (upstream) => {
      const last = known.get(upstream)
      return last === undefined ? undefined : last === true
    },
    isDown: (upstream) => {
      const last = known.get(upstream)
      return last !== undefined && last !== true && monotonic() - last.failedAt < downMilliseconds
    },
  }
}
