// Files and folders in an archive. They belong to root and have one time, so that the same files give the same bytes.
import { gzipSync } from 'node:zlib'

export type Entry = {
  /** Without a slash at the beginning. A folder ends with one. */
  path: string
  mode: number
  content?: Uint8Array
  /** A link to this path. */
  link?: string
  /** User and group by number; root without it. */
  owner?: number
}

/** An archive and its time, in seconds since 1970 UTC. */
export type Archive = { entries: readonly Entry[]; time: number }

export const isFolder = ({ path }: Entry) => path === '' || path.endsWith('/')

/** Compresses bytes. The header has no time and names no system, so every machine gives the same bytes. */
export function gzip(bytes: Uint8Array): Buffer {
  const compressed = gzipSync(bytes, { level: 6 })
  compressed.fill(0, 4, 8)
  compressed[9] = 255
  return compressed
}

/** Returns zeros that fill a part up to a multiple of `unit` bytes. */
export function padding(bytes: number, unit: number): Buffer {
  return Buffer.alloc((unit - (bytes % unit)) % unit)
}
