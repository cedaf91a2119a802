// The tree of a log in a folder: reads every entry, and compares the hashes of all tiles. What a tile says counts for nothing unless it leads to
// the root of a checkpoint, which the caller compares.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { OnProgress } from '../../db/read/slices.ts'
import { createFrontier } from './transparency/frontier.ts'
import { hashLeaf, isSameHash, perfectHash } from './transparency/merkle.ts'
import {
  parseBundle,
  parseTilePath,
  splitTile,
  type Tile,
  tileHeight,
  tileOf,
  tilePath,
  tilesOf,
  tileWidth,
} from './transparency/tiles.ts'

export type TreeVisitor = {
  report: (problem: string) => void
  count: (kind: string) => void
  check: (first: number, entries: readonly Uint8Array[]) => Promise<void>
  isPruned: (leaf: number) => boolean
  checkPruned: (first: number, hash: Uint8Array) => Promise<void>
  atSize: (size: number, root: () => Uint8Array) => void
  onProgress: OnProgress
}

/** Reads every entry in order, and compares the hashes of all tiles. */
export async function readTree(
  folder: string,
  size: number,
  { report, count, check, isPruned, checkPruned, atSize, onProgress }: TreeVisitor,
): Promise<void> {
  const frontier = createFrontier()
  /** The hashes that the tiles of each level must have, from the entries. */
  const expected: Uint8Array[][] = []
  atSize(0, frontier.root)
  const checkParts = await createPartCheck(folder, report)
  const checkTile = async (tile: Tile & { level: number }, hashes: Uint8Array[]) => {
    await checkParts(tile, Buffer.concat(hashes))
    const bytes = await readBytes(folder, tile)
    const found = bytes && splitTile(bytes, tile.width)
    if (found === undefined) report(`${tilePath(tile)}: it is missing or damaged`)
    else if (!found.every((hash, index) => isSameHash(hash, hashes[index] ?? hash)))
      report(`${tilePath(tile)}: its hashes are not those of the entries`)
  }
  for (const bundle of tilesOf(size)) {
    if (bundle.level !== 'entries') break
    const bytes = await readBytes(folder, bundle)
    const entries = bytes && parseBundle(bytes, bundle.width)
    const first = bundle.index * tileWidth
    const hash = bytes === undefined && isPruned(first) ? await hashAbove(folder, size, bundle) : undefined
    if (hash !== undefined) {
      await checkPruned(first, hash)
      frontier.add(hash, tileHeight)
      atSize(frontier.size(), frontier.root)
      await addAbove(expected, bundle.index, hash, checkTile)
      onProgress(frontier.size(), size)
      continue
    }
    if (entries === undefined) {
      report(`${tilePath(bundle)}: it is missing or damaged`)
      return
    }
    await checkParts(bundle, bytes ?? Buffer.of())
    const leaves = entries.map(hashLeaf)
    for (const entry of entries) count(kindIn(entry))
    await check(first, entries)
    for (const leaf of leaves) {
      frontier.add(leaf)
      atSize(frontier.size(), frontier.root)
    }
    await addUp(expected, { level: 0, index: bundle.index, width: bundle.width }, leaves, checkTile)
    onProgress(frontier.size(), size)
  }
  for (const [level, hashes] of expected.entries())
    if (level > 0 && hashes.length > 0) {
      const index = Math.floor(Math.floor(size / tileWidth ** level) / tileWidth)
      await checkTile({ level, index, width: hashes.length }, hashes)
    }
}

/**
 * Finds the files of tiles from when these had fewer entries, or have more than the checkpoint. Returns a function that compares those of a
 * tile with its bytes: the shorter must be how the longer begins.
 */
async function createPartCheck(folder: string, report: (problem: string) => void) {
  const names = await readdir(join(folder, 'tile'), { recursive: true }).catch(() => [])
  const tiles = names.flatMap((name) => parseTilePath(join('tile', name)) ?? [])
  const parts = Map.groupBy(
    tiles.filter(({ width }) => width < tileWidth),
    (tile) => tilePath({ ...tile, width: tileWidth }),
  )
  return async (tile: Tile, bytes: Uint8Array) => {
    for (const part of parts.get(tilePath({ ...tile, width: tileWidth })) ?? []) {
      const found = part.width === tile.width ? undefined : await readBytes(folder, part)
      // A server that publishes removes them once the tile is whole.
      if (found === undefined) continue
      const isWhole = (part.level === 'entries' ? parseBundle : splitTile)(found, part.width) !== undefined
      const [shorter, longer] = part.width < tile.width ? [found, bytes] : [bytes, found]
      if (!isWhole || Buffer.compare(shorter, longer.subarray(0, shorter.length)) !== 0)
        report(`${tilePath(part)}: it is damaged, or not how ${tilePath(tile)} began`)
    }
  }
}

/** Checks a tile, and adds its hash to the level above if it is whole. */
async function addUp(
  expected: Uint8Array[][],
  tile: Tile & { level: number },
  hashes: Uint8Array[],
  checkTile: (tile: Tile & { level: number }, hashes: Uint8Array[]) => Promise<void>,
): Promise<void> {
  await checkTile(tile, hashes)
  if (tile.width === tileWidth) await addAbove(expected, tile.index, perfectHash(hashes), checkTile, tile.level + 1)
}

/** Adds the hash of a whole tile to its level. `index` is that of the tile. */
async function addAbove(
  expected: Uint8Array[][],
  index: number,
  hash: Uint8Array,
  checkTile: (tile: Tile & { level: number }, hashes: Uint8Array[]) => Promise<void>,
  level = 1,
): Promise<void> {
  const hashes = [...(expected[level] ?? []), hash]
  expected[level] = hashes.length < tileWidth ? hashes : []
  if (hashes.length === tileWidth)
    await addUp(expected, { level, index: Math.floor(index / tileWidth), width: tileWidth }, hashes, checkTile)
}

/** The hash of a whole tile of leaves, from the tile above; undefined if it lacks that. */
async function hashAbove(folder: string, size: number, { index }: Tile): Promise<Uint8Array | undefined> {
  const { tile, within } = tileOf({ level: tileHeight, index }, size)
  const bytes = await readBytes(folder, tile)
  return (bytes && splitTile(bytes, tile.width))?.[within.index]
}

function kindIn(entry: Uint8Array): string {
  return /"kind":"([a-z_]+)"/.exec(Buffer.from(entry).toString())?.[1] ?? 'unknown'
}

function readBytes(folder: string, tile: Tile): Promise<Uint8Array | undefined> {
  return readFile(join(folder, tilePath(tile))).catch(() => undefined)
}
