// What a server database has beyond a file, for the nodes that share it.
import type { BoundStatement } from '../write/rows.ts'
import type { ReadCopy, ServerState, Weakness } from './server-client.ts'

/** An admin change, by its id and by what distinguishes it from another one with this id after the database has gone back. */
export type Revision = { id: number; lineage: string }

/**
 * What a node knows of the database: its newest admin change, the newest rows of its ledgers, and the number of its newest commit.
 * None of them ever falls.
 */
export type Position = { revision: Revision; usageId: number; auditId: number; commit: number }

/** Before anything was read. */
export const firstPosition: Position = { revision: { id: 0, lineage: '' }, usageId: 0, auditId: 0, commit: 0 }

export type RefreshResult = Position & {
  /** Whether the database still has the admin change of the position that the refresh began at. */
  isContinued: boolean
  /** The same for the commits that it has confirmed to this node, before the refresh began. */
  hasOwnCommits: boolean
  /** Empty if the database has none, as after it was replaced by an empty one. */
  installation: string
  /** Nodes that reported in the last five seconds. */
  liveNodes: number
  /** Whether only a part of what was spent since the last refresh was read: refresh again. */
  hasMoreUsage: boolean
  /** What was spent by keys since the last refresh, by day, in nanodollars. */
  spent: [keyId: string, day: number, costNanodollars: number][]
}

/** What a database server offers beyond a file. */
export type SharedDatabase = {
  /**
   * Commits an admin change if the newest one is still `basis`. Returns the new revision, or undefined if it was
   * committed and its response was lost.
   * @throws an error that is `isStale` after a change by another node
   */
  commitChange: (statements: readonly BoundStatement[], basis: Revision) => Promise<Revision | undefined>
  /** @throws an error that is `isUnreachable` if it does not respond in time, or has not confirmed a commit for long */
  refresh: (position: Position) => Promise<RefreshResult>
  /** See `ServerClient`. */
  weaknesses: () => Promise<Weakness[]>
  servers: () => Promise<ServerState[]>
  /** Undefined where the server makes no copies of its database while it runs. */
  readCopy: ReadCopy | undefined
  /** Call it before requests are served: from now on, a commit whose outcome is unknown is repeated for half an hour at most. */
  beginServing: () => void
  /** Call it before the last commits: from now on, each is repeated for ten seconds at most. */
  beginEnd: () => void
}
