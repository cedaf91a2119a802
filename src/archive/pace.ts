// How fast an archive run commits in a server.
import { setTimeout as pause } from 'node:timers/promises'

/** Waits for a multiple of the time since the last call. */
export type Rest = () => Promise<void>

/** A server spends a quarter of the time on removing rows. */
const restPerWork = 3
const restMillisecondsMax = 100

/** Without a server (`isAlone`), nothing rests. */
export function createRest(isAlone: boolean): Rest {
  let workedSince = performance.now()
  return async () => {
    if (!isAlone) await pause(Math.min((performance.now() - workedSince) * restPerWork, restMillisecondsMax))
    workedSince = performance.now()
  }
}
