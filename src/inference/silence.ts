// Notices when an upstream sends nothing for too long, or a client takes nothing.
import { every } from '../scheduling/every.ts'

/** How often within its limit a silence is checked. */
const checks = 4

export type Side = 'upstream' | 'client'
export type Silence = {
  /** Starts to wait for one side. */
  waitFor: (side: Side) => void
  /** The side that is waited for has acted. */
  broken: () => void
  stop: () => void
}

/**
 * Calls `onSilent` when the side that is waited for was silent for its limit, or up to a quarter longer. One timer
 * checks repeatedly: setting a timer for every chunk, or reading the clock, costs more than the chunk.
 */
export function watchSilence(sides: Record<Side, { milliseconds: number; onSilent: () => void }>): Silence {
  const step = Math.min(sides.upstream.milliseconds, sides.client.milliseconds) / checks
  let side: Side = 'upstream'
  let silentChecks = 0
  const stop = every(step, () => {
    silentChecks += 1
    const { milliseconds, onSilent } = sides[side]
    if (silentChecks * step > milliseconds) onSilent()
  })
  return {
    waitFor: (next) => {
      side = next
      silentChecks = 0
    },
    broken: () => {
      silentChecks = 0
    },
    stop,
  }
}
