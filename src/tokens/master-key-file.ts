// The master key as a file. A process killed at any moment leaves a complete key in place, or a complete `.next` that will replace it. No key
// is overwritten: an old one stays next to it as `.old-FINGERPRINT`.
import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Fault } from '../fault.ts'
import { describeDenial } from '../runtime/file-access.ts'

/** The key; otherwise the error of reading, or no error when the text is not a key. */
export type ReadKeyFile = { hex: string } | { error?: Error }

export function readKeyFile(path: string): ReadKeyFile {
  try {
    const text = readFileSync(path, 'utf8').trim()
    return isMasterKey(text) ? { hex: text.toLowerCase() } : {}
  } catch (error) {
    return { error: error as Error }
  }
}

export function isMasterKey(text: string): boolean {
  return /^[0-9a-fA-F]{64}$/.test(text)
}

export function newMasterKey(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')
}

/** Creates a missing file with mode 0600. Two processes that race agree on one key, and an existing file is never replaced. */
export function createKeyFile(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const draft = writeDraft(path, newMasterKey())
    try {
      linkUnlessThere(draft, path)
    } finally {
      rmSync(draft, { force: true })
    }
  } catch (error) {
    throw cannotWrite(path, error)
  }
}

/** The key that will replace the one in place. */
export function readNextKeyFile(path: string): string | undefined {
  const read = readKeyFile(nextPathOf(path))
  return 'hex' in read ? read.hex : undefined
}

/**
 * Writes the next key next to the one in place, flushed to disk, with the owner and mode of the file that it will replace. When that file
 * is missing, the owner is that of `database`, or of the folder where the database is no file. A different next key is kept as an old one.
 */
export function writeNextKeyFile(path: string, hex: string, database: string | undefined): void {
  if (readNextKeyFile(path) === hex) return
  const target = targetOf(path)
  try {
    removeDrafts(nextPathOf(path))
    const draft = writeDraft(nextPathOf(path), hex)
    try {
      adoptOwner(draft, target, database)
      keepAside(target, nextPathOf(path))
      renameSync(draft, nextPathOf(path))
    } finally {
      rmSync(draft, { force: true })
    }
    flushFolder(target)
  } catch (error) {
    throw cannotWrite(path, error)
  }
  if (readNextKeyFile(path) !== hex)
    throw cannotWrite(path, new Error('another process is replacing it; try again when that is done'))
}

/** Puts the next key in place and keeps the previous one as an old one. */
export function installNextKeyFile(path: string): void {
  const target = targetOf(path)
  try {
    keepAside(target, target)
    renameSync(nextPathOf(path), target)
    flushFolder(target)
  } catch (error) {
    throw cannotWrite(path, error)
  }
}

/** The files of replaced keys. */
export function listOldKeyFiles(path: string): string[] {
  return listBeginning(`${targetOf(path)}.old-`)
}

function listBeginning(path: string): string[] {
  try {
    const names = readdirSync(dirname(path)).filter((name) => name.startsWith(basename(path)))
    return names.toSorted().map((name) => join(dirname(path), name))
  } catch {
    return []
  }
}

/** The file that will keep the key in place once it is replaced; undefined when no key is in place. */
export function oldPathOf(path: string): string | undefined {
  const target = targetOf(path)
  try {
    return asidePathOf(target, readFileSync(target))
  } catch {
    return undefined
  }
}

/** The file that a link points to, so that replacing it keeps the link. */
function targetOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function nextPathOf(path: string): string {
  return `${targetOf(path)}.next`
}

/** Named after its content, so that no key overwrites another. */
function asidePathOf(target: string, content: Buffer): string {
  return `${target}.old-${masterKeyFingerprint(content.toString())}`
}

/** Names a key without revealing it: the beginning of its SHA-256, as in the names of replaced key files. */
export function masterKeyFingerprint(hex: string): string {
  return createHash('sha256').update(hex.trim().toLowerCase()).digest('hex').slice(0, 8)
}

/** Links a file that will be replaced to a second name, so that its place is never empty. */
function keepAside(target: string, from: string): void {
  if (existsSync(from)) linkUnlessThere(from, asidePathOf(target, readFileSync(from)))
}

function linkUnlessThere(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** An unfinished file of a killed process has never encrypted anything. */
function removeDrafts(path: string): void {
  for (const draft of listBeginning(`${path}.`)) rmSync(draft, { force: true })
}

function writeDraft(path: string, hex: string): string {
  const draft = `${path}.${crypto.randomUUID()}`
  writeFileSync(draft, `${hex}\n`, { mode: 0o600, flag: 'wx', flush: true })
  chmodSync(draft, 0o600)
  return draft
}

/** Root replaces the key of a server that runs as another user. */
function adoptOwner(draft: string, target: string, database: string | undefined): void {
  const own = statSync(draft)
  const key = statSync(target, { throwIfNoEntry: false })
  const { uid, gid } = key ?? statSync(database ?? dirname(target))
  if (uid !== own.uid || gid !== own.gid) chownSync(draft, uid, gid)
  if (key !== undefined) chmodSync(draft, key.mode & 0o777)
}

/** A new file name is on disk once its folder is flushed. */
function flushFolder(path: string): void {
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

function cannotWrite(path: string, cause: unknown): Fault {
  const { code, message } = cause as NodeJS.ErrnoException
  const denied = ['EACCES', 'EPERM'].includes(code ?? '') ? describeDenial(path, { toWrite: true }) : undefined
  const why = denied ?? message
  return new Fault('configuration', `The master key file ${JSON.stringify(path)} cannot be written: ${why}`, { cause })
}
