// The records of the transparent audit log: what leaves commit to that is in no other table.
import { and, asc, desc, eq, gt, max, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type LogRecordKind, logRecords } from '../schema/log-schema.ts'
import { usage } from '../schema/record-schema.ts'
import type { Statement } from '../write/rows.ts'

export function insertLogRecord(orm: Orm, kind: LogRecordKind, at: number, body: object): Statement {
  return orm.insert(logRecords).values({ kind, at, body: JSON.stringify(body) })
}

/** The id of the newest record; 0 without one. */
export async function lastLogRecordId(orm: Orm): Promise<number> {
  const [last] = await orm.select({ id: max(logRecords.id) }).from(logRecords)
  return last?.id ?? 0
}

/** Records the totals of days, unless there is a record that is newer than `lastRecord`: it can be of another node, or of an erasure. */
export function insertUsageDays(at: number, lastRecord: number, bodies: readonly object[]): Statement {
  const insert = `insert into log_records (at, kind, body) select ?, 'usage_day', value from json_each(?)
    where (select coalesce(max(id), 0) from log_records) = ?`
  const params = [at, JSON.stringify(bodies.map((body) => JSON.stringify(body))), lastRecord]
  return { toSQL: () => ({ sql: insert, params }) }
}

/** Records an erasure under the next id. The commit fails with an error that is `isOvertaken` if that is taken meanwhile. */
export function insertErasure(orm: Orm, { id, at, body }: { id: number; at: number; body: object }): Statement {
  return orm.insert(logRecords).values({ id, kind: 'erasure', at, body: JSON.stringify(body) })
}

/**
 * Finds where the ledger rows of a time begin. Rows are in the order of their commits: one of an earlier time can come after it.
 * @returns the id of the first row since `time`, or the one that the next row gets
 */
export async function usageRowSince(orm: Orm, time: number): Promise<number> {
  const [ends] = await orm.all<{ low: number | null; high: number | null }>(
    sql`select min(id) as low, max(id) as high from ${usage}`,
  )
  let [low, high] = [ends?.low ?? 1, (ends?.high ?? 0) + 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [row] = await orm.all<{ id: number; at: number }>(
      sql`select id, at from ${usage} where id >= ${middle} order by id limit 1`,
    )
    if (row === undefined || row.at >= time) high = middle
    else low = row.id + 1
  }
  return low
}

/** Records of a kind with ids above `after`, oldest first. */
export function listLogRecords(orm: Orm, kind: LogRecordKind, after: number, most: number) {
  return orm
    .select()
    .from(logRecords)
    .where(and(eq(logRecords.kind, kind), gt(logRecords.id, after)))
    .orderBy(asc(logRecords.id))
    .limit(most)
}

const recordsAtOnce = 1_000

/** Records of a kind, oldest first. */
export async function* listAllLogRecords(orm: Orm, kind: LogRecordKind) {
  for (let after = 0; ; ) {
    const records = await listLogRecords(orm, kind, after, recordsAtOnce)
    yield* records
    if (records.length < recordsAtOnce) return
    after = records.at(-1)?.id ?? after
  }
}

/** The newest record of a kind. */
export async function findLogRecord(orm: Orm, kind: LogRecordKind): Promise<{ at: number; body: string } | undefined> {
  const [found] = await orm
    .select()
    .from(logRecords)
    .where(eq(logRecords.kind, kind))
    .orderBy(desc(logRecords.id))
    .limit(1)
  return found
}
