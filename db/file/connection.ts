// Opens a connection for @libsql/client and caches its prepared statements. Unpatched, the client prepares a statement for every
// call, which takes longer than running it. The client itself is unmodified. The first connection locks the file for this process.

import { resolve } from 'node:path'
import { ConnectionPool, Sqlite3Client } from '@libsql/client/sqlite3'
import { type Client, LibsqlError } from '@libsql/core/api'
import type Libsql from 'libsql'
import { LRUCache } from 'lru-cache'
import type { BoundStatement } from '../write/rows.ts'
import { type Connection, runInSlices, runTransaction, sliceMillisecondsDefault } from './transaction.ts'

/**
 * Limits of the cache. An insert of many rows has a different text for each number of rows, so long texts are not
 * cached.
 */
const statementsMax = 128
const sourceCharactersMax = 8_192
/** Frequent statements. Any other statement, such as a schema change, can change the results of cached ones. */
const keepable = /^\s*(select|insert|update|delete|begin|commit|rollback|with)\b/i

/** How long a connection waits for another one of this process, which holds a lock for microseconds. */
export const busyMilliseconds = 5_000

type Statement = ReturnType<typeof Libsql.prototype.prepare<unknown[]>>

export type ConnectedClient = Client & {
  /**
   * Does what `batch` does, but returns no rows, which takes a third less for a commit of one row. At once, without a promise, unless other
   * work must end first.
   */
  commit: (statements: readonly BoundStatement[]) => Promise<void> | undefined
  /** The same in slices, during which everything else that would use the connection waits. */
  commitInSlices: (statements: readonly BoundStatement[]) => Promise<void>
  /** Runs `work` after the commit that runs. Those that are asked for meanwhile wait; reads do not. */
  withoutCommits: <Result>(work: () => Promise<Result>) => Promise<Result>
}

/**
 * How SQLite reaches the file: the first lock of any connection is an exclusive one of this process, until its last connection is
 * closed. Further connections of this process share the file, with the index of the log in memory (sqlite.org/vfs.html).
 */
const fileSystem = 'unix-excl'

/**
 * Opens the file as one connection.
 * @throws when the file cannot be opened
 */
export function connect(
  path: string,
  { sliceMilliseconds = sliceMillisecondsDefault }: { sliceMilliseconds?: number } = {},
): ConnectedClient {
  const url = `file:${encodeURI(resolve(path)).replace(/[?#]/g, encodeURIComponent)}?vfs=${fileSystem}`
  const pool = new ConnectionPool(url, {}, 1)
  const connection = pool.acquireSync()
  keepStatements(connection)
  // From here on, every call gets this connection, because the pool holds only this one.
  pool.release(connection)
  const client = new Sqlite3Client(pool, 'number')
  const commits = createCommits(pool, connection, { isClosed: () => client.closed, sliceMilliseconds })
  return Object.assign(client, commits)
}

type Commits = Pick<ConnectedClient, 'commit' | 'commitInSlices' | 'withoutCommits'>

function createCommits(
  pool: ConnectionPool,
  connection: Connection,
  { isClosed, sliceMilliseconds }: { isClosed: () => boolean; sliceMilliseconds: number },
): Commits {
  /** Why a commit must wait: one in slices, or work without commits. After a wait, it is looked at again: another commit may have begun first. */
  let obstacle: Promise<void> | undefined

  async function obstruct<Result>(work: () => Promise<Result>): Promise<Result> {
    const { promise, resolve } = Promise.withResolvers<void>()
    obstacle = promise
    try {
      return await work()
    } finally {
      obstacle = undefined
      resolve()
    }
  }

  function commitNow(statements: readonly BoundStatement[]): undefined {
    if (isClosed()) throw new LibsqlError('The client is closed', 'CLIENT_CLOSED')
    runTransaction(connection, statements)
  }

  async function commitLater(statements: readonly BoundStatement[]): Promise<void> {
    while (obstacle !== undefined) await obstacle
    commitNow(statements)
  }

  return {
    commit: (statements) => (obstacle === undefined ? commitNow(statements) : commitLater(statements)),
    commitInSlices: async (statements) => {
      for (;;) {
        while (obstacle !== undefined) await obstacle
        // Calls of the client wait for the connection. One that has it already has ended when this one gets it.
        const borrowed = await pool.acquire()
        try {
          if (obstacle === undefined)
            return await obstruct(() => runInSlices(connection, statements, sliceMilliseconds))
        } finally {
          // Otherwise the pool would open another one, which has no settings.
          if (borrowed.open) pool.release(borrowed)
          else pool.close()
        }
      }
    },
    withoutCommits: async (work) => {
      while (obstacle !== undefined) await obstacle
      return obstruct(work)
    },
  }
}

const none: unknown[] = []

function keepStatements(connection: Connection): void {
  const prepare = connection.prepare.bind(connection)
  const kept = new LRUCache<string, Statement>({ max: statementsMax })
  const prepareKept = (source: string): Statement => {
    const known = kept.get(source)
    if (known !== undefined) return known
    const statement = prepare(source)
    if (!keepable.test(source)) kept.clear()
    else if (source.length <= sourceCharactersMax)
      kept.set(
        source,
        prepareOnce(statement, () => kept.delete(source)),
      )
    return statement
  }
  Object.assign(connection, { prepare: prepareKept })
}

/**
 * Configures a statement once instead of on every use. Drops a statement that failed, because libSQL does not reset it.
 */
function prepareOnce(statement: Statement, drop: () => void): Statement {
  const { reader } = statement
  statement.safeIntegers(true)
  if (reader) statement.raw(true)
  const columns = reader ? statement.columns() : []
  // Neither closures nor lists of parameters: each commit runs three statements.
  const dropIfFailed =
    <Result>(act: (parameters: unknown[]) => Result) =>
    (parameters: unknown[] = none): Result => {
      try {
        return act.call(statement, parameters)
      } catch (error) {
        drop()
        throw error
      }
    }
  return Object.assign(statement, {
    safeIntegers: () => statement,
    raw: () => {
      if (!reader) throw noRows
      return statement
    },
    columns: () => columns,
    run: dropIfFailed(statement.run),
    all: dropIfFailed(statement.all),
  })
}

/**
 * Forces a garbage collection. libSQL finalizes a failed statement only when it is collected; until then, this process
 * would keep a shared lock on a file that it failed to open and block other processes. Deno has no matching call, so there
 * the lock ends with the process.
 */
export function letGo(): void {
  const { Bun: runtime } = globalThis as { Bun?: { gc: (force: boolean) => void } }
  runtime?.gc(true)
}

const noRows = new TypeError('The statement returns no rows')
