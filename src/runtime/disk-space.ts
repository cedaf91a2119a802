// The room on the disk of a folder.
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Bytes: `free` is what this user can still write. @throws where the system does not say */
export async function readSpace(folder: string): Promise<{ free: number; total: number }> {
  const { bavail, blocks, bsize } = await statfs(folder)
  return { free: bavail * bsize, total: blocks * bsize }
}

/** Below this, a commit of a few pages does not show that the next one fits. */
const shortOfSpaceBytes = 64 * 1024 * 1024

/** Whether the disk of a file is nearly full, or does not say. */
export function isShortOfSpace(path: string): Promise<boolean> {
  return readSpace(dirname(path)).then(
    ({ free }) => free < shortOfSpaceBytes,
    () => true,
  )
}
