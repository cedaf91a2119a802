// Explains why the current user cannot use a file: the path, its owner, its mode and the command that fixes it. It
// opens none of the files that it checks.
import { accessSync, constants, type Stats, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { OpenRefusal } from '../../db/file/file-errors.ts'
import { userName } from './user-name.ts'

const { R_OK, W_OK, X_OK } = constants

/**
 * Returns a clause about the file, its folder or the ancestor folder that is closed to this user, or undefined when
 * none is closed or the cause is unknown. Set `toWrite` for a file that gets companion files in its folder, such as a
 * database. Set `ownsFolder` only if everything in the folder belongs to the program: the clause then says how to hand
 * it over.
 */
export function describeDenial(
  path: string,
  { toWrite, ownsFolder = false }: { toWrite: boolean; ownsFolder?: boolean },
): string | undefined {
  const folder = dirname(path)
  for (const above of foldersAbove(folder)) if (isClosed(above, X_OK)) return describe(above, undefined)
  if (isClosed(folder, toWrite ? R_OK | W_OK | X_OK : X_OK))
    return describe(folder, ownsFolder ? (user) => `chown -R ${user} ${shellWord(folder)}` : undefined)
  const files = `${shellWord(path)}${toWrite ? '*' : ''}`
  return isClosed(path, toWrite ? R_OK | W_OK : R_OK) ? describe(path, (user) => `chown ${user} ${files}`) : undefined
}

/** Refuses a database file that is closed to this user. Ask before it is opened: SQLite says only that it cannot open it. */
export function refuseClosedDatabase(path: string): OpenRefusal | undefined {
  const denial = describeDenial(path, { toWrite: true, ownsFolder: true })
  return denial === undefined
    ? undefined
    : { refused: 'unreadable', message: `The database cannot be opened: ${denial}` }
}

/** A clause that says what to change if this is not a folder in which the current user can create files; otherwise undefined. */
export function describeFolderDenial(folder: string): string | undefined {
  const found = statIfReachable(folder)
  if (found?.isDirectory() === false) return 'it is not a folder; name a folder'
  const denial = describeDenial(join(folder, 'file'), { toWrite: true })
  if (denial !== undefined) return denial
  return found === undefined ? 'it does not exist; create it' : undefined
}

/** Undefined if the file is missing, and also if it is out of reach. */
export function statIfReachable(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

/** Why a file could not be read: what to change if it is closed to this user, or what the system says. */
export function describeReadFailure(path: string, error: unknown): string {
  const denial = describeDenial(path, { toWrite: false })
  if (denial !== undefined) return denial
  const { code, message } = error as NodeJS.ErrnoException
  return (code === undefined ? undefined : readFailures[code]) ?? message
}

const readFailures: Partial<Record<string, string>> = {
  ENOENT: 'the file does not exist',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
}

function foldersAbove(folder: string): string[] {
  const above = dirname(folder)
  return above === folder ? [] : [...foldersAbove(above), above]
}

/** A missing file counts as open. */
function isClosed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return false
  } catch (error) {
    return ['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')
  }
}

function describe(path: string, handOver: ((user: string) => string) | undefined): string | undefined {
  const uid = process.getuid?.()
  const found = statIfReachable(path)
  if (uid === undefined || found === undefined) return undefined
  const mode = (found.mode & 0o777).toString(8).padStart(4, '0')
  const place = `${JSON.stringify(path)} belongs to ${userName(found.uid)} (mode ${mode}), and this command runs as ${userName(uid)}`
  if (found.uid === uid) return `${place}; run: chmod u+rw${found.isDirectory() ? 'x' : ''} ${shellWord(path)}`
  const instead = `${place}; run it as ${userName(found.uid)}`
  // Files of a service user must not become those of the user who runs a command, and never those of nobody.
  if (handOver === undefined || found.uid !== 0 || userName(uid) === 'nobody')
    return `${instead}, or use a folder that ${userName(uid)} can reach`
  return `${instead}, or hand the files over: ${handOver(shellWord(userName(uid)))}`
}

/** The text as one word of a shell, whatever it contains. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
