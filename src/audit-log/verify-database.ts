// Verifies the audit log against the database that it is in: each leaf against its row, each row against its leaf, hashes of tiles against
// leaves, and the root against every checkpoint. Names the first rows that differ.
import type { Orm } from '../../db/file/open.ts'
import { nextSlice } from '../../db/read/pace.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import { listCheckpoints } from '../../db/tables/audit-checkpoints.ts'
import { type LogEntry, readLogHead, readLogNodes } from '../../db/tables/audit-log.ts'
import { leafHash } from './entry.ts'
import type { AuditLogMode } from './mode.ts'
import { createRowCheck, createRowReader, type LogProblem, type RowCounts } from './row-check.ts'
import { parseCheckpoint } from './transparency/checkpoint.ts'
import { createFrontier } from './transparency/frontier.ts'
import { isSameHash, perfectHash } from './transparency/merkle.ts'
import { tileWidth } from './transparency/tiles.ts'
import { readEntries } from './tree.ts'
import { checkUsageDays } from './usage-days.ts'

export type DatabaseCheck = RowCounts & {
  problems: LogProblem[]
  size: number
  checkpoints: number
  /** Rows that the next checkpoint will cover. */
  uncovered: number
  /** Records of days whose ledger rows are as they were, and of days whose rows are in archives. */
  days: number
  daysArchived: number
}

type Scope = { epoch: string; mode: AuditLogMode; against?: readonly { name: string; text: string }[] }

const problemsMax = 20
/** A whole tile is 2^8 leaves. */
const tileHeight = 8

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
  const rows = await createRowCheck(orm, found, report)
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
  const addTile = (tile: Uint8Array[], hash: Uint8Array | undefined) => {
    const isWithin = (checkpoints[0]?.size ?? Number.POSITIVE_INFINITY) < frontier.size() + tileWidth
    if (hash !== undefined && !isWithin) frontier.add(hash, tileHeight)
    else
      for (const leaf of tile) {
        frontier.add(leaf)
        compareRoots()
      }
    compareRoots()
  }
  for await (const { from, entries, read, nodes } of readChunks(orm, size)) {
    const differs = entries.findIndex(({ leaf }, index) => leaf !== from + index)
    const isShort = from + entries.length < Math.min(from + entriesAtOnce, size)
    if (differs >= 0 || isShort) {
      report({ problem: 'a leaf is missing', leaf: from + (differs >= 0 ? differs : entries.length) })
      break
    }
    await nextSlice()
    rows.check(entries, read)
    for (let start = 0; start < entries.length; start += tileWidth) {
      const tile = entries.slice(start, start + tileWidth).map(leafHash)
      const hash = tile.length === tileWidth ? perfectHash(tile) : undefined
      const stored = nodes[start / tileWidth]
      if (hash !== undefined && (stored === undefined || !isSameHash(stored, hash)))
        report({ problem: 'the stored hash of a tile is not that of its leaves', leaf: from + start + tileWidth - 1 })
      addTile(tile, hash)
    }
    onProgress(from + entries.length, size)
  }
  for await (const { result, day, ref, at } of checkUsageDays(orm)) {
    if (result === 'same') found.days += 1
    else if (result === 'archived') found.daysArchived += 1
    else report({ problem: `the ledger of ${day} is not the one whose totals were logged`, source: 'records', ref, at })
  }
  found.uncovered = await rows.finish(positions, mode)
  return found
}

type Chunk = {
  from: number
  entries: LogEntry[]
  read: Awaited<ReturnType<ReturnType<typeof createRowReader>>>
  nodes: Buffer[]
}

/** Whole tiles, and a few milliseconds of work. */
const entriesAtOnce = 4 * tileWidth

/** Reads entries with their rows, and the stored hashes of their tiles. The next ones are read while the last ones are checked. */
async function* readChunks(orm: Orm, size: number): AsyncGenerator<Chunk> {
  const readRowsOf = createRowReader(orm)
  const readFrom = async (from: number): Promise<Chunk> => {
    const entries = await readEntries(orm, from, Math.min(from + entriesAtOnce, size))
    const tiles = from / tileWidth
    const nodes = await readLogNodes(orm, 1, tiles, tiles + Math.floor(entries.length / tileWidth))
    return { from, entries, read: await readRowsOf(entries), nodes }
  }
  let next: Promise<Chunk> | undefined = size > 0 ? readFrom(0) : undefined
  while (next !== undefined) {
    const chunk: Chunk = await next
    const end = chunk.from + chunk.entries.length
    next = end < size && chunk.entries.length === entriesAtOnce ? readFrom(end) : undefined
    next?.catch(() => {})
    yield chunk
  }
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
