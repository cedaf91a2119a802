// Whether a disk has room for a file.
import { Fault } from '../fault.ts'
import { diskReserveBytes } from '../limits.ts'
import { readSpace } from '../runtime/disk-space.ts'

/** @throws Fault `unavailable` when the disk of the folder would be full afterward */
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
  return (await readSpace(folder)).free
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`
}
