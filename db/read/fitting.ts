// A libSQL server refuses responses of more than 10 MB, and values of more than 5 MB. What is read many rows at a time is
// therefore read in halves where that is too much.
import { type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../file/open.ts'
import { isTooLarge } from '../remote/server-errors.ts'
import { nextSlice } from './pace.ts'

/**
 * Reads `rowsMax` rows at most: half as many, as often as that is too large for the server. Returns how many it took, so that
 * the next read begins with it.
 */
export async function readFitting<Result>(
  rowsMax: number,
  read: (rows: number) => Promise<Result>,
): Promise<{ result: Result; rows: number }> {
  for (let rows = rowsMax; ; rows = Math.ceil(rows / 2)) {
    try {
      return { result: await read(rows), rows }
    } catch (error) {
      if (rows === 1 || !isTooLarge(error)) throw error
    }
  }
}

/** Ids per statement: 2 to 4 ms for the driver, which makes an object of each row. */
const idsAtOnce = 100
const numbersAtOnce = 1_000

type TableWithId = SQLiteTable & { id: SQLiteColumn }

/**
 * Reads the rows with these ids, as many at a time as fit, in the order in which they were inserted: that of `readInParts`, so that all nodes
 * list rows in the same order, whenever they read them. Other work comes in between.
 */
export async function readByIds<Row extends { id: string }>(
  orm: Orm,
  table: TableWithId,
  ids: readonly string[],
  read: (some: string[]) => Promise<Row[]>,
): Promise<Row[]> {
  const ordered = await inRowOrder(orm, table, ids)
  const found: Row[] = []
  for (let start = 0, most = idsAtOnce; start < ordered.length; start += most) {
    const { result, rows } = await readFitting(most, (count) => read(ordered.slice(start, start + count)))
    most = rows
    const byId = new Map(result.map((row) => [row.id, row]))
    found.push(...ordered.slice(start, start + most).flatMap((id) => byId.get(id) ?? []))
    if (start + most < ordered.length) await nextSlice()
  }
  return found
}

/** Row numbers only grow, since no row of these tables is ever deleted. */
async function inRowOrder(orm: Orm, table: TableWithId, ids: readonly string[]): Promise<readonly string[]> {
  if (ids.length < 2) return ids
  const numbered: [id: string, number: number][] = []
  for (let start = 0; start < ids.length; start += numbersAtOnce) {
    const some = JSON.stringify(ids.slice(start, start + numbersAtOnce))
    const isOne = sql`${table.id} in (select value from json_each(${some}))`
    // As one text, since the driver takes longer to return rows.
    const [found] = await orm.all<{ numbered: string }>(sql`
      select json_group_array(json_array(${table.id}, ${table}.rowid)) as numbered from ${table} where ${isOne}`)
    numbered.push(...(JSON.parse(found?.numbered ?? '[]') as typeof numbered))
    await nextSlice()
  }
  return numbered.toSorted(([, one], [, other]) => one - other).map(([id]) => id)
}

/**
 * Reads a table in the order of its row numbers: of `rowNumbersMax` numbers at a time, or fewer where their rows do not fit.
 * `read` gets the condition that selects a part.
 */
export async function* readInParts<Part>(
  orm: Orm,
  table: SQLiteTable,
  rowNumbersMax: number,
  read: (isInPart: SQL) => Promise<Part>,
): AsyncGenerator<Part> {
  const [{ last } = { last: null }] = await orm.all<{ last: number | null }>(
    sql`select max(rowid) as last from ${table}`,
  )
  for (let start = 0, most = rowNumbersMax; start < (last ?? 0); start += most) {
    const { result, rows } = await readFitting(most, (count) =>
      read(sql`${table}.rowid > ${start} and ${table}.rowid <= ${start + count}`),
    )
    most = rows
    yield result
  }
}
