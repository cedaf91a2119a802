// What running requests hold of budgets, from their admission until their rows are committed. It is never stored: a crash ends
// holds with their requests. Near a limit, requests wait for one another. Where several nodes share a database, each then has a slice of what is
// left: what its requests hold, and a reserve for the next ones.
import type { Amounts } from './budget.ts'

/** A counter that a request holds a part of, with what is left of it. `isSliced`: its part must fit into the reserve of this node. */
export type HeldPart = { name: string; own: Amounts; left: Amounts; isSliced?: boolean }

export type Holds = {
  /**
   * Takes the parts and returns their release, or returns the name of a counter that has no room. A request that is alone on a counter
   * always gets it: an estimate makes requests take turns, and refuses nothing. `isTurn`: it has waited.
   */
  take: (parts: readonly HeldPart[], isTurn: boolean) => (() => void) | string
  /** A place among those that wait for a counter, until it is left. */
  queue: (name: string) => WaitingPlace
  /** Lets those who wait look again, since budgets have changed. */
  wakeAll: () => void
  /** What requests hold of a counter. */
  heldOf: (name: string) => Readonly<Amounts>
  /** Begins to change the slice of a counter: gives up its reserve, and returns what is held. Then end it. */
  beginSlice: (name: string) => Amounts
  /** Sets the reserve of a counter. */
  endSlice: (name: string, reserve: Amounts) => void
  /**
   * The slices that other nodes must know: of counters with a reserve, and those that `isNear`. Reserves that were not used since the last
   * call are given up.
   */
  listSlices: (isNear: (name: string, held: Amounts) => boolean) => { name: string; slice: Amounts }[]
  /** Gives up all reserves. */
  dropReserves: () => void
  /** How many requests hold a part of a counter, and how many wait for it. */
  sizeOf: (name: string) => { holding: number; waiting: number }
}

export type WaitingPlace = {
  isFirst: () => boolean
  /** Resolves when something was released and it is the turn of this place, or after this time, or when the signal aborts. */
  turn: (milliseconds: number, signal: AbortSignal) => Promise<void>
  /** Gives the turn to the next one. */
  leave: () => void
}

/** `isUsed`: a request has taken of the reserve lately. `isChanging`: its slice is being taken. */
type Counter = Amounts & { holding: number; waiting: { resume: () => void }[] } & {
  reserve: Amounts | undefined
  isUsed: boolean
  isChanging: boolean
}

/** As many as a node uses at once. */
const idleMax = 1_000

export function createHolds(): Holds {
  const counters = new Map<string, Counter>()

  let sweptAt = idleMax
  /** Idle counters stay for the next request, up to some number. */
  function sweep(): void {
    for (const [name, counter] of counters) if (isIdle(counter)) counters.delete(name)
    sweptAt = Math.max(idleMax, 2 * counters.size)
  }

  function counterOf(name: string): Counter {
    let counter = counters.get(name)
    if (counter === undefined) {
      if (counters.size >= sweptAt) sweep()
      const slice = { reserve: undefined, isUsed: false, isChanging: false }
      counter = { nanodollars: 0, tokens: 0, requests: 0, holding: 0, waiting: [], ...slice }
      counters.set(name, counter)
    }
    return counter
  }

  function release(parts: readonly HeldPart[], held: readonly Counter[]): void {
    for (let index = 0; index < parts.length; index++) {
      const [part, counter] = [parts[index], held[index]]
      if (part === undefined || counter === undefined) continue
      counter.holding -= 1
      // Sums of fractions do not come back to zero by themselves.
      if (counter.holding === 0) clear(counter)
      else add(counter, part.own, -1)
    }
    for (const counter of held) wakeNext(counter)
  }

  return {
    take: (parts, isTurn) => {
      for (const part of parts) if (!hasRoom(counters.get(part.name), part, isTurn)) return part.name
      const held: Counter[] = []
      for (const { name, own, left, isSliced } of parts) {
        const counter = counterOf(name)
        counter.holding += 1
        add(counter, own, 1)
        held.push(counter)
        if (isSliced !== true || counter.reserve === undefined) continue
        add(counter.reserve, limitedOf(own, left), -1)
        counter.isUsed = true
      }
      let isHeld = true
      return () => {
        if (isHeld) release(parts, held)
        isHeld = false
      }
    },
    queue: (name) => queueAt(counterOf(name)),
    wakeAll: () => {
      for (const { waiting } of counters.values()) for (const place of [...waiting]) place.resume()
    },
    heldOf: (name) => counters.get(name) ?? nothing,
    beginSlice: (name) => {
      const counter = counterOf(name)
      counter.isChanging = true
      counter.reserve = { ...nothing }
      return amountsOf(counter)
    },
    endSlice: (name, reserve) => Object.assign(counterOf(name), { isChanging: false, isUsed: true, reserve }),
    listSlices: (isNear) => slicesIn(counters, isNear),
    dropReserves: () => {
      for (const counter of counters.values()) if (counter.reserve !== undefined) counter.reserve = { ...nothing }
    },
    sizeOf: (name) => ({
      holding: counters.get(name)?.holding ?? 0,
      waiting: counters.get(name)?.waiting.length ?? 0,
    }),
  }
}

const isIdle = ({ holding, waiting, reserve, isChanging }: Counter) =>
  holding === 0 && waiting.length === 0 && reserve === undefined && !isChanging

function wakeNext({ waiting }: Counter): void {
  waiting[0]?.resume()
}

function slicesIn(
  counters: ReadonlyMap<string, Counter>,
  isNear: (name: string, held: Amounts) => boolean,
): ReturnType<Holds['listSlices']> {
  const slices: ReturnType<Holds['listSlices']> = []
  for (const [name, counter] of counters) {
    if (counter.isChanging || isIdle(counter) || (counter.reserve === undefined && !isNear(name, counter))) continue
    counter.reserve = counter.isUsed && counter.reserve !== undefined ? counter.reserve : { ...nothing }
    const slice = amountsOf(counter)
    add(slice, counter.reserve, 1)
    slices.push({ name, slice })
    if (!counter.isUsed && counter.holding === 0) counter.reserve = undefined
    counter.isUsed = false
  }
  return slices
}

const nothing: Readonly<Amounts> = Object.freeze({ nanodollars: 0, tokens: 0, requests: 0 })

const amountsOf = ({ nanodollars, tokens, requests }: Amounts): Amounts => ({ nanodollars, tokens, requests })

function clear(sum: Amounts): void {
  sum.nanodollars = 0
  sum.tokens = 0
  sum.requests = 0
}

function add(sum: Amounts, { nanodollars, tokens, requests }: Amounts, sign: 1 | -1): void {
  sum.nanodollars += sign * nanodollars
  sum.tokens += sign * tokens
  sum.requests += sign * requests
}

/** Nothing is in reserve of what the budget does not limit. */
function limitedOf({ nanodollars, tokens, requests }: Amounts, left: Amounts): Amounts {
  return {
    nanodollars: left.nanodollars === Infinity ? 0 : nanodollars,
    tokens: left.tokens === Infinity ? 0 : tokens,
    requests: left.requests === Infinity ? 0 : requests,
  }
}

function hasRoom(counter: Counter | undefined, { own, left, isSliced }: HeldPart, isTurn: boolean): boolean {
  if (counter !== undefined && !isTurn && counter.waiting.length > 0) return false
  if (isSliced === true) return counter?.reserve !== undefined && fitsReserve(left, counter.reserve, own)
  return counter === undefined || counter.holding === 0 || fits(left, counter, own)
}

/** A counter that has places is never forgotten. */
function queueAt(counter: Counter): WaitingPlace {
  const { waiting } = counter
  const place = { resume: () => {} }
  waiting.push(place)
  return {
    isFirst: () => waiting[0] === place,
    turn: async (milliseconds, signal) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      place.resume = resolve
      // What it waits for can have been released before it began to wait. Others can hold what a slice lacks.
      if (waiting[0] === place && counter.holding === 0 && counter.reserve === undefined) resolve()
      if (signal.aborted) resolve()
      const timer = setTimeout(resolve, milliseconds)
      signal.addEventListener('abort', place.resume)
      await promise
      clearTimeout(timer)
      signal.removeEventListener('abort', place.resume)
    },
    leave: () => {
      const index = waiting.indexOf(place)
      if (index >= 0) waiting.splice(index, 1)
      wakeNext(counter)
    },
  }
}

function fits(left: Amounts, held: Amounts, own: Amounts): boolean {
  return (
    held.nanodollars + own.nanodollars <= left.nanodollars &&
    held.tokens + own.tokens <= left.tokens &&
    held.requests + own.requests <= left.requests
  )
}

function fitsReserve(left: Amounts, reserve: Amounts, own: Amounts): boolean {
  return (
    (left.nanodollars === Infinity || own.nanodollars <= reserve.nanodollars) &&
    (left.tokens === Infinity || own.tokens <= reserve.tokens) &&
    (left.requests === Infinity || own.requests <= reserve.requests)
  )
}
