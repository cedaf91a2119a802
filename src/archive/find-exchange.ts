// Finds an exchange in the archives of its time, with what opens its leaf in the audit log.
import { join } from 'node:path'
import type { Database, Orm } from '../../db/file/open.ts'
import { listFilesHolding } from '../../db/tables/archives.ts'
import { findArchivedLine } from './archive-file.ts'
import { readSaltedLine } from './salted-lines.ts'

/** Milliseconds around the time of a request in which its row can lie. */
const aroundMilliseconds = 120_000

type Place = { reader: Orm; database: Pick<Database, 'path'> }

/**
 * Returns undefined if no archive of that time has it, `without_salt` for a line that the log does not cover.
 * @throws Fault `unavailable` for a file that is missing or damaged
 */
export async function findArchivedExchange(
  { reader, database }: Place,
  { requestId, at }: { requestId: string; at: number },
): Promise<{ leaf: number; salt: Buffer; line: string } | 'without_salt' | undefined> {
  const around = { kind: 'exchanges', since: at - aroundMilliseconds, until: at + aroundMilliseconds } as const
  for (const { folder, file } of await listFilesHolding(reader, around)) {
    const text = await findArchivedLine(join(folder, file), database.path, `"request_id":"${requestId}"`)
    if (text !== undefined) return readSaltedLine(text) ?? 'without_salt'
  }
  return undefined
}
