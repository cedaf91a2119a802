// The length of the path of the local socket, which the operating system limits.
import { Fault } from '../fault.ts'
import { socketPathBytesMax } from '../limits.ts'

/** @throws Fault `configuration` when a socket cannot have this path */
export function checkSocketPath(path: string): void {
  const bytes = Buffer.byteLength(path)
  if (bytes <= socketPathBytesMax) return
  throw new Fault(
    'configuration',
    `The data folder's path is too long for the local socket ${JSON.stringify(path)} (${bytes} bytes, at most ${socketPathBytesMax}); choose a shorter one with LATCHKEY_DATABASE_URL`,
  )
}
