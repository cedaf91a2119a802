// Which inference servers rest after failures, and until when. Pure: times are arguments, in milliseconds.

/** Failures in a row before a server rests. */
const failuresMax = 3
const restMillisecondsMin = 1_000
const restMillisecondsMax = 30_000

/** Why a server rests: connections or responses that failed, or a model of it that has too many requests. */
export type Rest = { server: string; model: string | undefined; since: number; until: number }

export type Circuits = {
  /**
   * Whether a request may go there. After a rest, the first caller gets the trial, and the server rests for all others until its outcome
   * is noted, or until as much time has passed again.
   */
  admits: (server: string, model: string | undefined, now: number) => boolean
  /** The same, but takes no trial. */
  rests: (server: string, model: string | undefined, now: number) => boolean
  noteSuccess: (server: string) => void
  /** A connection that failed, or a status from 500 before the first byte. */
  noteFailure: (server: string, now: number) => void
  /** A response 429 rests the server for this model alone. */
  noteLimited: (server: string, model: string | undefined, retryAfterMilliseconds: number, now: number) => void
  /** What rests now, in order of its beginning. */
  list: (now: number) => Rest[]
  /** Forgets a server that was deleted. */
  forget: (server: string) => void
}

type Circuit = { failures: number; rest: number; since: number; until: number; isTrying: boolean }

/** `random` returns numbers from 0 to below 1: a rest lasts between the half and the whole of 1, 2, 4 … 30 s. */
export function createCircuits(random: () => number): Circuits {
  const circuits = new Map<string, Circuit>()
  const limited = new Map<string, { server: string; model: string | undefined; since: number; until: number }>()

  function isLimited(server: string, model: string | undefined, now: number): boolean {
    const key = limitKey(server, model)
    const rest = limited.get(key)
    if (rest === undefined) return false
    if (now < rest.until) return true
    limited.delete(key)
    return false
  }
  const isOpen = (circuit: Circuit | undefined, now: number) =>
    circuit !== undefined && circuit.failures >= failuresMax && now < circuit.until

  return {
    rests: (server, model, now) => isLimited(server, model, now) || isOpen(circuits.get(server), now),
    admits: (server, model, now) => {
      if (isLimited(server, model, now)) return false
      const circuit = circuits.get(server)
      if (circuit === undefined || circuit.failures < failuresMax) return true
      if (now < circuit.until) return false
      circuit.isTrying = true
      circuit.until = now + circuit.rest
      return true
    },
    noteSuccess: (server) => void circuits.delete(server),
    noteFailure: (server, now) => {
      const circuit = circuits.get(server) ?? { failures: 0, rest: 0, since: now, until: 0, isTrying: false }
      circuits.set(server, circuit)
      circuit.failures += 1
      if (circuit.failures < failuresMax) return
      if (circuit.failures === failuresMax) circuit.since = now
      // A request that began before the rest does not prolong it.
      else if (!circuit.isTrying) return
      circuit.isTrying = false
      circuit.rest = Math.min(restMillisecondsMax, Math.max(restMillisecondsMin, circuit.rest * 2))
      circuit.until = now + circuit.rest * (0.5 + random() / 2)
    },
    noteLimited: (server, model, retryAfterMilliseconds, now) => {
      if (retryAfterMilliseconds <= 0) return
      const until = now + Math.min(restMillisecondsMax, retryAfterMilliseconds)
      limited.set(limitKey(server, model), { server, model, since: now, until })
    },
    list: (now) =>
      [
        ...[...circuits]
          .filter(([, circuit]) => circuit.failures >= failuresMax)
          .map(([server, { since, until }]) => ({ server, model: undefined, since, until })),
        ...[...limited.values()].filter(({ until }) => now < until),
      ].toSorted((one, other) => one.since - other.since),
    forget: (server) => {
      circuits.delete(server)
      for (const [key, rest] of limited) if (rest.server === server) limited.delete(key)
    },
  }
}

function limitKey(server: string, model: string | undefined): string {
  return `${server}\n${model ?? ''}`
}
