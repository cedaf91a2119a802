// The tables of the transparent audit log: leaves, and the hashes of whole tiles; log-append.ts adds them. It stores; src/audit-log/ decides
// what a leaf is.
// log-records.ts has the records of the log itself, audit-checkpoints.ts what is signed.
import { and, asc, eq, gte, lt, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { readFitting } from '../read/fitting.ts'
import { type RowRange, readInSlices } from '../read/slices.ts'
import { exchangeEntryKind, type LogSource, logEntries, logNodes, logPositions } from '../schema/log-schema.ts'
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

/** An entry to append: of at most 32 kinds. */
export type NewLogEntry = LogEntry & { salt: Buffer }

export type LogNode = { level: number; number: number; hash: Uint8Array }

/** The number of leaves, and up to which row each source has them. */
export type LogHead = { size: number; positions: Record<LogSource, number> }

/** One statement, since another node can append between two. */
export async function readLogHead(orm: Orm): Promise<LogHead> {
  const [found] = await orm.all<{ leaf: number | null; positions: string }>(sql`
    select (select max(leaf) from ${logEntries}) as leaf, (select json_group_object(source, ref) from ${logPositions}) as positions`)
  const known = JSON.parse(found?.positions ?? '{}') as Partial<LogHead['positions']>
  return { size: (found?.leaf ?? -1) + 1, positions: { exchanges: 0, changes: 0, records: 0, ...known } }
}

/**
 * Reads entries of leaves from `from` to below `until`, at most as many as fit in a response: read again from the last one. Those that were
 * pruned are left out.
 */
export async function readLogEntries(orm: Orm, from: number, until: number): Promise<LogEntry[]> {
  const { result } = await readFitting(until - from, (rows) =>
    orm.all<{ numbers: string | null; bytes: string | null }>(sql`
      select group_concat(numbers) as numbers, group_concat(bytes, '') as bytes from (
        select leaf || ',' || kind || ',' || ref || ',' || at || ',' || coalesce(length(salt), -1) || ',' || length(commitment) as numbers,
          coalesce(hex(salt), '') || hex(commitment) as bytes
        from ${logEntries} where leaf >= ${from} and leaf < ${until} order by leaf limit ${rows})`),
  )
  const { numbers, bytes } = result[0] ?? {}
  return numbers == null || bytes == null ? [] : parseEntries(numbers, bytes)
}

/** `numbers`: six of each entry. `text`: the bytes of all. One long text is decoded several times as fast as many short ones. */
function parseEntries(numbers: string, text: string): LogEntry[] {
  const all = JSON.parse(`[${numbers}]`) as number[]
  const bytes = Buffer.from(text, 'hex')
  let end = 0
  const take = (length: number) => {
    end += length
    return bytes.subarray(end - length, end)
  }
  return Array.from({ length: all.length / 6 }, (_, index) => {
    const [leaf = 0, kind = 0, ref = 0, at = 0, salt = 0, commitment = 0] = all.slice(index * 6, index * 6 + 6)
    return { leaf, kind, ref, at, salt: salt < 0 ? null : take(salt), commitment: take(commitment) }
  })
}

/** Reports whether another node has appended the same leaves. */
export function isOvertaken(error: unknown): boolean {
  return (
    error instanceof Error &&
    /UNIQUE constraint failed: log_(entries|nodes|checkpoints|epochs|records|pruned)/.test(error.message)
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
 * Finds the first leaf of a source that covers the row `ref` or a later one. Leaves of a source are in the order of its rows, so a binary
 * search finds it without an index. `kinds` are the codes of the source.
 */
async function firstLeafSince(
  orm: Orm,
  kinds: readonly number[],
  ref: number,
): Promise<{ leaf: number; ref: number } | undefined> {
  const at = async (leaf: number) => {
    const [found] = await orm.all<{ leaf: number; ref: number }>(
      sql`select leaf, ref from ${logEntries} where leaf >= ${leaf} and ${isOf(kinds)} order by leaf limit 1`,
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
  return at(low)
}

function isOf(kinds: readonly number[]) {
  return sql`kind in (${sql.raw(kinds.map(Number).join(', '))})`
}

/** Finds the leaf of a row. */
export async function findLogEntry(orm: Orm, kinds: readonly number[], ref: number): Promise<LogEntry | undefined> {
  const found = await firstLeafSince(orm, kinds, ref)
  return found?.ref === ref ? (await readLogEntries(orm, found.leaf, found.leaf + 1))[0] : undefined
}

/** Finds the leaves of rows of one source. `refs`: some hundreds, in their order. Rows without a leaf are left out. */
export async function listLeavesOf(orm: Orm, kinds: readonly number[], refs: readonly number[]): Promise<number[]> {
  const [low, high] = [refs[0] ?? 0, refs.at(-1) ?? 0]
  const first = await firstLeafSince(orm, kinds, low)
  if (first === undefined) return []
  const end = (await firstLeafSince(orm, kinds, high + 1))?.leaf ?? (await readLogHead(orm)).size
  const leaves: number[] = []
  const read = ({ from, until }: RowRange) =>
    orm.all<{ leaves: string | null }>(sql`
      select group_concat(leaf) as leaves from (
        select leaf from ${logEntries} where leaf >= ${from} and leaf < ${until} and ${isOf(kinds)}
          and ref in (select value from json_each(${JSON.stringify(refs)})) order by leaf)`)
  for await (const [found] of readInSlices({ from: first.leaf, until: end }, read))
    if (found?.leaves != null) leaves.push(...found.leaves.split(',').map(Number))
  return leaves
}

/** Entries at a time, about 60 KB of text. */
const entriesAtOnce = 512

/** Yields the leaves of a source that cover the row `ref` and later ones, in their order. */
export async function* leavesSince(orm: Orm, kinds: readonly number[], ref: number): AsyncGenerator<LogEntry> {
  const { size } = await readLogHead(orm)
  for (let leaf = (await firstLeafSince(orm, kinds, ref))?.leaf ?? size; leaf < size; ) {
    const end = Math.min(leaf + entriesAtOnce, size)
    const entries = await readLogEntries(orm, leaf, end)
    yield* entries.filter(({ kind }) => kinds.includes(kind))
    leaf = (entries.at(-1)?.leaf ?? end - 1) + 1
  }
}

/** Leaves of one commit that removes salts: about a millisecond. */
const saltsAtOnce = 500

/** Yields statements that remove the salts of the exchanges of a range that are no longer in the table. */
export async function* removeArchivedSalts(
  orm: Orm,
  { firstRowId, lastRowId }: { firstRowId: number; lastRowId: number },
): AsyncGenerator<Statement> {
  const { size } = await readLogHead(orm)
  const kinds = [exchangeEntryKind]
  const [first, end] = [await firstLeafSince(orm, kinds, firstRowId), await firstLeafSince(orm, kinds, lastRowId + 1)]
  for (let leaf = first?.leaf ?? size; leaf < (end?.leaf ?? size); leaf += saltsAtOnce)
    yield statement(
      `update log_entries set salt = null where leaf >= ? and leaf < ? and kind = ${exchangeEntryKind} and ref >= ? and ref <= ?
        and salt is not null and not exists (select 1 from exchange_audit where id = log_entries.ref)`,
      ...[leaf, leaf + saltsAtOnce, firstRowId, lastRowId],
    )
}

export function statement(text: string, ...params: unknown[]): Statement {
  return { toSQL: () => ({ sql: text, params }) }
}
