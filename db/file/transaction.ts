// Transactions on a connection: all statements or none. A long one runs in slices, between which the event loop does other work.
import { setImmediate } from 'node:timers/promises'
import type { ConnectionPool } from '@libsql/client/sqlite3'
import { type InValue, LibsqlError } from '@libsql/core/api'
import type Libsql from 'libsql'
import type { BoundStatement } from '../write/rows.ts'

export type Connection = ReturnType<ConnectionPool['acquireSync']>

/** After how long other work may run. A statement goes on to its end, so each of a long transaction must be short. */
export const sliceMillisecondsDefault = 4

/**
 * Nothing else can run in between, since it returns only when the transaction has ended.
 * @throws LibsqlError as the client would; RangeError or TypeError for a value that SQLite cannot store
 */
export function runTransaction(connection: Connection, statements: readonly BoundStatement[]): void {
  // A statement alone is a transaction, with the same locks: begin and commit would take a fifth of the time.
  const isAlone = statements.length === 1
  try {
    if (!isAlone) connection.prepare('BEGIN IMMEDIATE').run(none)
    for (const statement of statements) run(connection, statement)
    if (!isAlone) connection.prepare('COMMIT').run(none)
  } catch (error) {
    throw afterRollBack(connection, error)
  }
}

/** The same in slices. Whatever used the connection meanwhile would join the transaction: keep it away. */
export async function runInSlices(
  connection: Connection,
  statements: readonly BoundStatement[],
  sliceMilliseconds: number,
): Promise<void> {
  try {
    connection.prepare('BEGIN IMMEDIATE').run(none)
    let startedAt = performance.now()
    for (const statement of statements) {
      run(connection, statement)
      if (performance.now() - startedAt < sliceMilliseconds) continue
      await setImmediate()
      // libSQL ends the process for a statement on a closed connection.
      if (!connection.open) throw new LibsqlError('The client was closed during a commit', 'CLIENT_CLOSED')
      startedAt = performance.now()
    }
    connection.prepare('COMMIT').run(none)
  } catch (error) {
    throw afterRollBack(connection, error)
  }
}

function run(connection: Connection, { sql, args }: BoundStatement): void {
  connection.prepare(sql).run(args.every(isStorable) ? args : args.map(checkValue))
}

/** Rolls back, and returns what to throw. A connection that cannot roll back is closed: what runs on it next would join the failed transaction. */
function afterRollBack(connection: Connection, error: unknown): unknown {
  try {
    if (connection.open && connection.inTransaction) connection.prepare('ROLLBACK').run(none)
  } catch {
    connection.close()
  }
  if (!isSqliteError(error)) return error
  const { message, code, rawCode } = error
  // An extended code begins with its base code, as in SQLITE_IOERR_WRITE.
  return new LibsqlError(message, /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? code, code, rawCode, error)
}

function isSqliteError(error: unknown): error is InstanceType<Libsql.SqliteError> {
  return error instanceof Error && error.name === 'SqliteError'
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
