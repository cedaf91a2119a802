// Finds an exchange in the archives of its time, with what opens its leaf in the audit log.
import { join } from 'node:path'
import type { Database, Orm } from '../../db/file/open.ts'
import { listFilesHolding } from '../../db/tables/archives.ts'
import { findArchivedLine } from './archive-file.ts'
import { readSaltedLine, type SaltedLine } from './salted-lines.ts'

/** Milliseconds around the time of a request in which its row can lie. */
const aroundMilliseconds = 120_000

/** `path` is that of the archive. */
export type FoundLine = { path: string; line: SaltedLine }
type Place = { reader: Orm; database: Pick<Database, 'path'> }

/**
 * Returns undefined if no archive of that time has it, `without_leaf` for a line that the log does not cover.
 * @throws Fault `unavailable` for a file that is missing or damaged
 */
export async function findArchivedExchange(
  { reader, database }: Place,
  { requestId, at, organizationId }: { requestId: string; at: number; organizationId?: string | undefined },
): Promise<FoundLine | 'without_leaf' | undefined> {
  const around = {
    kind: 'exchanges',
    organizationId,
    since: at - aroundMilliseconds,
    until: at + aroundMilliseconds,
  } as const
  for (const { folder, file } of await listFilesHolding(reader, around)) {
    const path = join(folder, file)
    const text = await findArchivedLine(path, database.path, `"request_id":"${requestId}"`)
    const line = text === undefined ? undefined : readSaltedLine(text)
    if (text !== undefined) return line === undefined ? 'without_leaf' : { path, line }
  }
  return undefined
}
