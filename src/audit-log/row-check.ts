// Compares the rows of a database with the leaves that cover them, and says which row differs and how.
import type { Orm } from '../../db/file/open.ts'
import { type LoggedRow, readLoggedRows } from '../../db/read/log-rows.ts'
import { type LogSource, logSources } from '../../db/schema/log-schema.ts'
import type { LogEntry } from '../../db/tables/audit-log.ts'
import { listAllLogRecords } from '../../db/tables/log-records.ts'
import { readArchived } from './archived-rows.ts'
import { codesOf, commitTo, kindOf } from './entry.ts'
import { createRowsDigest, type ErasureBody } from './erasure-record.ts'
import { type AuditLogMode, isCovered } from './mode.ts'

/** What is wrong, and with which row of which table; `leaf` is its place in the log. */
export type LogProblem = { problem: string; source?: LogSource; ref?: number; leaf?: number; at?: number }

export type Report = (problem: LogProblem) => void

/** Rows that are as they were logged, entries whose rows are in archives or were erased, and entries that were pruned. */
export type RowCounts = { rows: number; archived: number; erased: number; pruned: number }

const rowsAtOnce = 512

/** What the records of erasures say, and whether the rows are still as the erasures left them. */
async function createErasureCheck(orm: Orm, report: Report) {
  type Erasure = {
    id: number
    at: number
    digest: ReturnType<typeof createRowsDigest>
    left: number
    isKnown: boolean
    expected: string
  }
  const erasures = new Map<number, Erasure>()
  for await (const { id, at, body } of listAllLogRecords(orm, 'erasure')) {
    const { leaves, rows_sha256: expected } = JSON.parse(body) as ErasureBody
    const erasure = { id, at, digest: createRowsDigest(), left: leaves.length, isKnown: true, expected }
    for (const leaf of leaves) erasures.set(leaf, erasure)
  }
  return {
    has: (leaf: number) => erasures.has(leaf),
    /** Takes the row of an erased leaf, in the order of leaves; undefined for one that is in an archive. */
    add: (leaf: number, line: string | undefined) => {
      const erasure = erasures.get(leaf)
      if (erasure === undefined) return
      erasure.left -= 1
      if (line === undefined) erasure.isKnown = false
      else erasure.digest.add(line)
      if (erasure.left > 0 || !erasure.isKnown || erasure.digest.end() === erasure.expected) return
      report({
        problem: 'erased rows are not as the erasure left them',
        source: 'records',
        ref: erasure.id,
        at: erasure.at,
      })
    },
  }
}

/** Entries of one source, and the rows that there are from those of the entries before them up to theirs. */
type SourceRows = { source: LogSource; entries: LogEntry[]; rows: LoggedRow[] }

/** More rows than entries are a problem, of which some are enough. */
const rowsBeyond = 20

/** Reads the rows of entries, ahead of their check. Call it with all entries, in their order. */
export function createRowReader(orm: Orm) {
  // Ids begin at 1, so one below is of a row that was added.
  const lowest = Number.MIN_SAFE_INTEGER
  const lastRef: Record<LogSource, number> = { exchanges: lowest, changes: lowest, records: lowest }
  const read = async (entries: LogEntry[]): Promise<SourceRows[]> => {
    const found: SourceRows[] = []
    for (const source of logSources) {
      const codes = codesOf(source)
      const own = entries.filter(({ kind }) => codes.includes(kind))
      if (own.length === 0) continue
      const after = lastRef[source]
      const last = own.at(-1)?.ref ?? 0
      lastRef[source] = Math.max(after, last)
      found.push({
        source,
        entries: own,
        rows: await readRows(orm, source, { after, last, most: own.length + rowsBeyond }),
      })
    }
    return found
  }
  /** Reads what is left of the rows of pruned entries up to `last`: nothing should be. */
  const skip = async (last: number | undefined): Promise<SourceRows[]> => {
    const after = lastRef.exchanges
    if (last === undefined || last <= after) return []
    lastRef.exchanges = last
    return [
      { source: 'exchanges', entries: [], rows: await readRows(orm, 'exchanges', { after, last, most: rowsBeyond }) },
    ]
  }
  return { read, skip }
}

/** Compares rows with leaves, both in the order of ids: neither may have one that the other lacks. */
export async function createRowCheck(orm: Orm, found: RowCounts, report: Report) {
  const gone = { isArchived: await readArchived(orm, 'exchanges'), erasures: await createErasureCheck(orm, report) }
  const lastRef: Record<LogSource, number> = { exchanges: 0, changes: 0, records: 0 }

  function checkSource({ source, entries, rows: list }: SourceRows): void {
    const rows = new Map(list.map((row) => [row.id, row]))
    for (const entry of entries) {
      const { ref, leaf, at } = entry
      const row = rows.get(ref)
      rows.delete(ref)
      if (ref <= lastRef[source])
        report({ problem: 'two leaves are for one row, or leaves are out of order', source, ref, leaf, at })
      lastRef[source] = Math.max(lastRef[source], ref)
      const problem = compareEntry(source, entry, row)
      if (problem !== undefined) report({ problem, source, ref, leaf, at })
    }
    for (const { id, at } of rows.values())
      report({ problem: 'the row has no leaf: it was added later', source, ref: id, at })
  }

  /** Counts the row, or says what is wrong with it. */
  function compareEntry(source: LogSource, { ref, leaf, at, salt, commitment }: LogEntry, row: LoggedRow | undefined) {
    const isArchived = source === 'exchanges' && row === undefined && gone.isArchived(ref, ref)
    const isErased = salt === null && gone.erasures.has(leaf)
    if (isErased && (isArchived || row !== undefined)) gone.erasures.add(leaf, row?.line)
    if (isArchived) found.archived += 1
    else if (row === undefined) return 'the row is gone'
    else if (isErased) found.erased += 1
    else if (salt === null) return 'the salt is gone, and no record of an erasure says so'
    else if (row.at !== at || !commitTo(salt, row.line).equals(commitment))
      return 'the row is not the one that was logged'
    else found.rows += 1
    return undefined
  }

  return {
    check: (entries: LogEntry[], read: SourceRows[]) => {
      for (const entry of entries.filter((each) => kindOf(each) === undefined))
        report({ problem: `no kind has the code ${entry.kind}`, leaf: entry.leaf })
      for (const each of read) checkSource(each)
    },
    /** Takes entries that were pruned: their rows have left the table. */
    skip: ({
      from,
      until,
      lastRowId,
      read,
    }: {
      from: number
      until: number
      lastRowId: number | undefined
      read: SourceRows[]
    }) => {
      found.pruned += until - from
      for (const each of read) checkSource(each)
      lastRef.exchanges = Math.max(lastRef.exchanges, lastRowId ?? 0)
    },
    /** Counts the rows after the last leaf of each table. */
    finish: (positions: Record<LogSource, number>, mode: AuditLogMode) =>
      countUncovered(orm, { positions, lastRef, mode }, report),
  }
}

type Ends = { positions: Record<LogSource, number>; lastRef: Record<LogSource, number>; mode: AuditLogMode }

async function countUncovered(orm: Orm, { positions, lastRef, mode }: Ends, report: Report): Promise<number> {
  let uncovered = 0
  for (const source of logSources) {
    if (positions[source] !== lastRef[source])
      report({
        problem: 'the log says that it covers more rows than it has leaves for',
        source,
        ref: positions[source],
      })
    if (isCovered(source, mode)) uncovered += await countRowsAfter(orm, source, lastRef[source])
  }
  return uncovered
}

async function readRows(
  orm: Orm,
  source: LogSource,
  { after, last, most }: { after: number; last: number; most: number },
): Promise<LoggedRow[]> {
  const rows: LoggedRow[] = []
  for (let from = after; from < last && rows.length < most; ) {
    const more = await readLoggedRows(orm, source, { after: from, last, most: most - rows.length })
    rows.push(...more)
    const end = more.at(-1)?.id
    if (end === undefined) break
    from = end
  }
  return rows
}

async function countRowsAfter(orm: Orm, source: LogSource, ref: number): Promise<number> {
  let count = 0
  for (let after = ref; ; ) {
    const more = await readLoggedRows(orm, source, { after, most: rowsAtOnce })
    count += more.length
    after = more.at(-1)?.id ?? after
    if (more.length < rowsAtOnce) return count
  }
}
