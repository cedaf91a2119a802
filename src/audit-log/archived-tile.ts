// Tiles of the log whose rows are in an archive: what the lines of the file say of their leaves. Anyone who has the file can compute them.

import { exchangeEntryKind } from '../../db/schema/log-schema.ts'
import { linesOf } from '../archive/archive-file.ts'
import { readSaltedLine, type SaltedLine } from '../archive/salted-lines.ts'
import { commitTo, leafHash } from './entry.ts'
import { tileWidth } from './transparency/tiles.ts'

/** What the leaf of a line commits to. */
export function commitmentOf(line: SaltedLine): Buffer {
  return line.salt === undefined ? line.commitment : commitTo(line.salt, line.line)
}

/** The hash of the leaf of a line. */
export function archivedLeafHash(line: SaltedLine): Uint8Array {
  return leafHash({ kind: exchangeEntryKind, at: line.at, commitment: commitmentOf(line) })
}

/** A whole tile of which an archive has all rows. `lastRowId`: the exchange of its last leaf. */
export type ArchivedTile = { index: number; leaves: Uint8Array[]; lastRowId: number }

/**
 * Yields the tiles of which an archive has every row, in their order. Yields undefined between lines, so that a caller can give way.
 * @throws Error of the file system or of the compression
 */
export async function* archivedTiles(path: string): AsyncGenerator<ArchivedTile | undefined> {
  let leaves: Uint8Array[] = []
  let next = -1
  for await (const text of linesOf(path)) {
    const line = readSaltedLine(text)
    if (line === undefined) continue
    const isFirst = line.leaf % tileWidth === 0
    if (isFirst || line.leaf !== next) leaves = []
    if (isFirst || leaves.length > 0) leaves.push(archivedLeafHash(line))
    next = line.leaf + 1
    if (leaves.length < tileWidth) yield undefined
    else yield { index: Math.floor(line.leaf / tileWidth), leaves, lastRowId: line.id }
  }
}

const leafText = /"log_leaf":([0-9]+)[,}]/

/**
 * Finds the leaves of a tile in an archive; undefined if it does not have them all.
 * @throws Error of the file system or of the compression
 */
export async function findArchivedTile(path: string, index: number): Promise<ArchivedTile | undefined> {
  const [first, end] = [index * tileWidth, (index + 1) * tileWidth]
  const leaves: Uint8Array[] = []
  for await (const text of linesOf(path)) {
    // To parse a line takes much longer than to look for its leaf.
    const leaf = Number(leafText.exec(text)?.[1] ?? -1)
    if (leaf < first) continue
    const line = leaf < end ? readSaltedLine(text) : undefined
    if (line?.leaf !== first + leaves.length) return undefined
    leaves.push(archivedLeafHash(line))
    if (leaves.length === tileWidth) return { index, leaves, lastRowId: line.id }
  }
  return undefined
}
