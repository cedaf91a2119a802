// Writes the copy that a database server makes of its database to a file, and proves that it has what was acknowledged before.
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Database } from '../../db/file/open.ts'
import { firstPosition } from '../../db/remote/shared-database.ts'

/**
 * Resolves when the copy is written, to the number of a commit that it must have: a server that has lost touch with the others can copy an
 * older state.
 * @throws an error that is `isUnreachable`, or the reason of the signal
 */
export async function fetchCopy(
  { shared }: Pick<Database, 'shared'>,
  { partial, signal }: { partial: string; signal: AbortSignal },
): Promise<number> {
  if (shared?.readCopy === undefined) throw new TypeError('This database server makes no copies')
  const { commit } = await shared.refresh({ ...firstPosition, usageId: Number.MAX_SAFE_INTEGER })
  const bytes = await shared.readCopy(signal)
  const file = createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true })
  await pipeline(Readable.from(bytes), file, { signal })
  return commit
}
