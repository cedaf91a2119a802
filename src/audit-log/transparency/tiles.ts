// Tiles (C2SP tlog-tiles): the files that hold the hashes and the entries of a log, 256 in each, and their paths.
import { hashBytes, type Subtree } from './merkle.ts'

/** Hashes in a whole tile, and entries in a whole bundle. */
export const tileWidth = 256
/** A whole tile of one level is one hash of the next: 2^8 = 256. */
export const tileHeight = 8
const entryBytesMax = 0xffff

/** The level of tiles; `entries` for bundles. */
export type TileLevel = number | 'entries'

/** `width` is below 256 for the last tile of a level, which is not whole. */
export type Tile = { level: TileLevel; index: number; width: number }

/** The path of a tile below that of its log, such as `tile/0/x001/234.p/17`. */
export function tilePath({ level, index, width }: Tile): string {
  const groups = [String(index % 1_000).padStart(3, '0')]
  for (let rest = Math.floor(index / 1_000); rest > 0; rest = Math.floor(rest / 1_000))
    groups.unshift(`x${String(rest % 1_000).padStart(3, '0')}`)
  return `tile/${level}/${groups.join('/')}${width === tileWidth ? '' : `.p/${width}`}`
}

/** The tile of a path; undefined for a path that no tile has. */
export function parseTilePath(path: string): Tile | undefined {
  const pattern = /^tile\/(entries|0|[1-9][0-9]?)\/((?:x[0-9]{3}\/){0,4}[0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/
  const [, level = '', digits = '', width] = pattern.exec(path) ?? []
  const tile: Tile = {
    level: level === 'entries' ? level : Number(level),
    index: Number(digits.replaceAll(/[x/]/g, '')),
    width: width === undefined ? tileWidth : Number(width),
  }
  return level !== '' && tilePath(tile) === path ? tile : undefined
}

/**
 * The tiles that a log of `size` entries has and one of `since` entries does not have, bundles included: each whole tile, and each
 * last tile that is not whole.
 */
export function* tilesOf(size: number, since = 0): Generator<Tile> {
  yield* tilesOfLevel('entries', size, since)
  let [hashes, hashesBefore] = [size, since]
  for (let level = 0; hashes > 0; level += 1) {
    yield* tilesOfLevel(level, hashes, hashesBefore)
    hashes = Math.floor(hashes / tileWidth)
    hashesBefore = Math.floor(hashesBefore / tileWidth)
  }
}

function* tilesOfLevel(level: TileLevel, hashes: number, before: number): Generator<Tile> {
  const whole = Math.floor(hashes / tileWidth)
  for (let index = Math.floor(before / tileWidth); index < whole; index += 1) yield { level, index, width: tileWidth }
  const width = hashes % tileWidth
  if (width > 0 && hashes > before) yield { level, index: whole, width }
}

/** Where a tree of `size` entries has the hash of a subtree: the tile, and the subtree within it. */
export function tileOf({ level, index }: Subtree, size: number): { tile: Tile & { level: number }; within: Subtree } {
  const tileLevel = Math.floor(level / tileHeight)
  const height = level % tileHeight
  const hashes = Math.floor(size / tileWidth ** tileLevel)
  const first = index * 2 ** height
  const tileIndex = Math.floor(first / tileWidth)
  const width = Math.min(tileWidth, hashes - tileIndex * tileWidth)
  return {
    tile: { level: tileLevel, index: tileIndex, width },
    within: { level: height, index: index - (tileIndex * tileWidth) / 2 ** height },
  }
}

/** The hashes of a tile; undefined unless it has exactly `width` of them. */
export function splitTile(bytes: Uint8Array, width: number): Uint8Array[] | undefined {
  if (bytes.length !== width * hashBytes) return undefined
  return Array.from({ length: width }, (_, index) => bytes.subarray(index * hashBytes, (index + 1) * hashBytes))
}

/**
 * Entries, each behind its length in two bytes.
 * @throws RangeError for an entry of more than 65,535 bytes
 */
export function formatBundle(entries: readonly Uint8Array[]): Uint8Array {
  const parts: Uint8Array[] = []
  for (const entry of entries) {
    if (entry.length > entryBytesMax) throw new RangeError('An entry has more than 65,535 bytes')
    parts.push(Uint8Array.of(entry.length >> 8, entry.length & 0xff), entry)
  }
  return Buffer.concat(parts)
}

/** The entries of a bundle; undefined unless it has exactly `width` of them. */
export function parseBundle(bytes: Uint8Array, width: number): Uint8Array[] | undefined {
  const entries: Uint8Array[] = []
  let at = 0
  while (at + 2 <= bytes.length && entries.length < width) {
    const end = at + 2 + (bytes[at] ?? 0) * 256 + (bytes[at + 1] ?? 0)
    if (end > bytes.length) return undefined
    entries.push(bytes.subarray(at + 2, end))
    at = end
  }
  return at === bytes.length && entries.length === width ? entries : undefined
}
