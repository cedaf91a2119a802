// The names of backups in a folder: the installation and the time. Nothing else in the folder is touched.
import { readdirSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '../fault.ts'
import { describeReadFailure } from '../runtime/file-access.ts'

export type NamedBackup = { path: string; createdAt: number }

/** `latchkey-1a2b3c4d-20261122T163500Z.backup` */
export function backupName(installation: string, createdAt: number): string {
  return `${installation}-${compact(createdAt)}${ending}`
}

const ending = '.backup'

function compact(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
}

/**
 * The backups of an installation in a folder, newest first. Those from the future come last: they were made while the clock was wrong, and
 * must not take the places of the others.
 * @throws Fault `unavailable` when the folder cannot be read
 */
export async function listBackups(folder: string, installation: string, now: number): Promise<NamedBackup[]> {
  const found = (await namesIn(folder))
    .flatMap((name) => {
      const createdAt = timeIn(name, installation)
      return createdAt === undefined ? [] : [{ path: join(folder, name), createdAt }]
    })
    .toSorted((one, other) => other.createdAt - one.createdAt)
  const isFuture = ({ createdAt }: NamedBackup) => createdAt > now
  return [...found.filter((each) => !isFuture(each)), ...found.filter(isFuture)]
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (cause) {
    const isAbsent = (cause as NodeJS.ErrnoException).code === 'ENOENT'
    const why = isAbsent ? 'does not exist; create it' : `cannot be read: ${describeReadFailure(folder, cause)}`
    throw new Fault('unavailable', `The folder ${JSON.stringify(folder)} ${why}`, { cause })
  }
}

function timeIn(name: string, installation: string): number | undefined {
  if (!name.startsWith(`${installation}-`) || !name.endsWith(ending)) return undefined
  const text = name.slice(installation.length + 1, -ending.length)
  const [, date, time] = /^(\d{8})T(\d{6})Z$/.exec(text) ?? []
  if (date === undefined || time === undefined) return undefined
  const parsed = Date.parse(
    `${date.replace(/(....)(..)(..)/, '$1-$2-$3')}T${time.replace(/(..)(..)(..)/, '$1:$2:$3')}Z`,
  )
  return Number.isNaN(parsed) ? undefined : parsed
}

const partial = '.partial-'

/** The name under which a backup is written until it is complete. */
export function partialPath(path: string): string {
  return `${path}${partial}${crypto.randomUUID().slice(0, 8)}`
}

/** Incomplete files of backups whose name begins so, left behind by a killed process. */
export function listPartials(folder: string, beginning: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(beginning) && /\.partial-[0-9a-f]{8}(-wal|-journal)?$/.test(name))
    .map((name) => join(folder, name))
}
