// Gives each request a place at an inference server: at one of several equal ones, at once or when it is its turn. It knows no HTTP.
import { Fault } from '../../fault.ts'
import type { Upstream } from '../upstream/targets.ts'
import { chooseByAffinity, chooseLessBusy } from './balance.ts'
import { createDrainRates, type DrainRates } from './drain-rates.ts'
import { createFairQueue, type FairQueue } from './fair-queue.ts'
import { limitOf, limitOfBudget, limitOfKey, type QueueLimits } from './queue-limits.ts'
import type { QueueClass, Ticket } from './server-queue.ts'
import { createTokenRates, type TokenRates } from './token-rates.ts'

/** A request that asks for a place at one of the upstreams, at least one. */
export type PlaceRequest = {
  upstreams: readonly Upstream[]
  /** Upstreams that rested when it began to wait, and that it may use now. Called once a second while it waits. */
  recovered?: (() => readonly Upstream[]) | undefined
  key: { id: string; queueClass: QueueClass; queueWeight: number }
  /** Whose turn it is: the key, or somebody for whom the key acts. */
  counter: string
  /** Counters of budgets that limit how many run at once, in addition to the key. */
  budgets: readonly string[]
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
  /** The same for a call that may still run at the upstream, once that is over, or at the latest after `callEndMilliseconds`. */
  endAfterCall: (tokens: number | undefined, callEnd?: Promise<void>) => void
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
  runningOfBudget: (counter: string) => number
  keys: () => { id: string; running: number; waiting: number }[]
  /** What an upstream or a key has taken lately, by its id. */
  tokensPerSecond: (id: string) => number
}

type Dependencies = QueueLimits & {
  random: () => number
  hash: (text: string) => number
  monotonic: () => number
  every: (milliseconds: number, work: () => unknown) => () => void
  /** Called for each request that got a place after waiting. */
  onWaited: (upstream: Upstream, queueClass: QueueClass, milliseconds: number) => void
}

/** Each holds a connection and its body. */
const bounds = { waitingMax: 4_096, waitingPerCounterMax: 256 }
/**
 * How long an upstream may take to notice that a call was aborted: nothing on the connection says when it has. An engine ends such a request
 * after the step that it computes, which takes less.
 */
export const callEndMilliseconds = 100
/** Limits that changed, and servers that have recovered, start waiting requests within this time. */
const recheckMilliseconds = 1_000

/** What a waiting request does when it is its turn, and how it gets servers that have recovered. */
type WaitingRequest = { start: (server: string) => void; widen: () => void }

type State = Dependencies & {
  queue: FairQueue
  drainRates: DrainRates
  tokenRates: TokenRates
  waiting: Map<Ticket, WaitingRequest>
  affinityKeys: WeakMap<Ticket, string>
  stopRechecking: (() => void) | undefined
}

export function createDispatch(dependencies: Dependencies): Dispatch {
  const { registry, monotonic } = dependencies
  const queue: FairQueue = createFairQueue(bounds, {
    limitOf: (id) => limitOf(state, registry.upstreams.get(id)),
    limitOfKey: (id) => limitOfKey(state, id),
    limitOfBudget: (counter) => limitOfBudget(state, counter),
    choose: (ticket, servers) => (servers.length === 1 ? (servers[0] ?? '') : choose(state, ticket, servers)),
    onStart: (ticket, server) => state.waiting.get(ticket)?.start(server),
  })
  const state: State = {
    ...{ ...dependencies, queue, drainRates: createDrainRates(monotonic), tokenRates: createTokenRates(monotonic) },
    ...{ waiting: new Map(), affinityKeys: new WeakMap(), stopRechecking: undefined },
  }
  const { at, ofKey, runningOfBudget, keys } = queue
  return { at, ofKey, runningOfBudget, keys, tokensPerSecond: state.tokenRates.of, take: (asked) => take(state, asked) }
}

function take(state: State, asked: PlaceRequest): Place | Promise<Place> {
  const { affinityKey, waitMillisecondsMax, signal } = asked
  const ticket = ticketOf(asked)
  if (affinityKey !== undefined) state.affinityKeys.set(ticket, affinityKey)
  const outcome = state.queue.arrive(ticket)
  if (outcome === 'full') throw refusalOf(state, asked)
  if (outcome !== 'waiting') return placeOf(state, ticket, outcome.server, asked.upstreams, false)
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
  let { upstreams } = asked
  waiting.set(ticket, {
    start: (server) => {
      end()
      const place = placeOf(state, ticket, server, upstreams, true)
      onWaited(place.upstream, ticket.class, monotonic() - since)
      resolve(place)
    },
    widen: () => {
      const more = asked.recovered?.() ?? []
      upstreams = [...upstreams, ...more.filter((each) => !upstreams.includes(each))]
      for (const { id } of more) queue.widen(ticket, id)
    },
  })
  state.stopRechecking ??= every(recheckMilliseconds, () => recheck(state))
  return promise
}

function recheck({ waiting, queue }: State): void {
  for (const { widen } of waiting.values()) widen()
  queue.startAll()
}

function placeOf(
  state: State,
  ticket: Ticket,
  server: string,
  upstreams: readonly Upstream[],
  hasWaited: boolean,
): Place {
  const upstream = upstreams.find(({ id }) => id === server)
  if (upstream === undefined) throw new Error(`There is no upstream ${server}`)
  let isEnding = false
  return {
    upstream,
    hasWaited,
    end: (tokens) => {
      if (!isEnding) endPlace(state, ticket, server, tokens)
      isEnding = true
    },
    endAfterCall: (tokens, callEnd) => {
      if (!isEnding) void untilOver(callEnd).then(() => endPlace(state, ticket, server, tokens))
      isEnding = true
    },
  }
}

function endPlace(state: State, ticket: Ticket, server: string, tokens: number | undefined): void {
  const { queue, drainRates, tokenRates, registry } = state
  const isFull = queue.at(server).running >= limitOf(state, registry.upstreams.get(server))
  if (isFull) drainRates.note(server)
  else drainRates.forget(server)
  if (tokens !== undefined && tokens > 0) for (const id of [server, ticket.key]) tokenRates.note(id, tokens)
  queue.end(ticket, tokens)
}

function untilOver(callEnd: Promise<void> | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, callEndMilliseconds)
    void callEnd?.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
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

function refusalOf(state: State, asked: PlaceRequest): Fault {
  const { queue, drainRates } = state
  const { id } = asked.key
  const waitsFor = asked.upstreams.map((each) => drainRates.secondsFor(each.id, queue.at(each.id).waiting + 1))
  const seconds = Math.min(...waitsFor)
  return new Fault('rate_limited', `${whyRefused(state, asked)}; retry in ${seconds} s`, {
    reason: 'queue_full',
    subject: { kind: 'key', id },
    headers: { 'retry-after': String(seconds) },
  })
}

function whyRefused(state: State, { key: { id }, budgets }: PlaceRequest): string {
  const { queue } = state
  const limit = limitOfKey(state, id)
  if (queue.ofKey(id).running >= limit) return `This key is limited to ${requestsText(limit)} at once`
  const full = budgets.find((counter) => queue.runningOfBudget(counter) >= limitOfBudget(state, counter))
  if (full === undefined) return 'All inference servers for this request are busy'
  const name = JSON.stringify(state.budgets.nameOf(full))
  return `The budget ${name} is limited to ${requestsText(limitOfBudget(state, full))} at once`
}

function requestsText(count: number): string {
  return count === 1 ? '1 request' : `${count} requests`
}

function ticketOf({ upstreams, key, counter, budgets, cost, isRetry }: PlaceRequest): Ticket {
  const servers = upstreams.map(({ id }) => id)
  return { servers, counter, weight: key.queueWeight, class: key.queueClass, cost, key: key.id, budgets, isRetry }
}
