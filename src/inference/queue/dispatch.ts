// Gives each request a place at an inference server: at one of several equal ones, at once or when it is its turn. It knows no HTTP.
import { Fault } from '../../fault.ts'
import type { Upstream } from '../upstream/targets.ts'
import { chooseByAffinity, chooseLessBusy } from './balance.ts'
import { createDrainRates, type DrainRates } from './drain-rates.ts'
import { createFairQueue, type FairQueue } from './fair-queue.ts'
import type { QueueClass, Ticket } from './server-queue.ts'
import { createTokenRates, type TokenRates } from './token-rates.ts'

/** A request that asks for a place at one of the upstreams, at least one. */
export type PlaceRequest = {
  upstreams: readonly Upstream[]
  key: { id: string; queueClass: QueueClass; queueWeight: number }
  /** Whose turn it is: the key, or somebody for whom the key acts. */
  counter: string
  /** The tokens that it is expected to take. */
  cost: number
  /** What keeps requests at one of several servers, where these have an affinity. */
  affinityKey: string | undefined
  isRetry: boolean
  waitMillisecondsMax: number
  signal: AbortSignal
}

export type Place = {
  readonly upstream: Upstream
  readonly hasWaited: boolean
  /** Gives the place to the next request. `tokens`: how many it took, if that is known. */
  end: (tokens?: number) => void
}

export type Dispatch = {
  /**
   * A place, or the promise of one. The promise is rejected with the reason of the signal.
   * @throws Fault `rate_limited` with the reason `queue_full` if it may not wait, or has waited for too long
   */
  take: (asked: PlaceRequest) => Place | Promise<Place>
  /** How many requests run and wait at an upstream, and of a key. */
  at: (upstreamId: string) => { running: number; waiting: number }
  ofKey: (keyId: string) => { running: number; waiting: number }
  keys: () => { id: string; running: number; waiting: number }[]
  /** What an upstream or a key has taken lately, by its id. */
  tokensPerSecond: (id: string) => number
}

type Dependencies = {
  registry: {
    readonly upstreams: ReadonlyMap<string, Upstream>
    readonly keys: { get: (id: string) => { concurrentRequests: number | null } | undefined }
  }
  /** How many nodes share the limits. */
  liveNodes: () => number
  random: () => number
  hash: (text: string) => number
  monotonic: () => number
  every: (milliseconds: number, work: () => unknown) => () => void
  /** Called for each request that got a place after waiting. */
  onWaited: (upstream: Upstream, queueClass: QueueClass, milliseconds: number) => void
}

/** Each holds a connection and its body. */
const bounds = { waitingMax: 4_096, waitingPerCounterMax: 256 }
/** Limits that changed start waiting requests within this time. */
const recheckMilliseconds = 1_000

type State = Dependencies & {
  queue: FairQueue
  drainRates: DrainRates
  tokenRates: TokenRates
  /** What each waiting request does when it is its turn. */
  waiting: Map<Ticket, (server: string) => void>
  affinityKeys: WeakMap<Ticket, string>
  stopRechecking: (() => void) | undefined
}

export function createDispatch(dependencies: Dependencies): Dispatch {
  const { registry, monotonic } = dependencies
  const queue: FairQueue = createFairQueue(bounds, {
    limitOf: (id) => limitOf(state, registry.upstreams.get(id)),
    limitOfKey: (id) => limitOfKey(state, id),
    choose: (ticket, servers) => (servers.length === 1 ? (servers[0] ?? '') : choose(state, ticket, servers)),
    onStart: (ticket, server) => state.waiting.get(ticket)?.(server),
  })
  const state: State = {
    ...{ ...dependencies, queue, drainRates: createDrainRates(monotonic), tokenRates: createTokenRates(monotonic) },
    ...{ waiting: new Map(), affinityKeys: new WeakMap(), stopRechecking: undefined },
  }
  const { at, ofKey, keys } = queue
  return { at, ofKey, keys, tokensPerSecond: state.tokenRates.of, take: (asked) => take(state, asked) }
}

function take(state: State, asked: PlaceRequest): Place | Promise<Place> {
  const { affinityKey, waitMillisecondsMax, signal } = asked
  const ticket = ticketOf(asked)
  if (affinityKey !== undefined) state.affinityKeys.set(ticket, affinityKey)
  const outcome = state.queue.arrive(ticket)
  if (outcome === 'full') throw refusalOf(state, asked)
  if (outcome !== 'waiting') return placeOf(state, ticket, outcome.server, asked, false)
  if (waitMillisecondsMax > 0 && !signal.aborted) return wait(state, ticket, asked)
  state.queue.leave(ticket)
  if (signal.aborted) return Promise.reject(signal.reason)
  throw refusalOf(state, asked)
}

function wait(state: State, ticket: Ticket, asked: PlaceRequest): Promise<Place> {
  const { queue, waiting, monotonic, every, onWaited } = state
  const { signal, waitMillisecondsMax } = asked
  const { promise, resolve, reject } = Promise.withResolvers<Place>()
  const since = monotonic()
  const end = () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
    waiting.delete(ticket)
    if (waiting.size > 0) return
    state.stopRechecking?.()
    state.stopRechecking = undefined
  }
  const leave = (reason: unknown) => {
    end()
    queue.leave(ticket)
    reject(reason)
  }
  const onAbort = () => leave(signal.reason)
  const timer = setTimeout(() => leave(refusalOf(state, asked)), waitMillisecondsMax)
  signal.addEventListener('abort', onAbort)
  waiting.set(ticket, (server) => {
    end()
    const place = placeOf(state, ticket, server, asked, true)
    onWaited(place.upstream, ticket.class, monotonic() - since)
    resolve(place)
  })
  state.stopRechecking ??= every(recheckMilliseconds, queue.startAll)
  return promise
}

function placeOf(state: State, ticket: Ticket, server: string, asked: PlaceRequest, hasWaited: boolean): Place {
  const { queue, drainRates, tokenRates, registry } = state
  const upstream = asked.upstreams.find(({ id }) => id === server)
  if (upstream === undefined) throw new Error(`There is no upstream ${server}`)
  let hasEnded = false
  return {
    upstream,
    hasWaited,
    end: (tokens) => {
      if (hasEnded) return
      hasEnded = true
      const isFull = queue.at(server).running >= limitOf(state, registry.upstreams.get(server))
      if (isFull) drainRates.note(server)
      else drainRates.forget(server)
      for (const id of [server, ticket.key]) if (tokens !== undefined && tokens > 0) tokenRates.note(id, tokens)
      queue.end(ticket, tokens)
    },
  }
}

function choose(state: State, ticket: Ticket, servers: readonly string[]): string {
  const { registry, queue, random, hash, affinityKeys } = state
  const candidates = servers.map((id) => {
    const { weight = 1 } = registry.upstreams.get(id) ?? {}
    return { id, weight, running: queue.at(id).running }
  })
  const affinityKey = affinityKeys.get(ticket)
  const chosen =
    affinityKey === undefined ? chooseLessBusy(candidates, random) : chooseByAffinity(candidates, affinityKey, hash)
  return chosen.id
}

/** What waits for a server that is gone starts, and finds that out. */
function limitOf(state: State, upstream: Upstream | undefined): number {
  const { maxRunning = null, deletedAt = 0 } = upstream ?? {}
  return maxRunning === null || deletedAt !== null ? Number.POSITIVE_INFINITY : shareOf(state, maxRunning)
}

/** A key that is gone has no limit: what waits with it starts, and finds that out. */
function limitOfKey(state: State, id: string): number {
  const limit = state.registry.keys.get(id)?.concurrentRequests ?? null
  return limit === null ? Number.POSITIVE_INFINITY : shareOf(state, limit)
}

/** What this node lets run. */
function shareOf({ liveNodes }: State, limit: number): number {
  return Math.max(1, Math.floor(limit / liveNodes()))
}

function refusalOf(state: State, { upstreams, key: { id } }: PlaceRequest): Fault {
  const { queue, drainRates } = state
  const seconds = Math.min(...upstreams.map((each) => drainRates.secondsFor(each.id, queue.at(each.id).waiting + 1)))
  const limit = limitOfKey(state, id)
  const why =
    queue.ofKey(id).running >= limit
      ? `This key is limited to ${limit} requests at once`
      : 'All inference servers for this request are busy'
  return new Fault('rate_limited', `${why}; retry in ${seconds} s`, {
    reason: 'queue_full',
    subject: { kind: 'key', id },
    headers: { 'retry-after': String(seconds) },
  })
}

function ticketOf({ upstreams, key, counter, cost, isRetry }: PlaceRequest): Ticket {
  const servers = upstreams.map(({ id }) => id)
  return { servers, counter, weight: key.queueWeight, class: key.queueClass, cost, key: key.id, isRetry }
}
