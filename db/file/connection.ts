// Opens a connection for @libsql/client and caches its prepared statements. Unpatched, the client prepares a statement for every
// call, which takes longer than running it. The client itself is unmodified. The first connection locks the file for this process.

import { resolve } from 'node:path'
import { ConnectionPool, Sqlite3Client } from '@libsql/client/sqlite3'
import { type Client, type InValue, LibsqlError } from '@libsql/core/api'
import type Libsql from 'libsql'
import { LRUCache } from 'lru-cache'
import type { BoundStatement } from '../write/rows.ts'

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

type Connection = ReturnType<ConnectionPool['acquireSync']>
type Statement = ReturnType<typeof Libsql.prototype.prepare<unknown[]>>

/** `commit` does what `batch` does, but returns nothing, which takes a third less for a commit of one row. */
export type ConnectedClient = Client & { commit: (statements: readonly BoundStatement[]) => Promise<void> }

/**
 * How SQLite reaches the file: the first lock of any connection is an exclusive one of this process, until its last connection is
 * closed. Further connections of this process share the file, with the index of the log in memory (sqlite.org/vfs.html).
 */
const fileSystem = 'unix-excl'

/**
 * Opens the file as one connection.
 * @throws when the file cannot be opened
 */
export function connect(path: string): ConnectedClient {
  const url = `file:${encodeURI(resolve(path)).replace(/[?#]/g, encodeURIComponent)}?vfs=${fileSystem}`
  const pool = new ConnectionPool(url, {}, 1)
  const connection = pool.acquireSync()
  keepStatements(connection)
  // From here on, every call gets this connection, because the pool holds only this one.
  pool.release(connection)
  const client = new Sqlite3Client(pool, 'number')
  return Object.assign(client, {
    commit: async (statements: readonly BoundStatement[]) => {
      if (client.closed) throw new LibsqlError('The client is closed', 'CLIENT_CLOSED')
      runTransaction(connection, statements)
    },
  })
}

/**
 * Runs all statements or none. Nothing else can run in between, since it returns only when the transaction has ended.
 * @throws LibsqlError as the client would; RangeError or TypeError for a value that SQLite cannot store
 */
function runTransaction(connection: Connection, statements: readonly BoundStatement[]): void {
  try {
    connection.prepare('BEGIN IMMEDIATE').run(none)
    for (const { sql, args } of statements)
      connection.prepare(sql).run(args.every(isStorable) ? args : args.map(checkValue))
    connection.prepare('COMMIT').run(none)
  } catch (error) {
    rollBack(connection)
    if (!isSqliteError(error)) throw error
    const { message, code, rawCode } = error
    // An extended code begins with its base code, as in SQLITE_IOERR_WRITE.
    throw new LibsqlError(message, /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? code, code, rawCode, error)
  }
}

function isSqliteError(error: unknown): error is InstanceType<Libsql.SqliteError> {
  return error instanceof Error && error.name === 'SqliteError'
}

/** A connection that cannot roll back is closed: what runs on it next would join the failed transaction. */
function rollBack(connection: Connection): void {
  try {
    if (connection.inTransaction) connection.prepare('ROLLBACK').run(none)
  } catch {
    connection.close()
  }
}

function isStorable(value: InValue): boolean {
  return typeof value === 'string' || value === null || (typeof value === 'number' && Number.isFinite(value))
}

/** libSQL would store a NaN as null. */
function checkValue(value: InValue): InValue {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new RangeError(`${value} cannot be stored`)
  if (value === undefined) throw new TypeError('undefined cannot be stored')
  return typeof value === 'boolean' ? Number(value) : value
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
