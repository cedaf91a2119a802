// Copies every row of one database into another one with the same schema, and compares the two. Neither may change meanwhile.
import { createHash } from 'node:crypto'
import type { InValue, Row } from '@libsql/core/api'
import type { Database } from '../file/open.ts'
import type { BoundStatement } from '../write/rows.ts'
import { readFitting } from './fitting.ts'

/**
 * A table with its columns, in an order in which rows can be inserted: what a row refers to comes first. Rows without an integer key are
 * copied in the order in which they were inserted, in which they are listed.
 */
export type CopiedTable = { name: string; columns: string[]; keys: string[]; blobs: string[] }
export type TableDigest = { table: string; rows: number; sha256: string }

/** What each database has for itself. Of epochs, since source and copy may both go on, and two logs must not have one name. */
const ownTables = ['schema_migrations', 'nodes', 'batches', 'archive_lease', 'sign_in_links', 'log_epochs']
const rowsAtOnce = 500
const rowsPerStatement = 100
/** After which a commit ends: it may take five seconds, on a slow network too. */
const charactersMax = 4_000_000
/** Copied last: a database without it is refused as unfinished. */
const identityTable = 'installation'
/** What the migrations fill. */
const filledTables = [identityTable, 'served_summed']

/** Reads the tables from a database file: a server may refuse the pragmas. */
export async function listCopiedTables({ client }: Database): Promise<CopiedTable[]> {
  const { rows } = await client.execute(
    "select name, sql from sqlite_master where type = 'table' and name not like 'sqlite_%' order by rowid",
  )
  const texts = new Map(rows.map(({ name, sql }) => [String(name), String(sql)]))
  const sorted: string[] = []
  const add = (name: string, path: string[]) => {
    if (sorted.includes(name) || path.includes(name) || ownTables.includes(name)) return
    for (const [, other = ''] of (texts.get(name) ?? '').matchAll(/references "?(\w+)"?/gi)) add(other, [...path, name])
    sorted.push(name)
  }
  for (const name of texts.keys()) add(name, [])
  const tables: CopiedTable[] = []
  for (const name of sorted) {
    const { rows: columns } = await client.execute(`select name, pk, type from pragma_table_info('${name}')`)
    const keys = columns.filter(({ pk }) => Number(pk) > 0).toSorted((one, other) => Number(one.pk) - Number(other.pk))
    const isByKeys =
      /without rowid/i.test(texts.get(name) ?? '') ||
      (keys.length === 1 && String(keys[0]?.type).toUpperCase() === 'INTEGER')
    const blobs = columns.filter(({ type }) => String(type).toLowerCase() === 'blob').map(nameOf)
    tables.push({ name, columns: columns.map(nameOf), keys: isByKeys ? keys.map(nameOf) : ['rowid'], blobs })
  }
  return tables
}

const nameOf = ({ name }: Row) => String(name)

/** Reports whether a database has rows that a copy would mix with. */
export async function hasRows({ client }: Database, tables: readonly CopiedTable[]): Promise<boolean> {
  for (const { name } of tables.filter(({ name }) => !filledTables.includes(name))) {
    const { rows } = await client.execute(`select 1 from ${name} limit 1`)
    if (rows.length > 0) return true
  }
  return false
}

/** Takes what the migrations made, such as the identity. Until that of the source is copied, nothing opens the target. */
export async function clearFilled(to: Database): Promise<void> {
  await to.commit(filledTables.map((name) => ({ sql: `delete from ${name}`, args: [] })))
}

export function isIdentity({ name }: CopiedTable): boolean {
  return name === identityTable
}

/** The number of the newest commit on a database server, 0 in a file. It grows with every change of a node or command. */
export async function readNewestCommit({ client }: Database): Promise<number> {
  const { rows } = await client.execute('select max(number) as newest from batches')
  return Number(rows[0]?.newest ?? 0)
}

/** Counts the rows of all tables. */
export async function countRows({ client }: Database, tables: readonly CopiedTable[]): Promise<number> {
  let count = 0
  for (const { name } of tables) {
    const { rows } = await client.execute(`select count(*) as n from ${name}`)
    count += Number(rows[0]?.n)
  }
  return count
}

/** Copies the rows of a table. `onRows` gets the number of rows of each commit. */
export async function copyTable(
  from: Database,
  to: Database,
  table: CopiedTable,
  onRows: (rows: number) => void,
): Promise<void> {
  const { name, columns, blobs } = table
  const tuple = `(${columns.map((column) => (blobs.includes(column) ? 'unhex(?)' : '?')).join(',')})`
  const insertOf = (rows: Row[]): BoundStatement => ({
    sql: `insert into ${name} (${columns.join(',')}) values ${rows.map(() => tuple).join(',')}`,
    args: rows.flatMap((row) => columns.map((column) => (row[column] ?? null) as InValue)),
  })
  for await (const rows of readRows(from, table)) {
    let statements: BoundStatement[] = []
    let characters = 0
    for (const some of inStatements(rows)) {
      statements.push(insertOf(some.rows))
      characters += some.characters
      if (characters < charactersMax) continue
      await to.commit(statements)
      statements = []
      characters = 0
    }
    if (statements.length > 0) await to.commit(statements)
    onRows(rows.length)
  }
}

/** Rows of one insert, with their approximate size. */
function* inStatements(rows: Row[]): Generator<{ rows: Row[]; characters: number }> {
  let some: Row[] = []
  let characters = 0
  for (const row of rows) {
    some.push(row)
    for (const value of Object.values(row)) if (typeof value === 'string') characters += value.length
    if (some.length < rowsPerStatement && characters < charactersMax) continue
    yield { rows: some, characters }
    some = []
    characters = 0
  }
  if (some.length > 0) yield { rows: some, characters }
}

/** Counts the rows of a table, and hashes them in the order in which they are copied. */
export async function digestTable(
  database: Database,
  table: CopiedTable,
  onRows: (rows: number) => void = () => {},
): Promise<TableDigest> {
  const hash = createHash('sha256')
  let count = 0
  for await (const rows of readRows(database, table)) {
    count += rows.length
    onRows(rows.length)
    for (const row of rows) hash.update(JSON.stringify(table.columns.map((column) => row[column])))
  }
  return { table: table.name, rows: count, sha256: hash.digest('hex') }
}

/** BLOBs come as hexadecimal digits: a node reads few others at a time (../remote/bounded-response.ts), and a digest must see their bytes. */
async function* readRows({ client }: Database, { name, columns, keys, blobs }: CopiedTable): AsyncGenerator<Row[]> {
  const order = keys.join(',')
  const after = `(${order}) > (${keys.map(() => '?').join(',')})`
  let last: Row | undefined
  let most = rowsAtOnce
  do {
    const where = last === undefined ? '' : `where ${after}`
    const values = columns.map((column) =>
      blobs.includes(column) ? `iif(${column} is null, null, hex(${column})) as ${column}` : column,
    )
    const selected = keys.includes('rowid') ? ['rowid', ...values] : values
    const sql = `select ${selected.join(',')} from ${name} ${where} order by ${order} limit ?`
    const before: Row | undefined = last
    const args = before === undefined ? [] : keys.map((key) => before[key] as InValue)
    const { result, rows: taken } = await readFitting(most, (limit) => client.execute({ sql, args: [...args, limit] }))
    most = taken
    const { rows } = result
    if (rows.length > 0) yield rows
    last = rows.length === taken ? rows.at(-1) : undefined
  } while (last !== undefined)
}
