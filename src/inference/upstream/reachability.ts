// Whether the last request to each upstream got a response, for health checks and metrics. Routing does not depend on it.
import type { Upstream } from './targets.ts'

export type Reachability = {
  note: (upstream: Upstream, isReachable: boolean) => void
  /** Undefined until something was sent to it. */
  of: (upstream: Upstream) => boolean | undefined
}

/** Keyed by the immutable value of an upstream: an edit makes a new value, about which nothing is known. */
export function createReachability(): Reachability {
  const known = new WeakMap<Upstream, boolean>()
  return {
    note: (upstream, isReachable) => known.set(upstream, isReachable),
    of: (upstream) => known.get(upstream),
  }
}
