// How fast archives are made: work in slices with rests between them, and small checkpoints, so that a server stays responsive.
import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '../../db/file/open.ts'

/** A server spends a quarter of the time on archives. */
const restPerWork = 3
const restMillisecondsMax = 100
/** A checkpoint blocks the event loop for longer the more pages the log has. These slices write about 1 MiB. */
const slicesPerCheckpoint = 3

export type ArchivePace = {
  /** Waits for a multiple of the time since the last rest. Call it after each slice. */
  rest: () => Promise<void>
  /** The same after slices that write. */
  restAfterWrite: () => Promise<void>
}

/** Without a server (`isAlone`), nothing rests. */
export function createArchivePace(database: Pick<Database, 'checkpoint'>, isAlone: boolean): ArchivePace {
  let workedSince = performance.now()
  let slices = 0
  const rest = async () => {
    if (!isAlone) await pause(Math.min((performance.now() - workedSince) * restPerWork, restMillisecondsMax))
    workedSince = performance.now()
  }
  return {
    rest,
    restAfterWrite: async () => {
      slices += 1
      // An error here is harmless: the log stays longer until the next checkpoint.
      if (slices % slicesPerCheckpoint === 0) await database.checkpoint().catch(() => {})
      await rest()
    },
  }
}

/** Yields everything that the source does, with a rest after each. */
export async function* withRests<Item>(source: AsyncIterable<Item>, { rest }: ArchivePace): AsyncGenerator<Item> {
  for await (const item of source) {
    yield item
    await rest()
  }
}
