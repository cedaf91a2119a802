// Opens the connection for @libsql/client and caches its prepared statements. Unpatched, the client prepares a
// statement for every call, which takes longer than running it. The client itself is unmodified.

import type { Client } from '@libsql/client'
import { ConnectionPool, Sqlite3Client } from '@libsql/client/sqlite3'
import type Libsql from 'libsql'
import { LRUCache } from 'lru-cache'

/**
 * Limits of the cache. An insert of many rows has a different text for each number of rows, so long texts are not
 * cached.
 */
const statementsMax = 128
const sourceCharactersMax = 8_192
/** Frequent statements. Any other statement, such as a schema change, can change the results of cached ones. */
const keepable = /^\s*(select|insert|update|delete|begin|commit|rollback|with)\b/i

type Connection = ReturnType<ConnectionPool['acquireSync']>
type Statement = ReturnType<typeof Libsql.prototype.prepare<unknown[]>>

/**
 * Opens the file as one connection.
 * @throws when the file cannot be opened
 */
export function connect(path: string): Client {
  const pool = new ConnectionPool(path, {}, 1)
  const connection = pool.acquireSync()
  keepStatements(connection)
  // From here on, every call gets this connection, because the pool holds only this one.
  pool.release(connection)
  return new Sqlite3Client(pool, 'number')
}

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
  const run = statement.run.bind(statement)
  const all = statement.all.bind(statement)
  const dropIfFailed = <Result>(act: () => Result): Result => {
    try {
      return act()
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
    run: (...parameters: unknown[]) => dropIfFailed(() => run(...parameters)),
    all: (...parameters: unknown[]) => dropIfFailed(() => all(...parameters)),
  })
}

const noRows = new TypeError('The statement returns no rows')
