// When the write-ahead log moves into the main file, and which connection does it: the owner's own, or, once there is one, that of the
// reader alone (reader-thread.ts). Never both: db/README.md says why.
import type { BoundStatement } from '../write/rows.ts'
import type { ConnectedClient } from './connection.ts'
import type { Reader } from './reader.ts'

/**
 * Pages in the log that make a commit run a checkpoint while there is no reader (16 MiB). This limits the log of a command, and of a
 * server until its first reader. It holds the event loop for about 20 ms.
 */
const ownCheckpointPages = 4_096
/** Pages in the log after which commits wait for a checkpoint (24 MiB). Otherwise each adds pages that keep the log from starting over. */
const logPagesMax = 6_144

export type Checkpoints = {
  /** Moves the log into the main file, unless that is held. While commits go on (`isBusy`), the reader does it, and is started for it. */
  run: (isBusy: boolean) => Promise<void>
  /** Resolves when none runs. None begins until the returned function is called. */
  hold: () => Promise<() => Promise<void>>
  /** Makes commits run checkpoints, or no longer. */
  byCommits: (isOn: boolean) => Promise<void>
}

export function createCheckpoints(
  client: Pick<ConnectedClient, 'execute' | 'withoutCommits'>,
  reader: Reader,
): Checkpoints {
  let holds = 0
  let running: Promise<void> | undefined
  let isByCommits = true

  async function set(): Promise<void> {
    await client.execute(`pragma wal_autocheckpoint = ${isByCommits && holds === 0 ? ownCheckpointPages : 0}`)
  }

  async function move(isBusy: boolean): Promise<void> {
    if (!reader.isOpen() && !isBusy) {
      await client.execute('pragma wal_checkpoint(passive)')
      return
    }
    if (!reader.isUsable()) return
    const done = await reader.checkpoint(false)
    if (done !== undefined && done.pages <= logPagesMax) return
    // Either the thread does not know yet what is copied, or what is left was committed meanwhile and keeps the log from starting over.
    await client.withoutCommits(() => reader.checkpoint(true))
  }

  return {
    run: async (isBusy) => {
      // One that runs already may not have what was committed last.
      while (running !== undefined) await running.catch(() => {})
      if (holds > 0) return
      running = move(isBusy).finally(() => {
        running = undefined
      })
      await running
    },
    hold: async () => {
      holds += 1
      await running?.catch(() => {})
      await set()
      return async () => {
        holds -= 1
        await set()
      }
    },
    byCommits: async (isOn) => {
      isByCommits = isOn
      await set()
    },
  }
}

/** About how much a commit adds to the log. */
export function charactersIn(statements: readonly BoundStatement[]): number {
  let characters = 0
  for (const { args } of statements) for (const arg of args) if (typeof arg === 'string') characters += arg.length
  return characters
}
