// Reads whole tables as text, many rows at once, each a JSON array on its own line: first the values that differ from row to row, then a null where
// all others are those of the first of these rows, as in most rows, or else a list of them. It takes less time and memory than rows.
import { getTableColumns, type InferSelectModel, type SQL, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../file/open.ts'
import { readInParts } from './fitting.ts'

/** One statement reads so many rows: few statements, and no text that takes much memory beside the rows. */
const rowsAtOnce = 2_000

/** A text with an ellipsis takes two bytes for each character. */
const [ellipsis, placeholder] = ['…', '\u0001']

/** The values that most rows of a text share: as text, and by field. */
export type CommonValues<Row> = { readonly text: string; readonly values: Partial<Row> }

/** One row, or many. */
export type PackedRow<Row> = { text: string; common: CommonValues<Row> }

export type RowPacker<Row> = {
  /** Reads the rows that `where` selects, or all, in the order in which they were inserted, many in one text. */
  read: (orm: Orm, where?: SQL) => AsyncGenerator<PackedRow<Row>>
  unpack: (row: PackedRow<Row>) => Row
  /** One value of a row, which is unpacked only if it does not share the values of others. */
  valueOf: <Field extends string & keyof Row>(row: PackedRow<Row>, field: Field) => Row[Field]
}

/** Fields of a table, by what is known of their values. */
type PackedFields = {
  /** They begin the text: texts without escapes, by which a row is found. */
  first?: readonly string[]
  /** They differ from row to row. */
  own?: readonly string[]
  /** Those of them that have an ellipsis in every row. */
  shortened?: readonly string[]
}

export function packing<Table extends SQLiteTable>(
  table: Table,
  { first = ['id'], own = [], shortened = [] }: PackedFields = {},
): RowPacker<InferSelectModel<Table>> {
  type Row = InferSelectModel<Table>
  const all = getTableColumns(table)
  const toColumn = (field: string) => ({ field, ...columnOf(all[field], shortened.includes(field)) })
  const ownColumns = [...first, ...own].map(toColumn)
  const shared = Object.keys(all)
    .filter((field) => !first.includes(field) && !own.includes(field))
    .map(toColumn)
  const readPart = partReader(table, ownColumns, shared)
  const unpack: RowPacker<Row>['unpack'] = ({ text, common }) => {
    const values = JSON.parse(text) as unknown[]
    const others = values[ownColumns.length] as unknown[] | null
    return { ...(others === null ? common.values : toFields(shared, others)), ...toFields(ownColumns, values) } as Row
  }
  let common: CommonValues<Row> = { text: '', values: {} }

  return {
    read: async function* (orm, where = sql`true`) {
      const parts = readInParts(orm, table, rowsAtOnce, (isInPart) => readPart(orm, sql`${isInPart} and ${where}`))
      for await (const part of parts) {
        if (part === undefined) continue
        // Most parts of a table have the same values in common, which are held once.
        if (part.common !== common.text)
          common = { text: part.common, values: toFields(shared, JSON.parse(part.common)) as Partial<Row> }
        yield { text: part.rows, common }
      }
    },
    unpack,
    valueOf: (row, field) => {
      const place = ownColumns.findIndex((column) => column.field === field)
      const own = ownColumns[place]
      if (own !== undefined) {
        const value = JSON.parse(textAt(row.text, place, first.length)) as unknown
        return (value === null ? null : own.unpackValue(value)) as Row[typeof field]
      }
      const known = row.text.endsWith(',null]') ? row.common.values[field] : undefined
      return known === undefined ? unpack(row)[field] : known
    },
  }
}

/** The JSON of a value, which is a text or has no comma in it. */
const valueText = /"(?:[^"\\]|\\.)*"|[^,\]]*/y

/** The JSON of one of a row's own values, of which the first are texts without escapes: those are passed over in less time. */
function textAt(text: string, place: number, firstCount: number): string {
  let start = 1
  for (let passed = 0; passed < place; passed++) {
    if (passed < firstCount) start = text.indexOf('"', start + 1) + 2
    else {
      valueText.lastIndex = start
      valueText.test(text)
      start = valueText.lastIndex + 1
    }
  }
  valueText.lastIndex = start
  return valueText.exec(text)?.[0] ?? ''
}

type Column = { name: string; expression: string; unpackValue: (value: unknown) => unknown }
type FieldColumn = Column & { field: string }

type Part = { rows: string; common: string }

/** Reads the rows that a condition selects, and what the first of them shares with the others. */
function partReader(table: SQLiteTable, own: readonly FieldColumn[], shared: readonly FieldColumn[]) {
  const listed = (columns: readonly FieldColumn[]) => sql.raw(columns.map(({ expression }) => expression).join(','))
  const others = sql`json_array(${listed(shared)})`
  return async (orm: Orm, where: SQL): Promise<Part | undefined> => {
    const [first] = await orm.all<{ common: string }>(
      sql`select ${others} as common from ${table} where ${where} limit 1`,
    )
    if (first === undefined) return undefined
    const values = JSON.parse(first.common) as unknown[]
    // Comparing with parameters takes a third of the time of comparing with columns.
    const isShared = shared.map(({ name }, index) =>
      values[index] === null ? sql.raw(`${name} is null`) : sql`${sql.raw(name)} = ${values[index]}`,
    )
    const row = sql`json_array(${listed(own)}, case when ${sql.join(isShared, sql` and `)} then null else ${others} end)`
    const [part] = await orm.all<{ rows: string | null }>(
      sql`select group_concat(${row}, char(10)) as rows from ${table} where ${where}`,
    )
    // On a server database, another node can have deleted the last of them since they were looked at.
    return part === undefined || part.rows === null ? undefined : { rows: part.rows, ...first }
  }
}

/** A value that is missing is null. */
function toFields(columns: readonly FieldColumn[], values: readonly unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (const [index, { field, unpackValue }] of columns.entries()) {
    const value = values[index] ?? null
    row[field] = value === null ? null : unpackValue(value)
  }
  return row
}

function columnOf(column: { name: string; dataType: string } | undefined, isShortened: boolean): Column {
  if (column === undefined) throw new Error('The table lacks a column to pack')
  const { name, dataType } = column
  if (isShortened)
    return {
      name,
      expression: `replace(${name}, '${ellipsis}', char(${placeholder.charCodeAt(0)}))`,
      unpackValue: (value) => String(value).replace(placeholder, ellipsis),
    }
  const unpackValue =
    dataType === 'boolean'
      ? (value: unknown) => value === 1
      : dataType === 'json'
        ? (value: unknown) => JSON.parse(String(value))
        : (value: unknown) => value
  return { name, expression: name, unpackValue }
}
