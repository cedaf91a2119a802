// The places that one request gets at inference servers, one after the other, until one of them has a response. Servers that rest come last.
import { Fault } from '../../fault.ts'
import type { Key } from '../../keys/api-key.ts'
import type { Attempt, AttemptGroup, Upstream } from '../upstream/targets.ts'
import type { Circuits } from './circuit.ts'
import type { Dispatch, Place } from './dispatch.ts'

export type PlaceContext = {
  registry: { readonly upstreams: ReadonlyMap<string, Upstream> }
  dispatch: Pick<Dispatch, 'take'>
  circuits: Circuits<Upstream>
  now: () => number
  monotonic: () => number
}

export type Search = {
  groups: readonly AttemptGroup[]
  key: Pick<Key, 'id' | 'queueClass' | 'queueWeight'>
  counter: string
  budgets: readonly string[]
  cost: number
  affinityKeyFor: (upstreams: readonly Upstream[]) => string | undefined
  signal: AbortSignal
  /** When the request stops waiting, in milliseconds since 1970 UTC. */
  waitsUntil: number
  /** Called after a wait. It throws if the request may no longer go on. */
  recheck: () => void
}

/** Where a request is tried next. The caller ends the place. */
export type Taken = { attempt: Attempt; place: Place }

/** How the attempts before ended. After a response, no server needs to be tried that rests. */
export type Failure = { hasResponse: boolean }

/** The context is that of the whole request: copying its members would cost more than everything else here. */
type Finder = {
  readonly search: Search
  readonly context: PlaceContext
  /** The group that is tried, and those of its upstreams that were not. */
  at: number
  left: readonly Upstream[]
  triesResting: boolean
  /** The upstreams that were tried, each with the position of its group. */
  readonly tried: string[]
  busy: Fault | undefined
}
const none: readonly Upstream[] = []
type SearchResult = Taken | undefined | Promise<Taken | undefined>

/**
 * Returns how to get the next place, given how the attempts before failed; undefined when no server is left.
 * @throws Fault `rate_limited` when all servers are busy for too long; what `recheck` throws; the reason of the signal
 */
export function searchPlaces(search: Search, context: PlaceContext): (failure: Failure | undefined) => SearchResult {
  const left = search.groups[0]?.upstreams ?? []
  const finder: Finder = { search, context, at: 0, left, triesResting: false, tried: [], busy: undefined }
  return (failure) => findNext(finder, failure)
}

function findNext(finder: Finder, failure: Failure | undefined): SearchResult {
  for (let open = findOpen(finder, failure); open !== undefined; open = findOpen(finder, failure)) {
    try {
      const place = take(finder, open, failure !== undefined)
      if (place instanceof Promise) return waitFor(finder, place, open.model, failure)
      const taken = accept(finder, place, open.model)
      if (taken !== undefined) return taken
    } catch (error) {
      goOnIfBusy(finder, error)
    }
  }
  return undefined
}

/** Upstreams of one group that were not tried; undefined when there is no group left. */
function findOpen(finder: Finder, failure: Failure | undefined): AttemptGroup | undefined {
  for (;;) {
    const group = finder.search.groups[finder.at]
    if (group !== undefined) {
      const upstreams = finder.triesResting ? finder.left : awake(finder.left, group.model, finder.context)
      if (upstreams === group.upstreams && upstreams.length > 0) return group
      if (upstreams.length > 0) return { model: group.model, upstreams }
      goTo(finder, finder.at + 1)
      continue
    }
    if (finder.triesResting || failure?.hasResponse) return undefined
    if (finder.busy !== undefined && failure === undefined) throw finder.busy
    finder.triesResting = true
    goTo(finder, 0)
  }
}

/** Those that do not rest; the same list if none does. */
function awake(
  upstreams: readonly Upstream[],
  model: string | undefined,
  { circuits, monotonic }: PlaceContext,
): readonly Upstream[] {
  const now = monotonic()
  for (const upstream of upstreams)
    if (circuits.rests(upstream, model, now)) return upstreams.filter((each) => !circuits.rests(each, model, now))
  return upstreams
}

function take(finder: Finder, { upstreams, model }: AttemptGroup, isRetry: boolean): Place | Promise<Place> {
  const { key, counter, budgets, cost, signal, waitsUntil, affinityKeyFor } = finder.search
  const { now, dispatch } = finder.context
  const waitMillisecondsMax = Math.max(0, waitsUntil - now())
  const affinityKey = upstreams.length > 1 ? affinityKeyFor(upstreams) : undefined
  const recovered = upstreams.length < finder.left.length ? recoveredAmong(finder, upstreams, model) : undefined
  return dispatch.take({
    upstreams,
    recovered,
    key,
    counter,
    budgets,
    cost,
    affinityKey,
    isRetry,
    waitMillisecondsMax,
    signal,
  })
}

/** Finds those that rested when the others were chosen, and no longer do. */
function recoveredAmong({ left, context }: Finder, chosen: readonly Upstream[], model: string | undefined) {
  const resting = left.filter((each) => !chosen.includes(each))
  const { circuits, monotonic } = context
  return () => resting.filter((each) => circuits.isOffered(each, model, monotonic()))
}

async function waitFor(
  finder: Finder,
  waiting: Promise<Place>,
  model: string | undefined,
  failure: Failure | undefined,
): Promise<Taken | undefined> {
  let place: Place
  try {
    place = await waiting
  } catch (error) {
    goOnIfBusy(finder, error)
    return findNext(finder, failure)
  }
  return accept(finder, place, model) ?? findNext(finder, failure)
}

/** Undefined if the upstream cannot be used after all. */
function accept(finder: Finder, place: Place, model: string | undefined): Taken | undefined {
  const { circuits, monotonic } = finder.context
  finder.left = finder.left.length === 1 ? none : finder.left.filter(({ id }) => id !== place.upstream.id)
  try {
    if (place.hasWaited) finder.search.recheck()
  } catch (error) {
    place.end()
    throw error
  }
  // It may have been edited or removed since the search began.
  const upstream = finder.context.registry.upstreams.get(place.upstream.id)
  const isUsable = upstream !== undefined && upstream.deletedAt === null
  if (isUsable && (finder.triesResting || circuits.admits(upstream, model, monotonic()))) {
    finder.tried.push(`${finder.at} ${upstream.id}`)
    return { attempt: { upstream, model }, place }
  }
  place.end(0)
  return undefined
}

function goOnIfBusy(finder: Finder, error: unknown): void {
  if (!(error instanceof Fault) || error.reason !== 'queue_full') throw error
  finder.busy ??= error
  goTo(finder, finder.at + 1)
}

function goTo(finder: Finder, index: number): void {
  const upstreams = finder.search.groups[index]?.upstreams ?? []
  finder.at = index
  finder.left = upstreams.filter(({ id }) => !finder.tried.includes(`${index} ${id}`))
}
