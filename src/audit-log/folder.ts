// The audit log as files, which any static file server or a USB stick carries: `checkpoint`, `checkpoints/<size>`, tiles and entries, in one
// folder for each epoch. Files of an epoch that is over stay as they are.
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Orm } from '../../db/file/open.ts'
import type { LogEntry } from '../../db/tables/audit-log.ts'
import { listLogRecords } from '../../db/tables/log-records.ts'
import { entryText } from './entry.ts'
import { proveRow, type SignedSize } from './prove.ts'
import type { RecentTiles, TileFiles } from './recent-tiles.ts'
import { parseCheckpoint } from './transparency/checkpoint.ts'
import { hashLeafText } from './transparency/merkle.ts'
import { formatBundle, type Tile, tilePath, tilesOf, tileWidth } from './transparency/tiles.ts'
import { readEntries, readHashes } from './tree.ts'

/** The bytes of a tile or bundle, from the database; undefined for one whose entries were pruned. */
export async function tileBytes(orm: Orm, { level, index, width }: Tile): Promise<Uint8Array | undefined> {
  if (level !== 'entries' && level > 0) return Buffer.concat(await readHashes(orm, level, ...spanOf({ index, width })))
  const files = await readTileFiles(orm, index, width)
  return level === 0 ? files?.hashes : files?.bundle
}

/** @throws Error if some are missing: a tile is pruned as a whole */
async function readTileEntries(orm: Orm, index: number, width: number): Promise<LogEntry[] | undefined> {
  const [from, until] = spanOf({ index, width })
  const entries = await readEntries(orm, from, until)
  if (entries.length === 0) return undefined
  if (entries.length !== width) throw new Error(`The audit log lacks entries between ${from} and ${until}`)
  return entries
}

/** A tile of leaves has the hashes of a bundle: both come from one text of each entry. */
async function readTileFiles(orm: Orm, index: number, width: number): Promise<TileFiles | undefined> {
  const texts = (await readTileEntries(orm, index, width))?.map(entryText)
  return (
    texts && {
      bundle: formatBundle(texts.map((text) => Buffer.from(text))),
      hashes: Buffer.concat(texts.map(hashLeafText)),
    }
  )
}

/** The folder of what says which entries were pruned: proofs of the records of the log. */
export const prunedFolder = 'pruned'

/**
 * Adds what a log of `size` entries has and the folder does not have yet; the checkpoint comes last. What was pruned is left out, and stays in
 * a folder that has it. `recent`: tiles that this process has appended. `isOver`: ends this between two files; the next call goes on from
 * the checkpoint that is there.
 */
export async function publish(
  orm: Orm,
  folder: string,
  signed: SignedSize,
  { recent, isOver = () => false }: { recent?: Pick<RecentTiles, 'find'> | undefined; isOver?: () => boolean } = {},
): Promise<void> {
  const { size, note } = signed
  const published = parseCheckpoint(await readText(join(folder, 'checkpoint')))?.size ?? 0
  for (const tile of tilesOf(size, Math.min(published, size))) {
    if (isOver()) return
    if (tile.level === 'entries') {
      const known = tile.width === tileWidth ? recent?.find(tile.index) : undefined
      const files = known ?? (await readTileFiles(orm, tile.index, tile.width))
      if (files === undefined) continue
      await writeTile(folder, tile, files.bundle)
      await writeTile(folder, { ...tile, level: 0 }, files.hashes)
    } else if (tile.level > 0)
      await writeTile(folder, tile, Buffer.concat(await readHashes(orm, tile.level, ...spanOf(tile))))
  }
  await publishPrunings(orm, folder, signed)
  await publishCheckpoint(folder, signed)
  await replaceText(join(folder, 'checkpoint'), note)
}

/** Writes a checkpoint into `checkpoints`, if its file differs: a witness signs one that was published before. */
export async function publishCheckpoint(folder: string, { size, note }: SignedSize): Promise<void> {
  const path = join(folder, 'checkpoints', String(size))
  if ((await readText(path)) === note) return
  await mkdir(dirname(path), { recursive: true })
  await replaceText(path, note)
}

function spanOf({ index, width }: Omit<Tile, 'level'>): [from: number, until: number] {
  return [index * tileWidth, index * tileWidth + width]
}

/** Records are in the order of their leaves, so those after the newest file are new. */
async function publishPrunings(orm: Orm, folder: string, signed: SignedSize): Promise<void> {
  const names: string[] = await readdir(join(folder, prunedFolder)).catch(() => [])
  const last = Math.max(0, ...names.map((name) => Number(/^([0-9]+)\.tlog-proof$/.exec(name)?.[1] ?? 0)))
  for (const { id } of await listLogRecords(orm, 'pruning', last, recordsAtOnce)) {
    const found = await proveRow(orm, signed, 'records', id)
    // The next checkpoint has the others.
    if (found?.proof === undefined) return
    await mkdir(join(folder, prunedFolder), { recursive: true })
    await replaceText(join(folder, prunedFolder, `${id}.tlog-proof`), found.proof)
  }
}

/** Archives of one checkpoint. */
const recordsAtOnce = 1_000

async function writeTile(folder: string, tile: Tile, bytes: Uint8Array): Promise<void> {
  const path = join(folder, tilePath(tile))
  await writeFile(path, bytes).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, bytes)
  })
  // What the whole tile has, its parts need not have.
  if (tile.width === tileWidth) await rm(`${path}.p`, { recursive: true, force: true })
}

/** Replaces a file in one step, so that a reader finds the old text or the new one, after a power loss too. */
export async function replaceText(path: string, text: string): Promise<void> {
  const next = `${path}.next`
  const file = await open(next, 'w', 0o644)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(next, path)
}

/** The text of a file; empty if it is missing. */
export function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
}

/** The newest checkpoint of each epoch in a folder; none if it cannot be read, which writing to it reports. */
export async function readPublished(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => [])
  const texts: string[] = []
  for (const name of names.filter((each) => /^[0-9]{8}-[0-9a-f]{8}$/.test(each)))
    texts.push(await readText(join(folder, name, 'checkpoint')))
  return texts.filter((text) => text !== '')
}
