// Compares the rows of a database with the leaves that cover them, and says which row differs and how.
import type { Orm } from '../../db/file/open.ts'
import { type LoggedRow, readLoggedRows } from '../../db/read/log-rows.ts'
import { type LogSource, logSources } from '../../db/schema/log-schema.ts'
import { listArchives } from '../../db/tables/archives.ts'
import type { LogEntry } from '../../db/tables/audit-log.ts'
import { listAllLogRecords } from '../../db/tables/log-records.ts'
import { codesOf, commitTo, kindOf } from './entry.ts'
import { createRowsDigest, type ErasureBody } from './erasure-record.ts'
import { type AuditLogMode, isCovered } from './mode.ts'

/** What is wrong, and with which row of which table; `leaf` is its place in the log. */
export type LogProblem = { problem: string; source?: LogSource; ref?: number; leaf?: number; at?: number }

export type Report = (problem: LogProblem) => void

/** Rows that are as they were logged, and entries whose rows are in archives or were erased. */
export type RowCounts = { rows: number; archived: number; erased: number }

const rowsAtOnce = 512

type Range = { first: number; last: number }

/** Ids of exchanges that are in verified archives: their rows have left the table. */
async function archivedRanges(orm: Orm): Promise<Range[]> {
  const archives = await listArchives(orm, { kind: 'exchanges', limit: -1 })
  return archives
    .filter(({ state }) => state !== 'writing')
    .map(({ firstRowId, lastRowId }) => ({ first: firstRowId, last: lastRowId }))
}

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

/** Compares rows with leaves, both in the order of ids: neither may have one that the other lacks. */
export async function createRowCheck(orm: Orm, found: RowCounts, report: Report) {
  const gone = { archived: await archivedRanges(orm), erasures: await createErasureCheck(orm, report) }
  const lastRef: Record<LogSource, number> = { exchanges: 0, changes: 0, records: 0 }

  async function checkSource(source: LogSource, entries: LogEntry[]): Promise<void> {
    const last = entries.at(-1)?.ref ?? 0
    const rows = new Map((await readRows(orm, source, lastRef[source], last)).map((row) => [row.id, row]))
    for (const { ref, leaf, at, salt, commitment } of entries) {
      const row = rows.get(ref)
      rows.delete(ref)
      const place = { source, ref, leaf, at }
      if (ref <= lastRef[source])
        report({ problem: 'two leaves are for one row, or leaves are out of order', ...place })
      lastRef[source] = Math.max(lastRef[source], ref)
      const isArchived =
        source === 'exchanges' &&
        row === undefined &&
        gone.archived.some(({ first, last }) => ref >= first && ref <= last)
      const isErased = salt === null && gone.erasures.has(leaf)
      if (isErased && (isArchived || row !== undefined)) gone.erasures.add(leaf, row?.line)
      if (isArchived) found.archived += 1
      else if (row === undefined) report({ problem: 'the row is gone', ...place })
      else if (isErased) found.erased += 1
      else if (salt === null) report({ problem: 'the salt is gone, and no record of an erasure says so', ...place })
      else if (row.at !== at || !commitTo(salt, row.line).equals(commitment))
        report({ problem: 'the row is not the one that was logged', ...place })
      else found.rows += 1
    }
    for (const { id, at } of rows.values())
      report({ problem: 'the row has no leaf: it was added later', source, ref: id, at })
  }

  return {
    check: async (entries: LogEntry[]) => {
      for (const entry of entries.filter((each) => kindOf(each) === undefined))
        report({ problem: `no kind has the code ${entry.kind}`, leaf: entry.leaf })
      for (const source of logSources) {
        const codes = codesOf(source)
        const own = entries.filter(({ kind }) => codes.includes(kind))
        if (own.length > 0) await checkSource(source, own)
      }
    },
    /** Counts the rows after the last leaf of each table. */
    finish: async (positions: Record<LogSource, number>, mode: AuditLogMode): Promise<number> => {
      let uncovered = 0
      for (const source of logSources) {
        if (positions[source] !== lastRef[source])
          report({
            problem: 'the log says that it covers more rows than it has leaves for',
            source,
            ref: positions[source],
          })
        if (!isCovered(source, mode)) continue
        uncovered += await countRowsAfter(orm, source, lastRef[source])
      }
      return uncovered
    },
  }
}

async function readRows(orm: Orm, source: LogSource, after: number, last: number): Promise<LoggedRow[]> {
  const rows: LoggedRow[] = []
  for (let from = after; from < last; ) {
    const more = await readLoggedRows(orm, source, { after: from, last, most: rowsAtOnce })
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
