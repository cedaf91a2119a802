// Whether the last request to each upstream got a usable response, for health checks, metrics and the doctor.
import type { Upstream } from './targets.ts'

export type Reachability = {
  /** A response with a status of 500 or more is not usable. */
  note: (upstream: Upstream, isUsable: boolean) => void
  /** Undefined until something was sent to it. */
  of: (upstream: Upstream) => boolean | undefined
}

/** Keyed by the immutable value of an upstream: an edit makes a new value, about which nothing is known. */
export function createReachability(): Reachability {
  const known = new WeakMap<Upstream, boolean>()
  return { note: (upstream, isUsable) => known.set(upstream, isUsable), of: (upstream) => known.get(upstream) }
}
