// Builds insert statements for many rows. drizzle's builder takes longer to build the text than SQLite takes to insert
// the rows.
import type { InValue } from '@libsql/core/api'
import { getTableColumns, getTableName } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'

/** A statement with the values of its placeholders. */
export type BoundStatement = { sql: string; args: InValue[] }

/** Anything that drizzle can turn into SQL. */
export type Statement = { toSQL: () => { sql: string; params: unknown[] } }

/** An item that can share statements with items of the same kind from other changes, which is several times faster. */
export type Bulk = { item: unknown; toStatements: (items: unknown[]) => Iterable<Statement> }

/** Defines a kind of item. `toStatements` builds the statements for any number of items, in order, each when it is asked for. */
export function createBulk<Item>(toStatements: (items: Item[]) => Iterable<Statement>): (item: Item) => Bulk {
  const toMerged = (items: unknown[]) => toStatements(items as Item[])
  return (item) => ({ item, toStatements: toMerged })
}

/** Merges the items of each kind between two plain statements. Kinds keep the order in which they first occur. */
export function* mergeBulks(all: Iterable<Statement | Bulk>): Generator<Statement> {
  const itemsOf = new Map<Bulk['toStatements'], unknown[]>()
  function* flush(): Generator<Statement> {
    for (const [toStatements, items] of itemsOf) yield* toStatements(items)
    itemsOf.clear()
  }
  for (const each of all) {
    if ('toSQL' in each) {
      yield* flush()
      yield each
    } else {
      const items = itemsOf.get(each.toStatements)
      if (items === undefined) itemsOf.set(each.toStatements, [each.item])
      else items.push(each.item)
    }
  }
  yield* flush()
}

/** The target of an insert. The columns omit the id of a table that numbers its own rows. */
export type Insertion = {
  verb: string
  table: string
  columns: [field: string, name: string][]
  /** The statement for one row. */
  single: string
}

export function insertion(
  table: SQLiteTable,
  verb: 'insert' | 'insert or replace' | 'insert or ignore' = 'insert',
): Insertion {
  const columns = Object.entries(getTableColumns(table)).filter(
    ([, { name, dataType }]) => name !== 'id' || dataType !== 'number',
  )
  const target = `${verb} into ${getTableName(table)}`
  const names = columns.map(([, { name }]) => name).join(',')
  return {
    verb,
    table: getTableName(table),
    columns: columns.map(([field, { name }]) => [field, name]),
    single: `${target} (${names}) ${valuesOf(columns.length, 0, 1)}`,
  }
}

/**
 * Builds one insert statement. One row always has the same text, whose prepared statement is kept. Of several rows,
 * binding a value costs more than storing it, so a value shared by all rows is bound once, and a column without values
 * is omitted. The first column is always bound per row, so that identical rows remain separate rows.
 */
export function insertOf({ verb, table, columns, single }: Insertion, rows: readonly object[]): BoundStatement {
  const values = rows as readonly Record<string, unknown>[]
  const [first] = values
  if (first !== undefined && values.length === 1)
    return { sql: single, args: columns.map(([field]) => driverValue(first[field])) }
  const { shared, own, args } = partition(columns, values)
  const names = [...shared, ...own.map(([, column]) => column)].join(',')
  return { sql: `${verb} into ${table} (${names}) ${valuesOf(shared.length, own.length, rows.length)}`, args }
}

type Columns = readonly [field: string, name: string][]

/** The names of the columns whose value all rows share, unless that is null, the columns of the others, and the values of both, in that order. */
function partition(columns: Columns, rows: readonly Record<string, unknown>[], nullsToo = false) {
  const shared: string[] = []
  const own: [field: string, name: string][] = []
  const args: InValue[] = []
  for (const [field, column] of columns) {
    const value = rows[0]?.[field]
    if (own.length === 0 || hasOther(rows, field, value)) own.push([field, column])
    else if (nullsToo || value !== null) {
      shared.push(column)
      args.push(driverValue(value))
    }
  }
  for (const row of rows) for (const [field] of own) args.push(driverValue(row[field]))
  return { shared, own, args }
}

function hasOther(rows: readonly Record<string, unknown>[], field: string, value: unknown): boolean {
  for (const row of rows) if (row[field] !== value) return true
  return false
}

/** One to two milliseconds of work: nothing else runs during a statement. It has at most 32,766 values. */
const rowsPerStatement = 100

/**
 * Inserts of rows, and changes of rows by id, that share statements, which takes a tenth of the time of one each. The id and the fields that
 * are `kept` never change.
 */
export function createRowBulks<Row extends { id: string }>(
  table: SQLiteTable,
  kept: readonly (keyof Row & string)[] = [],
) {
  const columns = getTableColumns(table)
  const into = insertion(table)
  const toStored = (row: object) =>
    Object.fromEntries(
      Object.entries(row).flatMap(([field, value]) => {
        if (value === undefined) return []
        return [[field, value === null ? null : columns[field]?.mapToDriverValue(value)]]
      }),
    )
  const insert = createBulk(function* (rows: Row[]) {
    for (const some of inChunks(rows)) yield insertRows(into, some.map(toStored))
  })
  const update = createBulk(function* (changes: (Partial<Row> & { id: string })[]) {
    for (const some of inChunks(changes)) {
      const alike = Map.groupBy(some.map(toStored), (change) => Object.keys(change).join())
      for (const rows of alike.values()) yield updateRows(into, rows, kept)
    }
  })
  return { insert, update }
}

/** Sets in each row what the rows say. All say the same fields. */
function updateRows({ table, columns }: Insertion, rows: Record<string, unknown>[], kept: readonly string[]) {
  const said = columns.filter(
    ([field]) => field !== 'id' && !kept.includes(field) && Object.hasOwn(rows[0] ?? {}, field),
  )
  // The id, which is first, is bound for each row.
  const { shared, own, args } = partition([['id', 'id'], ...said], rows, true)
  const assigned = [
    ...shared.map((column) => `${column} = ?`),
    ...own.slice(1).map(([, column], index) => `${column} = changed.column${index + 2}`),
  ]
  const tuple = `(${new Array(own.length).fill('?').join(',')})`
  const values = new Array(rows.length).fill(tuple).join(',')
  const sql = `update ${table} set ${assigned.join(',')} from (values ${values}) as changed where ${table}.id = changed.column1`
  return { toSQL: () => ({ sql, params: args }) }
}

/** As many rows as may share a statement. */
export function inChunks<Row>(rows: readonly Row[]): Row[][] {
  const chunks: Row[][] = []
  for (let start = 0; start < rows.length; start += rowsPerStatement)
    chunks.push(rows.slice(start, start + rowsPerStatement))
  return chunks
}

/** Wraps the insert as a statement for a batch. */
export function insertRows(into: Insertion, rows: readonly object[]): Statement {
  return {
    toSQL: () => {
      const { sql, args } = insertOf(into, rows)
      return { sql, params: args }
    },
  }
}

/** Returns placeholders for the values that all rows share, followed by the values of each row. */
function valuesOf(shared: number, own: number, rows: number): string {
  const sharedPlaces = new Array<string>(shared).fill('?')
  if (own === 0) return `values (${sharedPlaces.join(',')})`
  const ownColumns = Array.from({ length: own }, (_, index) => `column${index + 1}`)
  const tuple = `(${new Array(own).fill('?').join(',')})`
  return `select ${[...sharedPlaces, ...ownColumns].join(',')} from (values ${new Array(rows).fill(tuple).join(',')})`
}

function driverValue(value: unknown): InValue {
  if (value === undefined) return null
  return typeof value === 'boolean' ? Number(value) : (value as InValue)
}
