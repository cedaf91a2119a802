// What was used of the counters of budgets a while ago, by when every node that still counts has reported what it held.
import type { Amounts } from './budget.ts'

/** Takes in what is used now, one entry for each window, and returns what was used then; nothing while that is unknown. */
export type UsedBefore = (name: string, used: readonly Readonly<Amounts>[]) => readonly Readonly<Amounts>[]

type Snapshot = { at: number; used: readonly Readonly<Amounts>[] }

/** The clock of a node sees more often than this what is used. */
const seenEveryMilliseconds = 500
/** A counter that is forgotten is seen as if for the first time. */
const countersMax = 10_000
const unknown: readonly Readonly<Amounts>[] = []

/** `monotonic`: milliseconds. `agoMilliseconds`: how long after a report of a node others do without the next one. */
export function rememberUsed(monotonic: () => number, agoMilliseconds: number): UsedBefore {
  const counters = new Map<string, Snapshot[]>()
  return (name, used) => {
    const now = monotonic()
    const known = counters.get(name)
    if (known === undefined && counters.size >= countersMax) counters.clear()
    // Less is used only in another period, or of another budget.
    const seen = known?.every((each) => isAtMost(each.used, used)) ? known : []
    counters.set(name, seen)
    while (seen[1] !== undefined && seen[1].at <= now - agoMilliseconds) seen.shift()
    if (now - (seen.at(-1)?.at ?? Number.NEGATIVE_INFINITY) >= seenEveryMilliseconds) seen.push({ at: now, used })
    const [first] = seen
    return first !== undefined && first.at <= now - agoMilliseconds ? first.used : unknown
  }
}

function isAtMost(before: readonly Readonly<Amounts>[], after: readonly Readonly<Amounts>[]): boolean {
  return (
    before.length === after.length &&
    before.every(({ nanodollars, tokens, requests }, index) => {
      const now = after[index]
      return now !== undefined && nanodollars <= now.nanodollars && tokens <= now.tokens && requests <= now.requests
    })
  )
}
