// Which inference servers rest after failures, and until when. Pure: times are arguments, in milliseconds of a monotonic clock.

/** Failures in a row before a server rests. One slow probe of a busy server means little. */
const failuresMax = 3
const probeFailuresMax = 2
const restMillisecondsMin = 1_000
const restMillisecondsMax = 30_000
const offerMilliseconds = 1_000
/** What nobody has tried for so long is unknown. */
const memoryMilliseconds = 60_000
/** Callers choose the names of models. */
const limitedModelsMax = 1_000

/** What rests at a server: all of it after failures, or one model that has too many requests. Its end can be over: then it waits for a trial. */
export type Rest = { model: string | undefined; since: number; until: number }

/** Keyed by the immutable value of a server: an edit makes a new value, about which nothing is known. */
export type Circuits<Server extends object> = {
  rests: (server: Server, model: string | undefined, now: number) => boolean
  /**
   * Whether a request that is about to start may go there. After a rest, the first caller gets the trial, and the server rests for all others
   * until its outcome is noted, or until as much time has passed again.
   */
  admits: (server: Server, model: string | undefined, now: number) => boolean
  /**
   * Whether a request that waits for another server may start there too. After a rest, one of them in a second: it can be the trial.
   */
  isOffered: (server: Server, model: string | undefined, now: number) => boolean
  noteSuccess: (server: Server) => void
  /** A connection that failed or was too slow, or a status from 500 before the first byte: `hasResponded`. */
  noteFailure: (server: Server, hasResponded: boolean, now: number) => void
  /**
   * Returns whether the server has recovered. After failed probes it rests until one succeeds, or the last one is no longer valid. A probe that
   * succeeds ends a rest, unless the server has responded with failures to requests: its health does not show these.
   */
  noteProbe: (server: Server, isUp: boolean, validMilliseconds: number, now: number) => boolean
  /** A response 429 rests the server for this model alone, for at most 30 s. */
  noteLimited: (server: Server, model: string | undefined, retryAfterMilliseconds: number, now: number) => void
  list: (server: Server, now: number) => Rest[]
}

/** `at`: when it last failed. */
type Circuit = {
  failures: number
  at: number
  hasResponded: boolean
  rest: number
  since: number
  until: number
  isTrying: boolean
  /** Until when its trial is offered to nobody else. */
  offeredUntil: number
}
const noFailure = { failures: 0, rest: 0, until: 0, isTrying: false, offeredUntil: 0 }
type FailedProbes = { count: number; since: number; until: number }
type State = {
  circuit: Circuit | undefined
  failedProbes: FailedProbes | undefined
  limited: Map<string | undefined, Rest>
}

/** `random` returns numbers from 0 to below 1: a rest lasts between the half and the whole of 1, 2, 4 … 30 s. */
export function createCircuits<Server extends object>(random: () => number): Circuits<Server> {
  const states = new WeakMap<Server, State>()
  const stateOf = (server: Server) => {
    const state = states.get(server) ?? { circuit: undefined, failedProbes: undefined, limited: new Map() }
    states.set(server, state)
    return state
  }
  return {
    rests: (server, model, now) => {
      const state = states.get(server)
      if (state === undefined) return false
      return isLimited(state, model, now) || isDown(state, now) || (isOpen(state) && now < state.circuit.until)
    },
    admits: (server, model, now) => {
      const state = states.get(server)
      if (state === undefined) return true
      forgetOld(state, now)
      if (isLimited(state, model, now) || isDown(state, now)) return false
      if (!isOpen(state)) return true
      const { circuit } = state
      if (now < circuit.until) return false
      circuit.isTrying = true
      circuit.until = now + circuit.rest
      return true
    },
    isOffered: (server, model, now) => {
      const state = states.get(server)
      return state === undefined || isOffered(state, model, now)
    },
    noteSuccess: (server) => {
      const state = states.get(server)
      if (state !== undefined) state.circuit = state.failedProbes = undefined
    },
    noteFailure: (server, hasResponded, now) => {
      const state = stateOf(server)
      forgetOld(state, now)
      state.circuit ??= { ...noFailure, at: now, hasResponded, since: now }
      state.circuit.hasResponded = hasResponded
      fail(state.circuit, now, random)
    },
    noteProbe: (server, isUp, validMilliseconds, now) => {
      if (isUp) return recover(states.get(server))
      const state = stateOf(server)
      state.failedProbes ??= { count: 0, since: now, until: now }
      state.failedProbes.count += 1
      state.failedProbes.until = now + validMilliseconds
      return false
    },
    noteLimited: (server, model, retryAfterMilliseconds, now) => {
      const { limited } = stateOf(server)
      if (limited.size >= limitedModelsMax)
        for (const [each, { until }] of limited) if (until <= now) limited.delete(each)
      if (retryAfterMilliseconds <= 0 || limited.size >= limitedModelsMax) return
      limited.set(model, { model, since: now, until: now + Math.min(restMillisecondsMax, retryAfterMilliseconds) })
    },
    list: (server, now) => {
      const state = states.get(server)
      if (state === undefined) return []
      forgetOld(state, now)
      const models = [...state.limited.values()].filter(({ until }) => now < until)
      const whole = [isOpen(state) ? state.circuit : [], isDown(state, now) ? state.failedProbes : []].flat()
      if (whole.length === 0) return models
      const since = Math.min(...whole.map((each) => each.since))
      return [{ model: undefined, since, until: Math.max(...whole.map((each) => each.until)) }, ...models]
    },
  }
}

function forgetOld(state: State, now: number): void {
  const { at, until } = state.circuit ?? { at: now, until: now }
  if (now > Math.max(at, until) + memoryMilliseconds) state.circuit = undefined
}

function isOpen(state: State): state is State & { circuit: Circuit } {
  return state.circuit !== undefined && state.circuit.failures >= failuresMax
}

function isDown(state: State, now: number): state is State & { failedProbes: FailedProbes } {
  const { failedProbes } = state
  return failedProbes !== undefined && failedProbes.count >= probeFailuresMax && now < failedProbes.until
}

function recover(state: State | undefined): boolean {
  if (state === undefined) return false
  const wasUnreachable = state.circuit !== undefined && !state.circuit.hasResponded
  const hasRecovered = wasUnreachable || state.failedProbes !== undefined
  state.failedProbes = undefined
  if (wasUnreachable) state.circuit = undefined
  return hasRecovered
}

function isOffered(state: State, model: string | undefined, now: number): boolean {
  forgetOld(state, now)
  if (isLimited(state, model, now) || isDown(state, now)) return false
  if (!isOpen(state)) return true
  const { circuit } = state
  if (now < Math.max(circuit.until, circuit.offeredUntil)) return false
  circuit.offeredUntil = now + offerMilliseconds
  return true
}

function isLimited({ limited }: State, model: string | undefined, now: number): boolean {
  const rest = limited.get(model)
  if (rest === undefined) return false
  if (now < rest.until) return true
  limited.delete(model)
  return false
}

function fail(circuit: Circuit, now: number, random: () => number): void {
  circuit.failures += 1
  circuit.at = now
  if (circuit.failures < failuresMax) return
  if (circuit.failures === failuresMax) circuit.since = now
  // A request that began before the rest does not prolong it.
  else if (!circuit.isTrying) return
  circuit.isTrying = false
  circuit.rest = Math.min(restMillisecondsMax, Math.max(restMillisecondsMin, circuit.rest * 2))
  circuit.until = now + circuit.rest * (0.5 + random() / 2)
}
