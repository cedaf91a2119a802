// What the servers of a database cluster report of themselves, looked at on a timer for metrics: which are up, who leads, how far each is behind.
import type { ServerState } from '../../db/remote/server-client.ts'
import type { SharedDatabase } from '../../db/remote/shared-database.ts'
import { every } from '../scheduling/every.ts'

export type DatabaseServers = {
  /** As of the last look; empty before the first, and where there is no cluster. */
  states: () => readonly ServerState[]
  /** Elections between the looks of this process. Undefined where there is no cluster. */
  leaderChanges: () => number | undefined
  /** Entries of the log that a server has not applied, of those that the leader has committed. Undefined while one of both is not known. */
  behind: (server: ServerState) => number | undefined
  look: () => Promise<void>
  /** Looks now and on a timer. Returns a function that ends it. */
  begin: () => () => void
}

const lookMilliseconds = 15_000

export function watchDatabaseServers(shared: Pick<SharedDatabase, 'servers'> | undefined): DatabaseServers {
  let states: readonly ServerState[] = []
  let term: number | undefined
  let changes = 0

  async function look(): Promise<void> {
    states = (await shared?.servers()) ?? []
    const terms = states.flatMap((state) => (state.isUp ? [state.term] : []))
    if (terms.length === 0) return
    const newest = Math.max(...terms)
    // A term can pass without a leader, when an election has no winner.
    if (term !== undefined && newest > term) changes += newest - term
    term = Math.max(newest, term ?? 0)
  }

  return {
    states: () => states,
    leaderChanges: () => (term === undefined ? undefined : changes),
    behind: (server) => {
      const leader = states.find((state) => state.isUp && state.isLeader)
      if (!server.isUp || leader?.isUp !== true) return undefined
      return Math.max(0, leader.committed - server.applied)
    },
    look,
    begin: () => {
      if (shared === undefined) return () => {}
      void look()
      return every(lookMilliseconds, look)
    },
  }
}
