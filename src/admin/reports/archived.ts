// Which archives hold rows of the time that a report asks for, so that nobody takes what is left for everything.

import type { ArchiveKind } from '../../../db/schema/archive-kinds.ts'
import { listFilesHolding } from '../../../db/tables/archives.ts'
import type { Needs } from '../operation/context.ts'
import { timeOf } from '../operation/references.ts'
import type { archivedResponse } from '../operation/responses.ts'

export type ArchivedFile = typeof archivedResponse.infer

type ArchivedRange = {
  kind: ArchiveKind
  /** Milliseconds since 1970 UTC: includes `since`, excludes `until`. */
  since?: number | undefined
  until?: number | undefined
  organizationId?: string | undefined
  /** Whether the report has every row of the time that the database still has. */
  isWhole: boolean
}

/** More files would not help a reader. */
const filesMax = 100

/**
 * The newest first; empty without rows. A page of the newest rows asks for no time in particular. Call it after reading the rows:
 * they can be archived meanwhile.
 */
export async function archivedOf(
  { reader }: Needs<'reader'>,
  { isWhole, ...asked }: ArchivedRange,
): Promise<{ archived?: ArchivedFile[] }> {
  if (!isWhole && asked.since === undefined) return {}
  const found = await listFilesHolding(reader, asked, filesMax)
  if (found.length === 0) return {}
  return { archived: found.map(({ file, firstAt, lastAt }) => ({ file, from: timeOf(firstAt), to: timeOf(lastAt) })) }
}

/** Milliseconds around the time of a request in which its row can lie. */
const aroundMilliseconds = 120_000

/** Continues the message that a request was not found; empty unless its row can be in an archive. */
export async function hintAtArchive({ reader }: Needs<'reader'>, requestAt: number): Promise<string> {
  const around = { since: requestAt - aroundMilliseconds, until: requestAt + aroundMilliseconds }
  const files = (await listFilesHolding(reader, around, filesMax)).map(({ file }) => file)
  return files.length === 0 ? '' : `; rows of its time are in ${files.join(' and ')}, see: latchkey archive list`
}
