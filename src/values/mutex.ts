// Work that must not overlap, such as changes that rest on what they have read: each begins when the one before it has ended.

import { setImmediate } from 'node:timers'

export type RunExclusive = <Result>(work: () => Promise<Result>) => Promise<Result>

/** Whether one fails is no concern of the next. */
export function createMutex(): RunExclusive {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = last.then(work)
    last = result.catch(() => {})
    return result
  }
}

/** Lets everything else that waits for the event loop come first: what is long must not hold it in one piece. */
export function giveWay(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Steps of some 100 nanoseconds, and never more than a microsecond. */
const stepsAtOnceMax = 20_000

/** Tells long work when to give way. It is asked, not awaited, since to await takes longer than most steps. */
export function createPause(): { isDueAfter: (steps: number) => boolean } {
  let done = 0
  return {
    isDueAfter: (steps) => {
      done += steps
      if (done < stepsAtOnceMax) return false
      done = 0
      return true
    },
  }
}
