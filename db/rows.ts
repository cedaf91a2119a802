// Rows as one insert statement: drizzle's builder takes longer for the text of many than SQLite takes for the rows.
import { getTableColumns, getTableName } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Statement } from './write.ts'

/** All rows in one statement. Of a table that numbers its rows the number is left out. */
export function insertRows(table: SQLiteTable, rows: readonly object[]): Statement {
  const columns = Object.entries(getTableColumns(table)).filter(
    ([, { name, dataType }]) => name !== 'id' || dataType !== 'number',
  )
  const tuple = `(${columns.map(() => '?').join(',')})`
  const names = columns.map(([, { name }]) => name).join(',')
  const sql = `insert into ${getTableName(table)} (${names}) values ${new Array(rows.length).fill(tuple).join(',')}`
  const params = (rows as Record<string, unknown>[]).flatMap((row) => columns.map(([field]) => row[field] ?? null))
  return { toSQL: () => ({ sql, params }) }
}
