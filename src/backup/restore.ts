// Puts a verified backup in the place of the database. A process killed at any moment leaves the old database or the new one in place, and
// the old one is kept under another name.
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type TakenOver, takeOver } from '../../db/file/take-over.ts'
import { Fault } from '../fault.ts'
import { type BackupCheck, type Verification, verifyBackup } from './verify.ts'

/** `previous` is the file that the old database was moved to; null without an old database. */
export type RestoreResult = { checks: BackupCheck[]; database: string | null; previous: string | null }

/**
 * Verifies the backup on a copy in the data folder, then puts this copy in place. Without success in every check, nothing changes.
 * @throws Fault `conflict` while another process holds the database; `configuration` when the file there is not ours or cannot be replaced
 */
export async function restoreBackup(path: string, verification: Omit<Verification, 'scratch'>): Promise<RestoreResult> {
  // A link stays, and the file that it leads to is replaced: SQLite keeps its log beside the file.
  const databasePath = existsSync(path) ? realpathSync(path) : path
  const folder = dirname(databasePath)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const old = await takeOver(databasePath)
  refuse(databasePath, old)
  // The lock on the old database keeps a second restore away.
  if (old.state === 'locked') removeLeftovers(databasePath)
  const scratch = `${databasePath}${scratchMark}${crypto.randomUUID().slice(0, 8)}`
  const remove = () => removeScratch(scratch)
  try {
    const { checks } = await verifyBackup({ ...verification, scratch })
    if (checks.some(({ result }) => result === 'failed')) return { checks, database: null, previous: null }
    adoptOwner(scratch, databasePath)
    flush(scratch)
    const { previous, steps } = planReplacement(databasePath, scratch, old, verification.now())
    for (const step of steps) await step()
    return { checks, database: databasePath, previous }
  } finally {
    remove()
  }
}

/** Removes a copy and the files that SQLite keeps beside it. */
export function removeScratch(scratch: string): void {
  for (const end of ['', '-wal', '-shm', '-journal', '.empty', '.empty-wal']) rmSync(scratch + end, { force: true })
}

const scratchMark = '.restoring-'

function removeLeftovers(databasePath: string): void {
  const beginning = `${basename(databasePath)}${scratchMark}`
  for (const name of readdirSync(dirname(databasePath)))
    if (name.startsWith(beginning)) rmSync(join(dirname(databasePath), name), { force: true })
}

function refuse(path: string, old: TakenOver): void {
  const { state } = old
  if (state === 'unreadable') throw new Fault('configuration', old.message)
  if (state === 'held')
    throw new Fault('conflict', `Another process holds the database ${JSON.stringify(path)}; stop the server first`, {
      reason: 'database_held',
    })
  if (state === 'foreign')
    throw new Fault(
      'configuration',
      `The file ${JSON.stringify(path)} is another program's database; set LATCHKEY_DATABASE_URL to another file`,
    )
}

/** The steps that put a copy in place, in order. If the process ends between two of them, a database is in place. */
export function planReplacement(
  path: string,
  scratch: string,
  old: TakenOver,
  now: number,
): { previous: string | null; steps: (() => unknown)[] } {
  const previous = freeName(`${path}.before-restore-${compact(now)}`)
  const install = [() => renameSync(scratch, path), () => flush(dirname(path))]
  // A log can be left of a database that was removed.
  const create = [() => linkNew(scratch, path), () => flush(dirname(path))]
  if (old.state === 'absent') return { previous: null, steps: [() => moveLog(path, previous), ...create] }
  // A second name first: the path is never without a database.
  const keep = () => linkSync(path, previous)
  if (old.state !== 'locked') return { previous, steps: [keep, () => moveLog(path, previous), ...install] }
  return { previous, steps: [old.settle, () => removeLog(path), keep, ...install] }
}

/** @throws Fault `conflict` when a database was created meanwhile: an absent one cannot be locked */
function linkNew(scratch: string, path: string): void {
  try {
    linkSync(scratch, path)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
    const message = `Another process has created the database ${JSON.stringify(path)} meanwhile; stop it, then run this again`
    throw new Fault('conflict', message, { cause })
  }
}

const logEnds = ['-wal', '-journal']

/** Beside the new database, what is left of the old log would be taken for the log of the new one. */
function removeLog(path: string): void {
  for (const end of logEnds) rmSync(path + end, { force: true })
}

/** The log of a damaged database could not be moved into it. */
function moveLog(path: string, previous: string): void {
  for (const end of logEnds) if (existsSync(path + end)) renameSync(path + end, previous + end)
}

function compact(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
}

function freeName(path: string): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? path : `${path}-${number}`
    if (!existsSync(name)) return name
  }
}

/** Root restores the database of a server that runs as another user, who can put a link to any file into the folder. */
function adoptOwner(scratch: string, databasePath: string): void {
  const isRoot = process.getuid?.() === 0
  const { uid, gid } = statSync(databasePath, { throwIfNoEntry: false }) ?? statSync(dirname(databasePath))
  const file = openSync(scratch, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    const own = fstatSync(file)
    // Another user cannot give a file to a group of which they are not a member, and does not need to.
    if (uid !== own.uid || (isRoot && gid !== own.gid)) fchownSync(file, uid, gid)
    fchmodSync(file, 0o600)
  } finally {
    closeSync(file)
  }
}

/** The content of a file, or the names in a folder. */
function flush(path: string): void {
  const opened = openSync(path, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
