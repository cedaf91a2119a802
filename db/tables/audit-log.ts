// The tables of the transparent audit log: leaves, and the hashes of whole tiles. It stores; src/audit-log/ decides what a leaf is.
// log-records.ts has the records of the log itself, audit-checkpoints.ts what is signed.
import { and, asc, eq, gte, lt, max, sql } from 'drizzle-orm'
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

/**
 * Appends leaves and what follows from them. The commit fails with an error that is `isOvertaken` if another node has appended leaves
 * since they were planned.
 */
export function appendLog(
  entries: readonly NewLogEntry[],
  nodes: readonly LogNode[],
  positions: Partial<LogHead['positions']>,
): Statement[] {
  const hashes = nodes.map(({ level, number, hash }) => [level, number, hex(hash)])
  return [
    ...runsOf(entries).map(insertRun),
    ...(nodes.length === 0
      ? []
      : [
          statement(
            'insert into log_nodes (level, number, hash) select value ->> 0, value ->> 1, unhex(value ->> 2) from json_each(?)',
            JSON.stringify(hashes),
          ),
        ]),
    statement(
      `insert into log_positions (source, ref) select key, value from json_each(?) where true
        on conflict (source) do update set ref = excluded.ref`,
      JSON.stringify(positions),
    ),
  ]
}

/** Splits entries where the next one is not of the next leaf and the next row. */
function runsOf(entries: readonly NewLogEntry[]): NewLogEntry[][] {
  const runs: NewLogEntry[][] = []
  for (const entry of entries) {
    const run = runs.at(-1)
    const last = run?.at(-1)
    if (run === undefined || last?.leaf !== entry.leaf - 1 || last.ref !== entry.ref - 1) runs.push([entry])
    else run.push(entry)
  }
  return runs
}

const [saltBytes, leafBytes] = [16, 48]
/** Kinds are below this. */
const kindsMax = 32

/**
 * Inserts entries of consecutive leaves and rows. All salts and commitments are one value, and a number has the kind and the time since the
 * first: a fifth of what it takes to parse them as text.
 */
function insertRun(run: NewLogEntry[]): Statement {
  const [first] = run
  const [leaf, ref, at] = [first?.leaf ?? 0, first?.ref ?? 0, first?.at ?? 0]
  const bytes = Buffer.alloc(leafBytes * run.length)
  for (const [index, { salt, commitment }] of run.entries()) {
    bytes.set(salt, index * leafBytes)
    bytes.set(commitment, index * leafBytes + saltBytes)
  }
  return statement(
    `insert into log_entries (leaf, kind, ref, at, salt, commitment)
      select ?1 + key, value & ${kindsMax - 1}, ?2 + key, ?3 + (value - (value & ${kindsMax - 1})) / ${kindsMax},
        substr(?4, key * ${leafBytes} + 1, ${saltBytes}), substr(?4, key * ${leafBytes} + ${saltBytes + 1}, ${leafBytes - saltBytes})
      from json_each(?5)`,
    ...[leaf, ref, at, bytes, JSON.stringify(run.map((entry) => (entry.at - at) * kindsMax + entry.kind))],
  )
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
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

function statement(text: string, ...params: unknown[]): Statement {
  return { toSQL: () => ({ sql: text, params }) }
}
