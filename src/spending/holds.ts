// What running requests hold of budgets, from their admission until their rows are committed. It is never stored: a crash ends
// holds with their requests. Near a limit, requests wait for one another.
import type { Amounts } from './budget.ts'

/** A counter that a request holds a part of, with what is left of it in each of its windows. */
export type HeldPart = { name: string; own: Amounts; left: readonly Amounts[] }

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
  /** How many requests hold a part of a counter, and how many wait for it. */
  sizeOf: (name: string) => { holding: number; waiting: number }
}

export type WaitingPlace = {
  name: string
  /** Resolves when something was released and it is the turn of this place, or after this time, or when the signal aborts. */
  turn: (milliseconds: number, signal: AbortSignal) => Promise<void>
  /** Gives the turn to the next one. */
  leave: () => void
}

type Counter = Amounts & { holding: number; waiting: { resume: () => void }[] }

export function createHolds(): Holds {
  const counters = new Map<string, Counter>()

  function counterOf(name: string): Counter {
    const counter = counters.get(name) ?? { nanodollars: 0, tokens: 0, requests: 0, holding: 0, waiting: [] }
    counters.set(name, counter)
    return counter
  }

  function wakeNext(name: string): void {
    const counter = counters.get(name)
    if (counter === undefined) return
    if (counter.holding === 0 && counter.waiting.length === 0) counters.delete(name)
    else counter.waiting[0]?.resume()
  }

  function release(parts: readonly HeldPart[]): void {
    for (const { name, own } of parts) {
      const counter = counterOf(name)
      counter.holding -= 1
      // Sums of fractions do not come back to zero by themselves.
      const isLast = counter.holding === 0
      counter.nanodollars = isLast ? 0 : counter.nanodollars - own.nanodollars
      counter.tokens = isLast ? 0 : counter.tokens - own.tokens
      counter.requests = isLast ? 0 : counter.requests - own.requests
    }
    for (const { name } of parts) wakeNext(name)
  }

  return {
    take: (parts, isTurn) => {
      const full = parts.find(({ name, own, left }) => {
        const counter = counters.get(name)
        if (counter === undefined) return false
        if (!isTurn && counter.waiting.length > 0) return true
        return counter.holding > 0 && left.some((window) => !fits(window, counter, own))
      })
      if (full !== undefined) return full.name
      for (const { name, own } of parts) {
        const counter = counterOf(name)
        counter.holding += 1
        counter.nanodollars += own.nanodollars
        counter.tokens += own.tokens
        counter.requests += own.requests
      }
      let isHeld = true
      return () => {
        if (isHeld) release(parts)
        isHeld = false
      }
    },
    queue: (name) => queueAt(counterOf(name), name, wakeNext),
    wakeAll: () => {
      for (const { waiting } of counters.values()) for (const place of [...waiting]) place.resume()
    },
    sizeOf: (name) => ({
      holding: counters.get(name)?.holding ?? 0,
      waiting: counters.get(name)?.waiting.length ?? 0,
    }),
  }
}

/** A counter that has places is never forgotten. */
function queueAt(counter: Counter, name: string, wakeNext: (name: string) => void): WaitingPlace {
  const { waiting } = counter
  const place = { resume: () => {} }
  waiting.push(place)
  return {
    name,
    turn: async (milliseconds, signal) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      place.resume = resolve
      // What it waits for can have been released before it began to wait.
      if (waiting[0] === place && counter.holding === 0) resolve()
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
      wakeNext(name)
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
