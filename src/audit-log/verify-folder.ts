// Verifies an audit log in a folder, without the database: that its entries have the hashes of its tiles and the root of its checkpoint, and
// that it grew from every older checkpoint. It trusts nothing but the verifier key.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { OnProgress } from '../../db/read/slices.ts'
import { createArchiveCheck } from './archive-check.ts'
import { openCheckpoint, type SignedCheckpoint } from './transparency/checkpoint.ts'
import { createFrontier } from './transparency/frontier.ts'
import { hashLeaf, isSameHash, perfectHash } from './transparency/merkle.ts'
import { checkSignature, type VerifierKey } from './transparency/note.ts'
import { parseBundle, splitTile, type Tile, tilePath, tilesOf, tileWidth } from './transparency/tiles.ts'

export type FolderCheck = {
  problems: string[]
  origin: string | undefined
  size: number
  /** How many older checkpoints it grew from. */
  checkpoints: number
  kinds: Record<string, number>
  /** How many archived exchanges are the ones that were logged. */
  archived: number
  witnesses: { name: string; at: number }[]
}

type FolderInput = {
  folder: string
  /** Of the log: one, or several after a rotation. */
  keys: readonly VerifierKey[]
  witnessKeys?: readonly VerifierKey[]
  /** Checkpoints that were kept elsewhere. */
  against?: readonly { name: string; text: string }[]
  /** Files with archived exchanges, to compare with their entries. */
  archives?: readonly string[]
}

const problemsMax = 20

export async function verifyFolder(given: FolderInput, onProgress: OnProgress = () => {}): Promise<FolderCheck> {
  const { folder, keys, witnessKeys = [], against = [], archives = [] } = given
  const found: FolderCheck = {
    ...{ problems: [], origin: undefined, size: 0, checkpoints: 0 },
    ...{ kinds: {}, archived: 0, witnesses: [] },
  }
  const report = (problem: string) => void (found.problems.length < problemsMax && found.problems.push(problem))
  const newest = openWith(keys, await readOr(join(folder, 'checkpoint')))
  if (typeof newest === 'string') {
    report(`checkpoint: ${newest}`)
    return found
  }
  const { origin, size, note } = newest
  Object.assign(found, { origin, size })
  const older = await readOlder(given, keys, newest, report)
  for (const { name, text } of against) {
    const opened = openWith(keys, text)
    if (typeof opened === 'string') report(`${name}: ${opened}`)
    else older.push({ name, checkpoint: opened })
  }
  for (const key of witnessKeys) {
    const signature = checkSignature(note, key)
    if (signature === 'wrong') report(`checkpoint: the signature of ${key.name} is wrong`)
    else if (signature !== 'missing') found.witnesses.push({ name: key.name, at: signature.at ?? 0 })
  }
  const count = (kind: string) => {
    found.kinds[kind] = (found.kinds[kind] ?? 0) + 1
  }
  const byRoot = rootsAt([...older, { name: 'checkpoint', checkpoint: newest }], report)
  const archived = createArchiveCheck(archives, report)
  await readTree(folder, size, { report, count, atSize: byRoot.at, check: archived.check, onProgress })
  found.checkpoints = byRoot.matched()
  found.archived = await archived.end()
  return found
}

type NamedCheckpoint = { name: string; checkpoint: SignedCheckpoint }

/** A checkpoint, if one of the keys has signed it. */
function openWith(keys: readonly VerifierKey[], text: string): SignedCheckpoint | string {
  const results = keys.map((key) => openCheckpoint(text, key))
  const opened = results.find((result) => typeof result !== 'string')
  return opened ?? explained[(results.find((each) => each !== 'other_log') ?? 'other_log') as keyof typeof explained]
}

const explained = {
  malformed: 'it is missing or damaged',
  other_log: 'it belongs to a log that the key does not sign',
  unsigned: 'the key has not signed it',
  wrong_signature: 'its signature is wrong',
}

async function readOlder(
  { folder }: FolderInput,
  keys: readonly VerifierKey[],
  newest: SignedCheckpoint,
  report: (problem: string) => void,
): Promise<NamedCheckpoint[]> {
  const names = await readdir(join(folder, 'checkpoints')).catch(() => [])
  const older: NamedCheckpoint[] = []
  for (const name of names.filter((each) => /^[0-9]+$/.test(each))) {
    const opened = openWith(keys, await readOr(join(folder, 'checkpoints', name)))
    // Before a rotation, another key signed.
    if (opened === explained.unsigned && keys.length === 1) continue
    if (typeof opened === 'string') report(`checkpoints/${name}: ${opened}`)
    else if (String(opened.size) !== name) report(`checkpoints/${name}: it has the size ${opened.size}`)
    else if (opened.size > newest.size)
      report(`checkpoints/${name}: the log is shorter now, it has ${newest.size} entries`)
    else older.push({ name: `checkpoints/${name}`, checkpoint: opened })
  }
  return older
}

/** Compares each checkpoint with the root that the entries have at its size. */
function rootsAt(named: NamedCheckpoint[], report: (problem: string) => void) {
  const sorted = named.toSorted((one, other) => one.checkpoint.size - other.checkpoint.size)
  let matched = -1
  return {
    at: (size: number, root: () => Uint8Array) => {
      while (sorted[0]?.checkpoint.size === size) {
        const { name, checkpoint } = sorted.shift() as NamedCheckpoint
        if (isSameHash(checkpoint.root, root())) matched += 1
        else
          report(`${name}: the entries have another root at its size ${size}: the log was rewritten, or signed twice`)
      }
    },
    matched: () => Math.max(matched, 0),
  }
}

type TreeVisitor = {
  report: (problem: string) => void
  count: (kind: string) => void
  check: (first: number, entries: readonly Uint8Array[]) => Promise<void>
  atSize: (size: number, root: () => Uint8Array) => void
  onProgress: OnProgress
}

/** Reads every entry in order, and compares the hashes of all tiles. */
async function readTree(
  folder: string,
  size: number,
  { report, count, check, atSize, onProgress }: TreeVisitor,
): Promise<void> {
  const frontier = createFrontier()
  /** The hashes that the tiles of each level must have, from the entries. */
  const expected: Uint8Array[][] = []
  atSize(0, frontier.root)
  const checkTile = async (tile: Tile & { level: number }, hashes: Uint8Array[]) => {
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
    if (entries === undefined) {
      report(`${tilePath(bundle)}: it is missing or damaged`)
      return
    }
    const leaves = entries.map(hashLeaf)
    for (const entry of entries) count(kindIn(entry))
    await check(bundle.index * tileWidth, entries)
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

/** Checks a tile, and adds its hash to the level above if it is whole. */
async function addUp(
  expected: Uint8Array[][],
  tile: Tile & { level: number },
  hashes: Uint8Array[],
  checkTile: (tile: Tile & { level: number }, hashes: Uint8Array[]) => Promise<void>,
): Promise<void> {
  await checkTile(tile, hashes)
  if (tile.width < tileWidth) return
  const above = [...(expected[tile.level + 1] ?? []), perfectHash(hashes)]
  expected[tile.level + 1] = above
  if (above.length < tileWidth) return
  expected[tile.level + 1] = []
  await addUp(
    expected,
    { level: tile.level + 1, index: Math.floor(tile.index / tileWidth), width: tileWidth },
    above,
    checkTile,
  )
}

function kindIn(entry: Uint8Array): string {
  return /"kind":"([a-z_]+)"/.exec(Buffer.from(entry).toString())?.[1] ?? 'unknown'
}

function readBytes(folder: string, tile: Tile): Promise<Uint8Array | undefined> {
  return readFile(join(folder, tilePath(tile))).catch(() => undefined)
}

function readOr(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}
