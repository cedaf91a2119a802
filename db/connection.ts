// The connection beneath @libsql/client, with its prepared statements kept: the client prepares one for every call, which takes longer than
// running it. The client itself stays as it is.

import type { Client } from '@libsql/client'
import { ConnectionPool, Sqlite3Client } from '@libsql/client/sqlite3'
import type Libsql from 'libsql'
import { LRUCache } from 'lru-cache'

/** Statements kept at most, and the longest source of one: inserts of many rows have a text for each number of rows. */
const statementsMax = 128
const sourceCharactersMax = 8_192
/** What is run often. Anything else, such as a change of the schema, may change what kept statements return. */
const keepable = /^\s*(select|insert|update|delete|begin|commit|rollback|with)\b/i

type Connection = ReturnType<ConnectionPool['acquireSync']>
type Statement = ReturnType<typeof Libsql.prototype.prepare<unknown[]>>

/** Opens the file as one connection. @throws when it cannot be opened */
export function connect(path: string): Client {
  const pool = new ConnectionPool(path, {}, 1)
  const connection = pool.acquireSync()
  keepStatements(connection)
  // From here on every call gets this connection, since the pool holds no other.
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
    else if (source.length <= sourceCharactersMax) {
      kept.set(
        source,
        prepareOnce(statement, () => kept.delete(source)),
      )
      if (kept.size > statementsMax) kept.delete(kept.keys().next().value as string)
    }
    return statement
  }
  Object.assign(connection, { prepare: prepareKept })
}

/** The client sets a statement up at every use. A statement that failed is dropped: libSQL does not reset it. */
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
