// Which rows of a table are in verified archives, and so can have left it.
import type { Orm } from '../../db/file/open.ts'
import type { ArchiveKind } from '../../db/schema/archive-kinds.ts'
import { listArchives } from '../../db/tables/archives.ts'

/** Returns a function that reports whether an archive can have rows with the ids from `first` to `last`. */
export async function readArchived(orm: Orm, kind: ArchiveKind): Promise<(first: number, last: number) => boolean> {
  const archives = await listArchives(orm, { kind, limit: -1 })
  const verified = archives.filter(({ state }) => state !== 'writing')
  return (first, last) => verified.some(({ firstRowId, lastRowId }) => firstRowId <= last && first <= lastRowId)
}
