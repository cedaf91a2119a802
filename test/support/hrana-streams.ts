// The streams of the stand-in for a libSQL server: runs the requests of Hrana pipelines on connections to a SQLite file.
import { Database, type SQLQueryBindings } from 'bun:sqlite'

type Value =
  | { type: 'null' }
  | { type: 'integer'; value: string }
  | { type: 'float'; value: number }
  | { type: 'text'; value: string }
  | { type: 'blob'; base64: string }
type Stmt = {
  sql?: string | null
  sql_id?: number | null
  args?: Value[]
  named_args?: { name: string; value: Value }[]
  want_rows?: boolean | null
}
type Condition =
  | { type: 'ok' | 'error'; step: number }
  | { type: 'not'; cond: Condition }
  | { type: 'and' | 'or'; conds: Condition[] }
  | { type: 'is_autocommit' }
type Step = { condition?: Condition | null; stmt: Stmt }
export type StreamRequest =
  | { type: 'execute'; stmt: Stmt }
  | { type: 'batch'; batch: { steps: Step[] } }
  | { type: 'sequence' | 'describe'; sql?: string | null; sql_id?: number | null }
  | { type: 'store_sql'; sql_id: number; sql: string }
  | { type: 'close_sql'; sql_id: number }
  | { type: 'get_autocommit' | 'close' }
type Failure = { message: string; code: string }
type Executed = { cols: object[]; rows: Value[][]; affected_row_count: number; last_insert_rowid: string | null }
type Stream = { connection: Database; texts: Map<number, string>; usedAt: number; synchronous: number }

/** A stream without a request for this long ends, as on a real server. */
const streamMilliseconds = 10_000

/** Runs the requests of a stream on its connection. A baton names a stream that is still open. */
export function createStreams(path: string, synchronous = 2) {
  const idle: Database[] = []
  const open = new Map<string, Stream>()

  function connect(): Database {
    const connection = new Database(path, { create: true, safeIntegers: true })
    connection.run('pragma journal_mode = wal')
    connection.run('pragma foreign_keys = on')
    // It does not wait for the disk, but responds as a server that does: a killed process loses nothing.
    connection.run('pragma synchronous = off')
    return connection
  }

  function endIdle(): void {
    for (const [baton, stream] of open)
      if (performance.now() - stream.usedAt > streamMilliseconds) {
        open.delete(baton)
        release(stream)
      }
  }

  function release({ connection }: Stream): void {
    if (connection.inTransaction) connection.run('rollback')
    idle.push(connection)
  }

  return {
    run: (baton: string | undefined, requests: StreamRequest[]) => {
      endIdle()
      const known = baton === undefined ? undefined : open.get(baton)
      if (baton !== undefined && known === undefined)
        return { status: 400, content: { message: 'The stream has expired', code: 'STREAM_EXPIRED' } }
      if (baton !== undefined) open.delete(baton)
      const stream = known ?? { connection: idle.pop() ?? connect(), texts: new Map(), usedAt: 0, synchronous }
      stream.usedAt = performance.now()
      const results = requests.map((request) => resultOf(stream, request))
      if (requests.at(-1)?.type === 'close') {
        release(stream)
        return { status: 200, content: { baton: null, base_url: null, results } }
      }
      const next = crypto.randomUUID()
      open.set(next, stream)
      return { status: 200, content: { baton: next, base_url: null, results } }
    },
    close: () => {
      for (const { connection } of open.values()) connection.close()
      for (const connection of idle) connection.close()
    },
  }
}

/** What a real server refuses unless it is configured otherwise. */
const valueBytesMax = 5_000_000
const responseBytesMax = 10_000_000

function isLarge(value: Value): boolean {
  return value.type === 'text' && Buffer.byteLength(value.value) > valueBytesMax
}

function refuseLargeValue(value: Value): void {
  if (isLarge(value)) throw Object.assign(new Error('string or blob too big'), { code: 'SQLITE_TOOBIG' })
}

function refuseLargeArgument(value: Value): void {
  const message = 'Arguments do not match SQL parameters: string or blob too big'
  if (isLarge(value)) throw Object.assign(new Error(message), { code: 'ARGS_INVALID' })
}

function refuseLargeResponse(results: (Executed | null)[]): void {
  let bytes = 0
  for (const result of results)
    for (const row of result?.rows ?? [])
      for (const value of row) bytes += value.type === 'text' ? Buffer.byteLength(value.value) + 26 : 26
  if (bytes > responseBytesMax) throw Object.assign(new Error('Response is too large'), { code: 'RESPONSE_TOO_LARGE' })
}

function resultOf(stream: Stream, request: StreamRequest): object {
  try {
    return { type: 'ok', response: { type: request.type, ...perform(stream, request) } }
  } catch (error) {
    return { type: 'error', error: failureOf(error) }
  }
}

function perform(stream: Stream, request: StreamRequest): object {
  const { connection, texts } = stream
  switch (request.type) {
    case 'execute': {
      const result = execute(stream, request.stmt)
      refuseLargeResponse([result])
      return { result }
    }
    case 'batch':
      return { result: runBatch(stream, request.batch.steps) }
    case 'sequence':
      connection.run(textOf(stream, request))
      return {}
    case 'describe': {
      const statement = connection.prepare(textOf(stream, request))
      const cols = statement.columnNames.map((name) => ({ name, decltype: null }))
      return { result: { params: [], cols, is_explain: false, is_readonly: cols.length > 0 } }
    }
    case 'store_sql':
      texts.set(request.sql_id, request.sql)
      return {}
    case 'close_sql':
      texts.delete(request.sql_id)
      return {}
    case 'get_autocommit':
      return { is_autocommit: !connection.inTransaction }
    case 'close':
      return {}
  }
}

function runBatch(stream: Stream, steps: Step[]) {
  const results: (Executed | null)[] = []
  const errors: (Failure | null)[] = []
  const holds = (condition: Condition): boolean => {
    switch (condition.type) {
      case 'ok':
        return results[condition.step] !== null && results[condition.step] !== undefined
      case 'error':
        return errors[condition.step] !== null && errors[condition.step] !== undefined
      case 'not':
        return !holds(condition.cond)
      case 'and':
        return condition.conds.every(holds)
      case 'or':
        return condition.conds.some(holds)
      case 'is_autocommit':
        return !stream.connection.inTransaction
    }
  }
  for (const [index, { condition, stmt }] of steps.entries()) {
    results[index] = null
    errors[index] = null
    if (condition && !holds(condition)) continue
    try {
      results[index] = execute(stream, stmt)
    } catch (error) {
      errors[index] = failureOf(error)
    }
  }
  refuseLargeResponse(results)
  return { step_results: results, step_errors: errors }
}

function textOf({ texts, synchronous }: Stream, { sql, sql_id }: Pick<Stmt, 'sql' | 'sql_id'>): string {
  const text = sql ?? texts.get(sql_id ?? -1)
  if (text === undefined) throw Object.assign(new Error('The SQL text is not stored'), { code: 'SQL_NOT_FOUND' })
  if (text === 'pragma synchronous') return `select ${synchronous} as synchronous`
  // An extension of libSQL.
  return text.replace(/^begin transaction readonly$/i, 'begin')
}

/** Texts of libSQL's client beyond which statements are not kept. */
const keptCharactersMax = 8_192

function execute(stream: Stream, stmt: Stmt): Executed {
  const { connection } = stream
  const text = textOf(stream, stmt)
  const isKept = text.length <= keptCharactersMax
  const statement = isKept ? connection.query(text) : connection.prepare(text)
  try {
    const named = stmt.named_args ?? []
    for (const value of [...(stmt.args ?? []), ...named.map(({ value }) => value)]) refuseLargeArgument(value)
    const args: SQLQueryBindings[] = (stmt.args ?? []).map(toSql)
    if (named.length > 0) args.push(Object.fromEntries(named.map(({ name, value }) => [name, toSql(value)])) as never)
    const rows = statement.values(...args) as unknown[][]
    const values = rows.map((row) => row.map(toValue))
    for (const row of values) for (const value of row) refuseLargeValue(value)
    const [changes, rowid] = connection.query('select changes(), last_insert_rowid()').values()[0] as bigint[]
    return {
      cols: statement.columnNames.map((name) => ({ name, decltype: null })),
      rows: values,
      affected_row_count: /^\s*(insert|replace|update|delete)\b/i.test(text) ? Number(changes) : 0,
      last_insert_rowid: /^\s*(insert|replace)\b/i.test(text) ? String(rowid) : null,
    }
  } finally {
    if (!isKept) statement.finalize()
  }
}

function toSql(value: Value): SQLQueryBindings {
  switch (value.type) {
    case 'null':
      return null
    case 'integer':
      return BigInt(value.value)
    case 'blob':
      return Buffer.from(value.base64, 'base64')
    case 'float':
    case 'text':
      return value.value
  }
}

function toValue(value: unknown): Value {
  if (value === null) return { type: 'null' }
  if (typeof value === 'bigint') return { type: 'integer', value: String(value) }
  if (typeof value === 'number') return { type: 'float', value }
  if (typeof value === 'string') return { type: 'text', value }
  return { type: 'blob', base64: Buffer.from(value as Uint8Array).toString('base64') }
}

/** A real server names the base code, as in SQLITE_CONSTRAINT, but not the most general one. */
function failureOf(error: unknown): Failure {
  const { message, code = '', byteOffset = -1 } = error as Error & { code?: string; byteOffset?: number }
  if (!code.startsWith('SQLITE_')) return { message, code: code === '' ? 'SQLITE_UNKNOWN' : code }
  const base = /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? code
  if (base !== 'SQLITE_ERROR') return { message: `SQLite error: ${message}`, code: base }
  if (/syntax error/.test(message))
    return { message: `SQL string could not be parsed: ${message}`, code: 'SQL_PARSE_ERROR' }
  if (byteOffset >= 0)
    return { message: `SQL input error: ${message} (at offset ${byteOffset})`, code: 'SQL_INPUT_ERROR' }
  return { message: `SQLite error: ${message}`, code: 'SQLITE_UNKNOWN' }
}
