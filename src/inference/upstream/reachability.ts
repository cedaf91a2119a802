// Whether the last request to each upstream got a usable response, and since when it has not, for health checks, metrics and the doctor.
import type { Upstream } from './targets.ts'

/** Failures in a row. `since`: when the first was noted, in milliseconds since 1970. `problem`: of the last one. */
export type FailureRun = { since: number; failures: number; problem: string }

export type Reachability = {
  /** A response with a status of 500 or more is not usable. `problem` says what came instead. */
  note: (upstream: Upstream, isUsable: boolean, problem?: string) => void
  /** Undefined until something was sent to it. */
  of: (upstream: Upstream) => boolean | undefined
  /** Undefined unless the last request failed. */
  failing: (upstream: Upstream) => FailureRun | undefined
}

/** Keyed by the immutable value of an upstream: an edit makes a new value, about which nothing is known. */
export function createReachability(now: () => number): Reachability {
  const known = new WeakMap<Upstream, FailureRun | 'usable'>()
  const failing = (upstream: Upstream) => {
    const state = known.get(upstream)
    return state === 'usable' ? undefined : state
  }
  return {
    note: (upstream, isUsable, problem = 'there was no response') => {
      if (isUsable) return void known.set(upstream, 'usable')
      const { since = now(), failures = 0 } = failing(upstream) ?? {}
      known.set(upstream, { since, failures: failures + 1, problem })
    },
    of: (upstream) => (known.has(upstream) ? failing(upstream) === undefined : undefined),
    failing,
  }
}
