// Verifies the audit log against the database that it is in: each leaf against its row, each row against its leaf, hashes of tiles against
// leaves, and the root against every checkpoint. Names the first rows that differ.
import type { Orm } from '../../db/file/open.ts'
import { readLoggedRows } from '../../db/read/log-rows.ts'
import { nextSlice } from '../../db/read/pace.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import { type LogSource, logSources } from '../../db/schema/log-schema.ts'
import { listArchives } from '../../db/tables/archives.ts'
import { listCheckpoints } from '../../db/tables/audit-checkpoints.ts'
import { type LogEntry, readLogEntries, readLogHead, readLogNodes } from '../../db/tables/audit-log.ts'
import { parseCheckpoint } from '../transparency/checkpoint.ts'
import { createFrontier } from '../transparency/frontier.ts'
import { isSameHash, perfectHash } from '../transparency/merkle.ts'
import { tileWidth } from '../transparency/tiles.ts'
import { codesOf, commitTo, kindOf, leafHash } from './entry.ts'
import { type AuditLogMode, isCovered } from './mode.ts'
import { checkUsageDays } from './usage-days.ts'

/** What is wrong, and with which row of which table; `leaf` is its place in the log. */
export type LogProblem = { problem: string; source?: LogSource; ref?: number; leaf?: number; at?: number }

export type DatabaseCheck = {
  problems: LogProblem[]
  size: number
  rows: number
  /** Entries whose rows are in archives, or were erased. */
  archived: number
  erased: number
  checkpoints: number
  /** Rows that the next checkpoint will cover. */
  uncovered: number
  /** Records of days whose ledger rows are as they were, and of days whose rows are in archives. */
  days: number
  daysArchived: number
}

type Scope = { epoch: string; mode: AuditLogMode; against?: readonly { name: string; text: string }[] }

const problemsMax = 20
const entriesAtOnce = 512

export async function verifyDatabase(
  orm: Orm,
  { epoch, mode, against = [] }: Scope,
  onProgress: OnProgress = () => {},
): Promise<DatabaseCheck> {
  const { size, positions } = await readLogHead(orm)
  const found: DatabaseCheck = {
    problems: [],
    size,
    rows: 0,
    archived: 0,
    erased: 0,
    checkpoints: 0,
    uncovered: 0,
    days: 0,
    daysArchived: 0,
  }
  const report = (problem: LogProblem) => void (found.problems.length < problemsMax && found.problems.push(problem))
  const checkpoints = await openCheckpoints(orm, { epoch, against }, size, report)
  const rows = createRowCheck(orm, found, report, await archivedRanges(orm))
  const frontier = createFrontier()
  const compareRoots = () => {
    while (checkpoints[0]?.size === frontier.size()) {
      const { name, root } = checkpoints.shift() as (typeof checkpoints)[number]
      if (isSameHash(root, frontier.root())) found.checkpoints += 1
      else
        report({
          problem: `the root of the leaves differs from ${name}: the log was rewritten`,
          leaf: frontier.size() - 1,
        })
    }
  }
  compareRoots()
  let tile: Uint8Array[] = []
  for (let from = 0; from < size; ) {
    await nextSlice()
    const entries = await readLogEntries(orm, from, Math.min(from + entriesAtOnce, size))
    if (entries.length === 0 || entries.some(({ leaf }, index) => leaf !== from + index)) {
      report({
        problem: 'a leaf is missing',
        leaf: entries.find(({ leaf }, index) => leaf !== from + index)?.leaf ?? from,
      })
      break
    }
    await rows.check(entries)
    for (const entry of entries) {
      const hash = leafHash(entry)
      frontier.add(hash)
      compareRoots()
      tile.push(hash)
      if (tile.length === tileWidth) {
        const number = Math.floor(entry.leaf / tileWidth)
        const [stored] = await readLogNodes(orm, 1, number, number + 1)
        if (stored === undefined || !isSameHash(stored, perfectHash(tile)))
          report({ problem: 'the stored hash of a tile is not that of its leaves', leaf: entry.leaf })
        tile = []
      }
    }
    from += entries.length
    onProgress(from, size)
  }
  for await (const { result, day, ref, at } of checkUsageDays(orm)) {
    if (result === 'same') found.days += 1
    else if (result === 'archived') found.daysArchived += 1
    else report({ problem: `the ledger of ${day} is not the one whose totals were logged`, source: 'records', ref, at })
  }
  found.uncovered = await rows.finish(positions, mode)
  return found
}

type KnownRoot = { name: string; size: number; root: Uint8Array }

async function openCheckpoints(
  orm: Orm,
  { epoch, against = [] }: Omit<Scope, 'mode'>,
  size: number,
  report: (problem: LogProblem) => void,
): Promise<KnownRoot[]> {
  const compared: KnownRoot[] = []
  const add = (name: string, text: string) => {
    const checkpoint = parseCheckpoint(text)
    if (checkpoint === undefined) report({ problem: `${name} is damaged` })
    else if (checkpoint.size > size)
      report({
        problem: `the log has ${size} leaves, and ${name} has ${checkpoint.size}: the newest rows were removed`,
        leaf: size,
      })
    else compared.push({ name, ...checkpoint })
  }
  for (let after = -1; ; ) {
    const page = await listCheckpoints(orm, epoch, after, 500)
    for (const { size: of, note } of page) add(`the checkpoint of ${of} leaves`, note)
    after = page.at(-1)?.size ?? after
    if (page.length < 500) break
  }
  for (const { name, text } of against) add(name, text)
  return compared.toSorted((one, other) => one.size - other.size)
}

type Range = { first: number; last: number }

/** Ids of exchanges that are in verified archives: their rows have left the table. */
async function archivedRanges(orm: Orm): Promise<Range[]> {
  const archives = await listArchives(orm, { kind: 'exchanges', limit: -1 })
  return archives
    .filter(({ state }) => state !== 'writing')
    .map(({ firstRowId, lastRowId }) => ({ first: firstRowId, last: lastRowId }))
}

/** Compares rows with leaves, both in the order of ids: neither may have one that the other lacks. */
function createRowCheck(orm: Orm, found: DatabaseCheck, report: (problem: LogProblem) => void, archived: Range[]) {
  const lastRef: Record<LogSource, number> = { exchanges: 0, changes: 0, records: 0 }

  async function checkSource(source: LogSource, entries: LogEntry[]): Promise<void> {
    const last = entries.at(-1)?.ref ?? 0
    const rows = new Map((await readAll(source, lastRef[source], last)).map((row) => [row.id, row]))
    for (const { ref, leaf, at, salt, commitment } of entries) {
      const row = rows.get(ref)
      rows.delete(ref)
      const place = { source, ref, leaf, at }
      if (ref <= lastRef[source])
        report({ problem: 'two leaves are for one row, or leaves are out of order', ...place })
      lastRef[source] = Math.max(lastRef[source], ref)
      if (salt === null) found.erased += 1
      else if (row === undefined) {
        if (source === 'exchanges' && archived.some(({ first, last }) => ref >= first && ref <= last))
          found.archived += 1
        else report({ problem: 'the row is gone', ...place })
      } else if (row.at !== at || !commitTo(salt, row.line).equals(commitment))
        report({ problem: 'the row is not the one that was logged', ...place })
      else found.rows += 1
    }
    for (const { id, at } of rows.values())
      report({ problem: 'the row has no leaf: it was added later', source, ref: id, at })
  }

  async function readAll(source: LogSource, after: number, last: number) {
    const rows = []
    for (let from = after; from < last; ) {
      const more = await readLoggedRows(orm, source, { after: from, last, most: entriesAtOnce })
      rows.push(...more)
      const end = more.at(-1)?.id
      if (end === undefined) break
      from = end
    }
    return rows
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
        for (let after = lastRef[source]; ; ) {
          const more = await readLoggedRows(orm, source, { after, most: entriesAtOnce })
          uncovered += more.length
          after = more.at(-1)?.id ?? after
          if (more.length < entriesAtOnce) break
        }
      }
      return uncovered
    },
  }
}
