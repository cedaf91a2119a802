// The database of the stand-in for an rqlite cluster: runs the statements of its HTTP API on a SQLite file, and responds as it
// does, with its faults: an error of a statement that cannot be prepared does not end the transaction.
import { Database, type SQLQueryBindings, type Statement } from 'bun:sqlite'

type Encoded = string | [sql: string, ...args: unknown[]]
type Entry =
  | { error: string }
  | { columns: string[]; types: string[]; values?: unknown[][] }
  | { rows_affected?: number }

export type RqliteStatements = {
  /** The response to a request for this path and query. */
  run: (url: string, body: string) => { status: number; text: string }
  /** The database as a file. */
  copy: () => Uint8Array
  close: () => void
}

export function createRqliteStatements(path: string, { hasForeignKeys = true } = {}): RqliteStatements {
  const database = new Database(path, { create: true, safeIntegers: true })
  database.run('pragma journal_mode = wal')
  database.run(`pragma foreign_keys = ${hasForeignKeys ? 'on' : 'off'}`)
  database.run('pragma synchronous = off')
  return {
    run: (url, body) => {
      const { pathname, searchParams } = new URL(url, 'http://localhost')
      const statements = parse(body)
      if (statements === undefined) return { status: 400, text: 'invalid request' }
      if (pathname === '/db/query') return toResponse(statements.map((statement) => queryOne(database, statement)))
      if (pathname !== '/db/request') return { status: 404, text: '' }
      if (!searchParams.has('transaction'))
        return toResponse(statements.map((statement) => queryOne(database, statement)))
      return toResponse(runTransaction(database, statements))
    },
    copy: () => {
      database.run('pragma wal_checkpoint(truncate)')
      return database.serialize()
    },
    close: () => database.close(),
  }
}

function parse(body: string): Encoded[] | undefined {
  try {
    const json: unknown = JSON.parse(body)
    const isStatement = (each: unknown) => typeof (Array.isArray(each) ? each[0] : each) === 'string'
    return Array.isArray(json) && json.length > 0 && json.every(isStatement) ? (json as Encoded[]) : undefined
  } catch {
    return undefined
  }
}

function toResponse(results: Entry[]): { status: number; text: string } {
  const toJson = (_key: string, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)
  return { status: 200, text: JSON.stringify({ results }, toJson) }
}

function queryOne(database: Database, statement: Encoded): Entry {
  try {
    return execute(database, statement)
  } catch (error) {
    return { error: (error as Error).message }
  }
}

function runTransaction(database: Database, statements: Encoded[]): Entry[] {
  const results: Entry[] = []
  database.run('begin')
  for (const statement of statements) {
    try {
      prepare(database, statement)
    } catch (error) {
      results.push({ error: (error as Error).message })
      continue
    }
    const entry = queryOne(database, statement)
    results.push(entry)
    if (!('error' in entry)) continue
    if (database.inTransaction) database.run('rollback')
    return results
  }
  database.run('commit')
  return results
}

const sqlOf = (statement: Encoded) => (typeof statement === 'string' ? statement : statement[0])

/** Texts beyond which statements are not kept. */
const keptCharactersMax = 8_192

function prepare(database: Database, statement: Encoded): Statement {
  const sql = sqlOf(statement)
  return sql.length <= keptCharactersMax ? database.query(sql) : database.prepare(sql)
}

function execute(database: Database, statement: Encoded): Entry {
  const prepared = prepare(database, statement)
  const args = typeof statement === 'string' ? [] : statement.slice(1).map(toSql)
  const rows = prepared.values(...args) as unknown[][]
  const columns = prepared.columnNames
  if (columns.length === 0) {
    const [[changes = 0n] = []] = database.query('select changes()').values() as bigint[][]
    return /^\s*(insert|replace|update|delete)\b/i.test(sqlOf(statement)) ? { rows_affected: Number(changes) } : {}
  }
  const values = rows.map((row) => row.map((value) => (value instanceof Uint8Array ? [...value] : value)))
  // Members without a value are left out.
  return { columns, types: columns.map(() => ''), ...(values.length > 0 && { values }) }
}

/** A text like a BLOB literal is taken for one, and a list of numbers for bytes. */
function toSql(value: unknown): SQLQueryBindings {
  if (Array.isArray(value)) return Uint8Array.from(value as number[])
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
  const hex = typeof value === 'string' ? /^x'((?:[0-9a-f]{2})*)'$/i.exec(value.trim())?.[1] : undefined
  return hex === undefined ? (value as SQLQueryBindings) : Buffer.from(hex, 'hex')
}
