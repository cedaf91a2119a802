// The tables of the transparent audit log: leaves, the hashes of whole tiles and records. It stores; src/audit-log/ decides
// what a leaf is. audit-checkpoints.ts has what is signed.
import { and, asc, desc, eq, gt, gte, lt, max, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { readFitting } from '../read/fitting.ts'
import {
  type LogRecordKind,
  type LogSource,
  logEntries,
  logNodes,
  logPositions,
  logRecords,
} from '../schema/log-schema.ts'
import { usage } from '../schema/record-schema.ts'
import type { Statement } from '../write/rows.ts'

export type LogEntry = {
  leaf: number
  /** A code of src/audit-log/entry.ts. */
  kind: number
  /** The id of the row that it covers. */
  ref: number
  at: number
  /** Null once the row is erased. */
  salt: Buffer | null
  commitment: Buffer
}

export type LogNode = { level: number; number: number; hash: Uint8Array }

/** The number of leaves, and up to which row each source has them. */
export type LogHead = { size: number; positions: Record<LogSource, number> }

export async function readLogHead(orm: Orm): Promise<LogHead> {
  const [[last], rows] = await Promise.all([
    orm.select({ leaf: max(logEntries.leaf) }).from(logEntries),
    orm.select().from(logPositions),
  ])
  const positions = {
    exchanges: 0,
    changes: 0,
    records: 0,
    ...Object.fromEntries(rows.map((row) => [row.source, row.ref])),
  }
  return { size: (last?.leaf ?? -1) + 1, positions }
}

/** Reads leaves from `from` to below `until`, at most as many as fit in a response: read again from the last one. */
export async function readLogEntries(orm: Orm, from: number, until: number): Promise<LogEntry[]> {
  const { result } = await readFitting(until - from, (rows) =>
    orm.all<{ text: string | null }>(sql`
      select group_concat(line, char(10)) as "text" from (
        select leaf || ' ' || kind || ' ' || ref || ' ' || at || ' ' || coalesce(hex(salt), '') || ' ' || hex(commitment) as line
        from ${logEntries} where leaf >= ${from} and leaf < ${from + rows} order by leaf)`),
  )
  const text = result[0]?.text ?? null
  return text === null ? [] : text.split('\n').map(parseEntry)
}

function parseEntry(line: string): LogEntry {
  const [leaf, kind, ref, at, salt = '', commitment = ''] = line.split(' ')
  return {
    leaf: Number(leaf),
    kind: Number(kind),
    ref: Number(ref),
    at: Number(at),
    salt: salt === '' ? null : Buffer.from(salt, 'hex'),
    commitment: Buffer.from(commitment, 'hex'),
  }
}

/**
 * Appends leaves and what follows from them. The commit fails with an error that is `isOvertaken` if another node has appended leaves
 * since they were planned.
 */
export function appendLog(
  entries: readonly LogEntry[],
  nodes: readonly LogNode[],
  positions: Partial<LogHead['positions']>,
): Statement[] {
  const rows = entries.map(({ leaf, kind, ref, at, salt, commitment }) => [
    leaf,
    kind,
    ref,
    at,
    hex(salt),
    hex(commitment),
  ])
  const hashes = nodes.map(({ level, number, hash }) => [level, number, hex(hash)])
  return [
    statement(
      `insert into log_entries (leaf, kind, ref, at, salt, commitment)
        select value ->> 0, value ->> 1, value ->> 2, value ->> 3, unhex(value ->> 4), unhex(value ->> 5) from json_each(?)`,
      JSON.stringify(rows),
    ),
    statement(
      'insert into log_nodes (level, number, hash) select value ->> 0, value ->> 1, unhex(value ->> 2) from json_each(?)',
      JSON.stringify(hashes),
    ),
    statement(
      `insert into log_positions (source, ref) select key, value from json_each(?) where true
        on conflict (source) do update set ref = excluded.ref`,
      JSON.stringify(positions),
    ),
  ]
}

function hex(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
}

/** Reports whether another node has appended the same leaves. */
export function isOvertaken(error: unknown): boolean {
  return (
    error instanceof Error && /UNIQUE constraint failed: log_(entries|nodes|checkpoints|epochs)/.test(error.message)
  )
}

/** Reads the hashes of whole tiles of a level, from `from` to below `until`. */
export async function readLogNodes(orm: Orm, level: number, from: number, until: number): Promise<Buffer[]> {
  const rows = await orm
    .select({ hash: logNodes.hash })
    .from(logNodes)
    .where(and(eq(logNodes.level, level), gte(logNodes.number, from), lt(logNodes.number, until)))
    .orderBy(asc(logNodes.number))
  return rows.map(({ hash }) => hash)
}

/**
 * Finds the leaf of a row. Leaves of a source are in the order of its rows, so a binary search finds it without an index. `kinds` are
 * the codes of the source.
 */
export async function findLogEntry(orm: Orm, kinds: readonly number[], ref: number): Promise<LogEntry | undefined> {
  const list = sql.raw(kinds.map(Number).join(', '))
  const at = async (leaf: number) => {
    const [found] = await orm.all<{ leaf: number; ref: number }>(
      sql`select leaf, ref from ${logEntries} where leaf >= ${leaf} and kind in (${list}) order by leaf limit 1`,
    )
    return found
  }
  let [low, high] = [0, (await readLogHead(orm)).size]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const found = await at(middle)
    if (found === undefined || found.ref >= ref) high = middle
    else low = found.leaf + 1
  }
  const found = await at(low)
  return found?.ref === ref ? (await readLogEntries(orm, found.leaf, found.leaf + 1))[0] : undefined
}

export function insertLogRecord(orm: Orm, kind: LogRecordKind, at: number, body: object): Statement {
  return orm.insert(logRecords).values({ kind, at, body: JSON.stringify(body) })
}

/** Records the totals of days, unless another node has recorded what comes after the ledger row `after`. */
export function insertUsageDays(at: number, after: number, bodies: readonly object[]): Statement {
  const insert = `insert into log_records (at, kind, body) select ?, 'usage_day', value from json_each(?)
    where not exists (select 1 from log_records where kind = 'usage_day' and body ->> 'through' > ?)`
  return statement(insert, at, JSON.stringify(bodies.map((body) => JSON.stringify(body))), after)
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

function statement(text: string, ...params: unknown[]): Statement {
  return { toSQL: () => ({ sql: text, params }) }
}
