// The folder of cached access tokens: only its owner can read it, and nothing in it is followed to another place.
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Fault } from '../fault.ts'
import type { Environment } from './identity.ts'
import { replaceFile } from './token-file.ts'

/** A token has at most 16 KB, and a login keeps two. */
const fileBytesMax = 64 * 1024
const keptMilliseconds = 24 * 60 * 60 * 1000

/**
 * Creates the folder if needed and returns its path: `latchkey` in $XDG_RUNTIME_DIR, or `latchkey-UID` in the folder for
 * temporary files. Throws a fault if it is a link, belongs to another user, or is open to others.
 */
export async function openTokenFolder(environment: Environment): Promise<string> {
  const runtime = environment.XDG_RUNTIME_DIR ?? ''
  return openOwnFolder(runtime === '' ? join(tmpdir(), `latchkey-${userId()}`) : join(runtime, 'latchkey'))
}

/** Creates the folder if needed and returns its path. Throws a fault if it is a link, belongs to another user, or is open to others. */
export async function openOwnFolder(path: string): Promise<string> {
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw refuse(`The folder ${path} for tokens could not be created: ${error.code}`)
  })
  const found = await lstat(path)
  if (found.isSymbolicLink()) throw refuse(`The folder ${path} for tokens is a symbolic link`)
  if (!found.isDirectory()) throw refuse(`The path ${path} for tokens is not a folder`)
  if (found.uid !== userId()) throw refuse(`The folder ${path} for tokens belongs to another user`)
  if ((found.mode & 0o077) !== 0) throw refuse(`The folder ${path} for tokens is open to other users`)
  return path
}

/** Returns the path, without extension, of what is kept for one URL, policy, identity and audience. Keeps no secret. */
export function tokenPath(folder: string, parts: readonly string[]): string {
  return join(folder, createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32))
}

/**
 * Returns the JSON object in a file; undefined if it is missing or damaged. Throws a fault for a file of another
 * kind or user.
 */
export async function readEntry(path: string): Promise<Record<string, unknown> | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      if (error.code === 'ELOOP') throw refuse(`The file ${path} for a token is a symbolic link`)
      throw refuse(`The file ${path} for a token cannot be read: ${error.code}`)
    },
  )
  if (file === undefined) return undefined
  try {
    const found = await file.stat()
    if (!found.isFile() || found.uid !== userId() || (found.mode & 0o077) !== 0)
      throw refuse(`The file ${path} for a token belongs to another user, or is open to other users`)
    if (found.size > fileBytesMax) return undefined
    return parseEntry(await file.readFile('utf8'))
  } finally {
    await file.close()
  }
}

/** Replaces the file in one step; its mode is 0600. Removes what nobody has replaced for a day, such as tokens of ended jobs. */
export async function writeEntry(path: string, entry: Readonly<Record<string, string | number>>): Promise<void> {
  await replaceFile(path, JSON.stringify(entry))
  await removeOld(dirname(path))
}

async function removeOld(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name)
    const found = await lstat(path).catch(() => undefined)
    if (found?.isFile() && Date.now() - found.mtimeMs > keptMilliseconds) await rm(path, { force: true })
  }
}

function parseEntry(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // A damaged file is replaced.
  }
  return undefined
}

function userId(): number {
  return process.getuid?.() ?? 0
}

function refuse(message: string): Fault {
  return new Fault('unavailable', message, {
    hint: ': remove it, or set XDG_RUNTIME_DIR to a folder that belongs to you and has mode 0700',
  })
}
