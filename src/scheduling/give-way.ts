// Lets other work of the event loop run between the steps of long work. `createPace` in db/read/pace.ts does the same by time, for rows.
import { setImmediate } from 'node:timers'

/** Resolves after everything else that the event loop has ready. */
export function giveWay(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Steps take about 100 nanoseconds, and never more than a microsecond. */
const stepsAtOnceMax = 20_000

/** Says when long work should give way. It is called, not awaited: an await takes longer than most steps. */
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
