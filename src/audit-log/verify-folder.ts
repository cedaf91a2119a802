// Verifies an audit log in a folder, without the database: that its entries have the hashes of its tiles and the root of its checkpoint, and
// that it grew from every older checkpoint. It trusts nothing but the verifier key.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { OnProgress } from '../../db/read/slices.ts'
import { createArchiveCheck } from './archive-check.ts'
import { readTree } from './folder-tree.ts'
import { readPruned } from './pruned-files.ts'
import { openCheckpoint, type SignedCheckpoint } from './transparency/checkpoint.ts'
import { isSameHash } from './transparency/merkle.ts'
import { checkSignature, type VerifierKey } from './transparency/note.ts'
import { tileWidth } from './transparency/tiles.ts'

export type FolderCheck = {
  problems: string[]
  origin: string | undefined
  size: number
  /** How many older checkpoints it grew from. */
  checkpoints: number
  kinds: Record<string, number>
  /** Entries that are not in the folder, as records of the log say, and checkpoints among them, which nothing can be compared with. */
  pruned: number
  checkpointsPruned: number
  /** How many archived exchanges are the ones that were logged. */
  archived: number
  /** Each with the size of the newest checkpoint that it has signed. */
  witnesses: { name: string; at: number; size: number }[]
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
    ...{ kinds: {}, pruned: 0, checkpointsPruned: 0, archived: 0, witnesses: [] },
  }
  const report = (problem: string) => void (found.problems.length < problemsMax && found.problems.push(problem))
  const newest = openWith(keys, await readOr(join(folder, 'checkpoint')))
  if (typeof newest === 'string') {
    report(`checkpoint: ${newest}`)
    return found
  }
  const { origin, size } = newest
  Object.assign(found, { origin, size })
  const older = await readOlder(given, keys, newest, report)
  for (const { name, text } of against) {
    const opened = openWith(keys, text)
    if (typeof opened === 'string') report(`${name}: ${opened}`)
    else older.push({ name, checkpoint: opened, isGiven: true })
  }
  const named = [...older, { name: 'checkpoint', checkpoint: newest, isGiven: true }]
  found.witnesses = findWitnesses(named, witnessKeys, report)
  const count = (kind: string) => {
    found.kinds[kind] = (found.kinds[kind] ?? 0) + 1
  }
  const byRoot = rootsAt(named, report)
  const archived = createArchiveCheck(archives, report)
  const pruned = await readPruned(folder, report)
  await readTree(folder, size, {
    ...{ report, count, atSize: byRoot.at, onProgress },
    isPruned: pruned.has,
    check: async (first, entries) => {
      pruned.check(first, entries)
      await archived.check(first, entries)
    },
    checkPruned: async (first, hash) => {
      found.pruned += tileWidth
      found.checkpointsPruned += byRoot.skip(first + tileWidth)
      await archived.checkPruned(first, hash)
    },
  })
  pruned.end()
  found.checkpoints = byRoot.matched()
  found.archived = await archived.end()
  return found
}

/** `isGiven`: who asks wants to know whether the log grew from it. */
type NamedCheckpoint = { name: string; checkpoint: SignedCheckpoint; isGiven: boolean }

/** The newest signature of each witness. A witness signs seldom, so older checkpoints count too: the log grew from them. */
function findWitnesses(
  named: readonly NamedCheckpoint[],
  keys: readonly VerifierKey[],
  report: (problem: string) => void,
): FolderCheck['witnesses'] {
  const newest = new Map<string, FolderCheck['witnesses'][number]>()
  for (const { name, checkpoint } of named)
    for (const key of keys) {
      const signature = checkSignature(checkpoint.note, key)
      if (signature === 'wrong') report(`${name}: the signature of ${key.name} is wrong`)
      else if (signature !== 'missing' && checkpoint.size >= (newest.get(key.text)?.size ?? 0))
        newest.set(key.text, { name: key.name, at: signature.at ?? 0, size: checkpoint.size })
    }
  if (keys.length > 0 && newest.size === 0) report('no checkpoint has the signature of a witness of --witness')
  return [...newest.values()]
}

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
    else older.push({ name: `checkpoints/${name}`, checkpoint: opened, isGiven: false })
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
    /** Passes over checkpoints below a size, and returns how many there are. */
    skip: (end: number) => {
      let skipped = 0
      for (; (sorted[0]?.checkpoint.size ?? end) < end; skipped += 1) {
        const { name, checkpoint, isGiven } = sorted.shift() as NamedCheckpoint
        if (isGiven)
          report(
            `${name}: the entries around its size ${checkpoint.size} were pruned: compare it with a folder that has them`,
          )
      }
      return skipped
    },
    matched: () => Math.max(matched, 0),
  }
}

function readOr(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}
