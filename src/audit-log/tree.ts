// The tree of the audit log in the database: hashes of whole tiles are stored, all others are computed from at most 256 leaves or hashes.
import type { Orm } from '../../db/file/open.ts'
import { type LogEntry, type LogNode, readLogEntries, readLogNodes } from '../../db/tables/audit-log.ts'
import { leafHash } from './entry.ts'
import { composeHash, type ProofPart, perfectHash, rootParts, type Subtree } from './transparency/merkle.ts'
import { tileHeight, tileWidth } from './transparency/tiles.ts'

/** Reads whole ranges, however many rows fit in a response. Entries that were pruned are left out. */
export async function readEntries(orm: Orm, from: number, until: number): Promise<LogEntry[]> {
  const entries: LogEntry[] = []
  for (let next = from; next < until; ) {
    const more = await readLogEntries(orm, next, until)
    const last = more.at(-1)
    if (last === undefined) break
    entries.push(...more)
    next = last.leaf + 1
  }
  return entries
}

/**
 * The hashes of a level of tiles: of leaves (level 0), or of whole tiles of the level below.
 * @throws Error if the database lacks one
 */
export async function readHashes(orm: Orm, level: number, from: number, until: number): Promise<Uint8Array[]> {
  const hashes =
    level === 0 ? (await readEntries(orm, from, until)).map(leafHash) : await readLogNodes(orm, level, from, until)
  if (hashes.length !== until - from)
    throw new Error(`The audit log lacks hashes of level ${level} between ${from} and ${until}`)
  return hashes
}

/** The hashes of the leaves of a tile whose entries the database no longer has. */
export type KnownTile = { index: number; leaves: readonly Uint8Array[] }

async function hashOf(orm: Orm, { level, index }: Subtree, known?: KnownTile): Promise<Uint8Array> {
  const width = 2 ** (level % tileHeight)
  const [from, until] = [index * width, (index + 1) * width]
  const start = (known?.index ?? 0) * tileWidth
  if (known !== undefined && level < tileHeight && from >= start && until <= start + tileWidth)
    return perfectHash(known.leaves.slice(from - start, until - start))
  return perfectHash(await readHashes(orm, Math.floor(level / tileHeight), from, until))
}

/** The hash that a part of a proof stands for. */
async function hashOfPart(orm: Orm, part: ProofPart, known?: KnownTile): Promise<Uint8Array> {
  const hashes: Uint8Array[] = []
  for (const subtree of part) hashes.push(await hashOf(orm, subtree, known))
  return composeHash(hashes)
}

export function rootOf(orm: Orm, size: number): Promise<Uint8Array> {
  return hashOfPart(orm, rootParts(size))
}

/** @throws Error if a part needs leaves that were pruned, and `known` does not have them */
export async function hashesOf(orm: Orm, parts: readonly ProofPart[], known?: KnownTile): Promise<Uint8Array[]> {
  const hashes: Uint8Array[] = []
  for (const part of parts) hashes.push(await hashOfPart(orm, part, known))
  return hashes
}

/**
 * The hashes of the tiles that become whole when a tree of `size` leaves gets these. `last`: the leaves of the last tile that was not whole,
 * if they are known; those of the new one are returned.
 */
export async function nodesFor(
  orm: Orm,
  size: number,
  leaves: readonly Uint8Array[],
  last?: readonly Uint8Array[],
): Promise<{ nodes: LogNode[]; last: Uint8Array[] }> {
  const nodes: LogNode[] = []
  const known = last ?? (await readHashes(orm, 0, size - (size % tileWidth), size))
  const all = [...known, ...leaves]
  let [from, added] = [size, leaves]
  for (let level = 0; added.length > 0; level += 1) {
    const start = from - (from % tileWidth)
    const hashes = level === 0 ? all : [...(await readHashes(orm, level, start, from)), ...added]
    const made = Array.from({ length: Math.floor(hashes.length / tileWidth) }, (_, index) =>
      perfectHash(hashes.slice(index * tileWidth, (index + 1) * tileWidth)),
    )
    from = start / tileWidth
    nodes.push(...made.map((hash, index) => ({ level: level + 1, number: from + index, hash })))
    added = made
  }
  return { nodes, last: all.slice(all.length - (all.length % tileWidth)) }
}
