// Reads whole tables as text, many rows at once, each a JSON array of its columns on its own line. It takes less time than reading rows
// through the client, and a row that is not unpacked takes little memory.
import { getTableColumns, type InferSelectModel, type SQL, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../file/open.ts'
import { readInParts } from './fitting.ts'

/** One statement reads so many rows: few statements, and no text that takes much memory beside the rows. */
const rowsAtOnce = 500

/** A text with an ellipsis takes two bytes for each character. */
const [ellipsis, placeholder] = ['…', '\u0001']

/**
 * How the rows of one table are packed: all values that no row lacks, then one list of the others, which is null where all of them are, as
 * in most rows. Loading them takes a tenth less time that way.
 */
export type RowPacker<Row> = {
  /** Reads the rows that `where` selects, or all, in the order in which they were inserted, many in one text. */
  read: (orm: Orm, where?: SQL) => AsyncGenerator<string>
  unpack: (text: string) => Row
}

/** Fields of a table, by what is known of their values. */
type PackedFields = {
  /** Their values begin the text; those that `packedValue` reads must be text without escapes. */
  first?: readonly string[]
  /** Text that has an ellipsis in every row. */
  shortened?: readonly string[]
  /** They can be null, but often are not. */
  often?: readonly string[]
}

export function packing<Table extends SQLiteTable>(
  table: Table,
  { first = ['id'], shortened = [], often = [] }: PackedFields = {},
): RowPacker<InferSelectModel<Table>> {
  const all = getTableColumns(table)
  const isRare = (field: string) => all[field]?.notNull === false && ![...first, ...shortened, ...often].includes(field)
  const others = Object.keys(all).filter((field) => !first.includes(field))
  const toColumn = (field: string) => ({ field, ...columnOf(all[field], shortened.includes(field)) })
  const columns = [...first, ...others.filter((field) => !isRare(field))].map(toColumn)
  const rare = others.filter(isRare).map(toColumn)
  const values = sql.raw([...expressionsOf(columns), ...(rare.length === 0 ? [] : [rareValues(rare)])].join(','))
  const rows = sql`group_concat(json_array(${values}), char(10))`
  return {
    read: async function* (orm, where = sql`true`) {
      const parts = readInParts(orm, table, rowsAtOnce, (isInPart) =>
        orm.all<{ rows: string | null }>(sql`select ${rows} as rows from ${table} where ${isInPart} and ${where}`),
      )
      for await (const [part] of parts) {
        // JSON escapes every line break inside a value.
        if (part !== undefined && part.rows !== null) yield part.rows
      }
    },
    unpack: (text) => {
      const values = JSON.parse(text) as unknown[]
      const row: Record<string, unknown> = {}
      unpackInto(row, columns, values)
      unpackInto(row, rare, (values[columns.length] as unknown[] | null) ?? [])
      return row as InferSelectModel<Table>
    },
  }
}

/** The rows of one text, each with its first value, which is its key. */
export function* packedRows(rows: string): Generator<[key: string, row: string]> {
  for (const row of rows.split('\n')) yield [packedValue(row), row]
}

/** The value at a place among the first fields of a packed row. */
export function packedValue(text: string, place = 0): string {
  let start = 2
  // Three characters lie between two values: a quote, a comma and a quote.
  for (let passed = 0; passed < place; passed++) start = text.indexOf('"', start) + 3
  return text.slice(start, text.indexOf('"', start))
}

/** Whether one of the columns of a packed row may have this value. */
export function mayHave(value: string): (text: string) => boolean {
  const packed = JSON.stringify(value)
  return (text) => text.includes(packed)
}

type Column = { expression: string; unpackValue: (value: unknown) => unknown }
type FieldColumn = Column & { field: string }

function expressionsOf(columns: readonly FieldColumn[]): string[] {
  return columns.map(({ expression }) => expression)
}

function rareValues(rare: readonly FieldColumn[]): string {
  const expressions = expressionsOf(rare)
  const areNull = expressions.map((expression) => `${expression} is null`).join(' and ')
  return `case when ${areNull} then null else json_array(${expressions.join(',')}) end`
}

/** A value that is missing is null. */
function unpackInto(row: Record<string, unknown>, columns: readonly FieldColumn[], values: readonly unknown[]): void {
  for (const [index, { field, unpackValue }] of columns.entries()) {
    const value = values[index] ?? null
    row[field] = value === null ? null : unpackValue(value)
  }
}

function columnOf(column: { name: string; dataType: string } | undefined, isShortened: boolean): Column {
  if (column === undefined) throw new Error('The table lacks a column to pack')
  const { name, dataType } = column
  if (isShortened)
    return {
      expression: `replace(${name}, '${ellipsis}', char(${placeholder.charCodeAt(0)}))`,
      unpackValue: (value) => String(value).replace(placeholder, ellipsis),
    }
  if (dataType === 'boolean') return { expression: name, unpackValue: (value) => value === 1 }
  if (dataType === 'json') return { expression: name, unpackValue: (value) => JSON.parse(String(value)) }
  return { expression: name, unpackValue: (value) => value }
}
