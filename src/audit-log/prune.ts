// Prunes the log: entries whose rows and salts are in an archive leave the database, a whole tile at a time, once the lines of the archive
// give the hash that the tree has. That hash stays, so every other proof holds. A record in the log says which entries went, and where their
// rows are. Whatever stops this between two steps, the next call continues there.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../db/file/open.ts'
import { createPace } from '../../db/read/pace.ts'
import type { Archive } from '../../db/schema/record-schema.ts'
import { newestCheckpoint, readLogEpoch } from '../../db/tables/audit-checkpoints.ts'
import { isOvertaken, readLogNodes } from '../../db/tables/audit-log.ts'
import {
  insertPruned,
  type LeafRange,
  listKeptSizes,
  listPruned,
  listUnprunedArchives,
  markPruned,
  removeEntries,
} from '../../db/tables/log-pruning.ts'
import { insertLogRecord } from '../../db/tables/log-records.ts'
import type { Writer } from '../../db/write/write.ts'
import { checkIsArchive } from '../archive/archive-file.ts'
import type { Rest } from '../archive/pace.ts'
import { type ArchivedTile, archivedTiles } from './archived-tile.ts'
import type { PrunedRange, PruningBody } from './pruning-record.ts'
import { isSameHash, perfectHash } from './transparency/merkle.ts'
import { tileWidth } from './transparency/tiles.ts'

export type PruneContext = {
  database: Pick<Database, 'orm' | 'reader' | 'path'>
  writer: Pick<Writer, 'write'>
  now: () => number
  /** Waits while others work. Called after each commit. */
  rest: Rest
  /** Ends this between two steps. */
  isStopping?: () => boolean
}

/** Entries of one commit: about two milliseconds. */
const leavesAtOnce = 2 * tileWidth

/**
 * Prunes what archives hold that were finished since the last call and whose files are here.
 * @returns the number of entries that went
 */
export async function pruneArchived(context: PruneContext): Promise<number> {
  let pruned = 0
  for (const archive of await listUnprunedArchives(context.database.reader)) {
    // Without the file, nothing but the entries could prove its rows.
    const path = join(archive.folder, archive.file)
    if (existsSync(path)) pruned += await pruneArchive(context, archive, path)
    if (context.isStopping?.() === true) break
  }
  return pruned
}

async function pruneArchive(context: PruneContext, archive: Archive, path: string): Promise<number> {
  const { database, writer, now, rest, isStopping = () => false } = context
  const { orm } = database
  checkIsArchive(path, database.path)
  const begun = await listPruned(orm, archive.id)
  const ranges = begun.length > 0 ? begun : await begin(context, archive, path)
  let removed = 0
  for (const { first, end } of ranges ?? [])
    for (let leaf = first; leaf < end; leaf += leavesAtOnce) {
      if (isStopping()) return removed
      const part = { first: leaf, end: Math.min(leaf + leavesAtOnce, end) }
      await writer.write([removeEntries(orm, part)])
      removed += part.end - part.first
      await rest()
    }
  if (ranges !== undefined) await writer.write([markPruned(orm, archive, now())])
  return removed
}

/** Allows the entries to go, and says so in the log. Returns undefined if this was stopped, or another node does the same. */
async function begin(
  { database: { orm, reader }, writer, now, isStopping = () => false }: PruneContext,
  archive: Archive,
  path: string,
): Promise<LeafRange[] | undefined> {
  const ranges: PrunedRange[] = []
  const isProvable = await createProvable(reader)
  const pace = createPace()
  for await (const tile of archivedTiles(path)) {
    const wait = pace()
    if (wait !== undefined) await wait
    if (isStopping()) return undefined
    if (tile === undefined || !(await isProvable(tile))) continue
    const [first, last] = [tile.index * tileWidth, ranges.at(-1)]
    const range = { first, end: first + tileWidth, last_row_id: tile.lastRowId }
    if (last?.end === first) Object.assign(last, { ...range, first: last.first })
    else ranges.push(range)
  }
  if (ranges.length === 0) return ranges
  const body: PruningBody = { file: archive.file, sha256: archive.sha256 ?? '', ranges }
  try {
    await writer.write([insertPruned(orm, archive.id, ranges), insertLogRecord(orm, 'pruning', now(), body)])
  } catch (error) {
    if (isOvertaken(error)) return undefined
    throw error
  }
  return ranges
}

/** Returns a function that reports whether all proofs hold without the entries of a tile. */
async function createProvable(orm: PruneContext['database']['orm']): Promise<(tile: ArchivedTile) => Promise<boolean>> {
  const epoch = await readLogEpoch(orm)
  const signed = epoch === undefined ? undefined : await newestCheckpoint(orm, epoch.name)
  const sizes = await listKeptSizes(orm)
  // A proof from such a size on needs leaves on both sides of it.
  const kept = new Set(sizes.filter((size) => size % tileWidth > 0).map((size) => Math.floor(size / tileWidth)))
  return async ({ index, leaves }) => {
    // The newest leaf says how many there are, so it stays too.
    if (kept.has(index) || (index + 1) * tileWidth >= (signed?.size ?? 0)) return false
    const [hash] = await readLogNodes(orm, 1, index, index + 1)
    return hash !== undefined && isSameHash(hash, perfectHash(leaves))
  }
}
