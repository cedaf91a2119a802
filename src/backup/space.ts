// Whether a disk has room for a file.
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Fault } from '../fault.ts'
import { diskReserveBytes } from '../limits.ts'

/** @throws Fault `unavailable` when the disk of the folder would be full afterwards */
export async function checkSpace(folder: string, bytes: number, read = freeBytes): Promise<void> {
  const [free, needed] = [await read(folder), bytes + diskReserveBytes]
  if (free >= needed) return
  throw new Fault(
    'unavailable',
    `The disk of ${JSON.stringify(folder)} has ${megabytes(free)} free and needs ${megabytes(needed)}; free some space or use another disk`,
  )
}

/** Bytes that this user can still write. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`
}

/** Below this, a commit of a few pages does not show that the next one fits. */
const shortOfSpaceBytes = 64 * 1024 * 1024

/** Whether the disk of a file is nearly full, or does not say. */
export function isShortOfSpace(path: string): Promise<boolean> {
  return freeBytes(dirname(path)).then(
    (bytes) => bytes < shortOfSpaceBytes,
    () => true,
  )
}
