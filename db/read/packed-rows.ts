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
 * How the rows of one table are packed. `first` names the fields whose values begin the text; those that `packedValue` reads must be text
 * without escapes. `shortened` names the fields of text that have an ellipsis in every row.
 */
export type RowPacker<Row> = {
  /** Reads the rows that `where` selects, or all, in the order in which they were inserted, many in one text. */
  read: (orm: Orm, where?: SQL) => AsyncGenerator<string>
  unpack: (text: string) => Row
}

export function packing<Table extends SQLiteTable>(
  table: Table,
  first: readonly string[] = ['id'],
  shortened: readonly string[] = [],
): RowPacker<InferSelectModel<Table>> {
  const all = getTableColumns(table)
  const fields = [...first, ...Object.keys(all).filter((field) => !first.includes(field))]
  const columns = fields.map((field) => ({ field, ...columnOf(all[field], shortened.includes(field)) }))
  const values = sql.raw(columns.map(({ expression }) => expression).join(','))
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
      for (const [index, { field, unpackValue }] of columns.entries()) row[field] = unpackValue(values[index])
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

function columnOf(column: { name: string; dataType: string } | undefined, isShortened: boolean): Column {
  if (column === undefined) throw new Error('The table lacks a column to pack')
  const { name, dataType } = column
  if (isShortened)
    return {
      expression: `replace(${name}, '${ellipsis}', char(${placeholder.charCodeAt(0)}))`,
      unpackValue: (value) => String(value).replace(placeholder, ellipsis),
    }
  if (dataType === 'boolean') return { expression: name, unpackValue: (value) => value === 1 }
  if (dataType === 'json')
    return { expression: name, unpackValue: (value) => (value === null ? null : JSON.parse(String(value))) }
  return { expression: name, unpackValue: (value) => value }
}
