// Which tables have rows, in one query: a start reads nothing else of those that have none.
import { sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../file/open.ts'

/** Returns those of the tables that have a row. */
export async function findFilled(orm: Orm, tables: readonly SQLiteTable[]): Promise<Set<SQLiteTable>> {
  const columns = tables.map((table, place) => sql`exists (select 1 from ${table}) as ${sql.identifier(`t${place}`)}`)
  const [found = {}] = await orm.all<Record<string, number>>(sql`select ${sql.join(columns, sql`, `)}`)
  return new Set(tables.filter((_, place) => found[`t${place}`] === 1))
}
