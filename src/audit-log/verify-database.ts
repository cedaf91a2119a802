// Verifies the audit log against the database that it is in: each leaf against its row, each row against its leaf, hashes of tiles against
// leaves, and the root against every checkpoint. Names the first rows that differ.
import type { Orm } from '../../db/file/open.ts'
import { nextSlice } from '../../db/read/pace.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import { listCheckpoints } from '../../db/tables/audit-checkpoints.ts'
import { type LogEntry, readLogHead, readLogNodes } from '../../db/tables/audit-log.ts'
import { firstEntryIn } from '../../db/tables/log-pruning.ts'
import { checkUsageDays } from './check-days.ts'
import { leafHash } from './entry.ts'
import type { AuditLogMode } from './mode.ts'
import { type PrunedRange, rangeWith } from './pruning-record.ts'
import { listPrunings } from './prunings.ts'
import { createRowCheck, createRowReader, type LogProblem, type RowCounts } from './row-check.ts'
import { parseCheckpoint } from './transparency/checkpoint.ts'
import { createFrontier } from './transparency/frontier.ts'
import { isSameHash, perfectHash } from './transparency/merkle.ts'
import { tileHeight, tileWidth } from './transparency/tiles.ts'
import { readEntries } from './tree.ts'

export type DatabaseCheck = RowCounts & {
  problems: LogProblem[]
  size: number
  checkpoints: number
  /** Checkpoints among pruned entries, which only a folder or an archive can be compared with. */
  checkpointsPruned: number
  /** Rows that the next checkpoint will cover. */
  uncovered: number
  /** Records of days whose ledger rows are as they were, and of days whose rows are in archives. */
  days: number
  daysArchived: number
}

type Scope = { epoch: string; mode: AuditLogMode; against?: readonly { name: string; text: string }[] }

const problemsMax = 20
export async function verifyDatabase(
  orm: Orm,
  { epoch, mode, against = [] }: Scope,
  onProgress: OnProgress = () => {},
): Promise<DatabaseCheck> {
  const { size, positions } = await readLogHead(orm)
  const found: DatabaseCheck = {
    ...{ problems: [], size, rows: 0, archived: 0, erased: 0, pruned: 0 },
    ...{ checkpoints: 0, checkpointsPruned: 0, uncovered: 0, days: 0, daysArchived: 0 },
  }
  const report = (problem: LogProblem) => void (found.problems.length < problemsMax && found.problems.push(problem))
  const tree = createTreeCheck(await openCheckpoints(orm, { epoch, against }, size, report), found, report)
  const rows = await createRowCheck(orm, found, report)
  const pruned = await listPrunings(orm, report)
  for await (const chunk of readChunks(orm, size, pruned)) {
    const problem = problemIn(chunk)
    if (problem !== undefined) {
      report(problem)
      break
    }
    await nextSlice()
    if ('lastRowId' in chunk) {
      rows.skip(chunk)
      for (const hash of chunk.nodes) tree.addPruned(hash)
    } else {
      rows.check(chunk.entries, chunk.read)
      for (let start = 0; start < chunk.entries.length; start += tileWidth)
        tree.addTile(chunk.entries.slice(start, start + tileWidth).map(leafHash), chunk.nodes[start / tileWidth])
    }
    onProgress(chunk.until, size)
  }
  for await (const { result, day, ref, at } of checkUsageDays(orm)) {
    if (result === 'same') found.days += 1
    else if (result === 'archived') found.daysArchived += 1
    else if (result === 'added') report({ problem: `row ${ref} of the ledger is in no day: it was added later`, at })
    else report({ problem: `the ledger of ${day} is not the one whose totals were logged`, source: 'records', ref, at })
  }
  found.uncovered = await rows.finish(positions, mode)
  return found
}

/** Adds up the tree tile by tile, and compares its root with each checkpoint. */
function createTreeCheck(checkpoints: KnownRoot[], found: DatabaseCheck, report: (problem: LogProblem) => void) {
  const frontier = createFrontier()
  const compareRoots = () => {
    while (checkpoints[0]?.size === frontier.size()) {
      const { name, root } = checkpoints.shift() as KnownRoot
      if (isSameHash(root, frontier.root())) found.checkpoints += 1
      else
        report({
          problem: `the root of the leaves differs from ${name}: the log was rewritten`,
          leaf: frontier.size() - 1,
        })
    }
  }
  compareRoots()
  return {
    addTile: (leaves: Uint8Array[], stored: Uint8Array | undefined) => {
      const hash = leaves.length === tileWidth ? perfectHash(leaves) : undefined
      if (hash !== undefined && (stored === undefined || !isSameHash(stored, hash)))
        report({
          problem: 'the stored hash of a tile is not that of its leaves',
          leaf: frontier.size() + tileWidth - 1,
        })
      const isWithin = (checkpoints[0]?.size ?? Number.POSITIVE_INFINITY) < frontier.size() + tileWidth
      if (hash !== undefined && !isWithin) frontier.add(hash, tileHeight)
      else
        for (const leaf of leaves) {
          frontier.add(leaf)
          compareRoots()
        }
      compareRoots()
    },
    addPruned: (hash: Uint8Array) => {
      while ((checkpoints[0]?.size ?? Number.POSITIVE_INFINITY) < frontier.size() + tileWidth) {
        const { name, size, isGiven } = checkpoints.shift() as KnownRoot
        found.checkpointsPruned += 1
        if (isGiven)
          report({
            problem: `${name} has ${size} leaves, and those around were pruned: compare it with the folder of the log`,
            leaf: size,
          })
      }
      frontier.add(hash, tileHeight)
      compareRoots()
    },
  }
}

/** Whole tiles from `from` to below `until`: their entries with their rows, or none and `lastRowId` where they were pruned. */
type Chunk = { from: number; until: number; nodes: Buffer[]; read: Awaited<ReturnType<RowReader['read']>> } & (
  | { entries: LogEntry[] }
  | { lastRowId: number | undefined }
)
type RowReader = ReturnType<typeof createRowReader>

function problemIn(chunk: Chunk): LogProblem | undefined {
  const { from, until, nodes } = chunk
  if ('lastRowId' in chunk) {
    const missing = nodes.length < (until - from) / tileWidth
    return missing
      ? { problem: 'the hash of pruned entries is gone', leaf: from + nodes.length * tileWidth }
      : undefined
  }
  const differs = chunk.entries.findIndex(({ leaf }, index) => leaf !== from + index)
  const leaf = from + (differs >= 0 ? differs : chunk.entries.length)
  return differs >= 0 || leaf < until ? { problem: 'a leaf is missing', leaf } : undefined
}

/** Whole tiles, and a few milliseconds of work. */
const entriesAtOnce = 4 * tileWidth
/** A database server sends few BLOBs at a time (db/remote/bounded-response.ts). */
const prunedTilesAtOnce = 256

/** Reads entries with their rows, and the stored hashes of their tiles. The next ones are read while the last ones are checked. */
async function* readChunks(orm: Orm, size: number, pruned: readonly PrunedRange[]): AsyncGenerator<Chunk> {
  const reader = createRowReader(orm)
  const nodesOf = (from: number, until: number) => readLogNodes(orm, 1, from / tileWidth, Math.floor(until / tileWidth))
  const readFrom = async (from: number): Promise<Chunk> => {
    const range = rangeWith(pruned, from)
    if (range !== undefined) {
      const end = Math.min(from + prunedTilesAtOnce * tileWidth, range.end, size)
      // A pruning that was interrupted has left some of its entries.
      const until = (await firstEntryIn(orm, { first: from, end })) ?? end
      if (until > from) {
        const lastRowId = until === range.end ? range.last_row_id : undefined
        const [nodes, read] = [await nodesOf(from, until), await reader.skip(lastRowId)]
        return { from, until, nodes, read, lastRowId }
      }
    }
    const end = pruned.find(({ first }) => first > from && first < from + entriesAtOnce)?.first ?? from + entriesAtOnce
    const until = Math.min(end, size)
    const entries = await readEntries(orm, from, until)
    return { from, until, entries, nodes: await nodesOf(from, until), read: await reader.read(entries) }
  }
  let next: Promise<Chunk> | undefined = size > 0 ? readFrom(0) : undefined
  while (next !== undefined) {
    const chunk: Chunk = await next
    next = chunk.until < size ? readFrom(chunk.until) : undefined
    next?.catch(() => {})
    yield chunk
  }
}

/** `isGiven`: by who asks, not by the database. */
type KnownRoot = { name: string; size: number; root: Uint8Array; isGiven: boolean }

async function openCheckpoints(
  orm: Orm,
  { epoch, against = [] }: Omit<Scope, 'mode'>,
  size: number,
  report: (problem: LogProblem) => void,
): Promise<KnownRoot[]> {
  const compared: KnownRoot[] = []
  const add = (name: string, text: string, isGiven: boolean) => {
    const checkpoint = parseCheckpoint(text)
    if (checkpoint === undefined) report({ problem: `${name} is damaged` })
    else if (checkpoint.size > size)
      report({
        problem: `the log has ${size} leaves, and ${name} has ${checkpoint.size}: the newest rows were removed`,
        leaf: size,
      })
    else compared.push({ name, ...checkpoint, isGiven })
  }
  for (let after = -1; ; ) {
    const page = await listCheckpoints(orm, epoch, after, 500)
    for (const { size: of, note } of page) add(`the checkpoint of ${of} leaves`, note, false)
    after = page.at(-1)?.size ?? after
    if (page.length < 500) break
  }
  for (const { name, text } of against) add(name, text, true)
  return compared.toSorted((one, other) => one.size - other.size)
}
