// A libSQL server refuses responses of more than 10 MB, and values of more than 5 MB. What is read many rows at a time is
// therefore read in halves where that is too much.
import { type SQL, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
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

/** Ids per statement. */
const idsAtOnce = 500

/** Reads what the ids name, as many at a time as fit. Other work comes in between. */
export async function readByIds<Row>(ids: readonly string[], read: (some: string[]) => Promise<Row[]>): Promise<Row[]> {
  const found: Row[] = []
  for (let start = 0, most = idsAtOnce; start < ids.length; start += most) {
    const { result, rows } = await readFitting(most, (count) => read(ids.slice(start, start + count)))
    most = rows
    found.push(...result)
    if (start + most < ids.length) await nextSlice()
  }
  return found
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
