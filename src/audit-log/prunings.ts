// The entries that the database no longer has because they were pruned, as the records of the log say.
import type { Orm } from '../../db/file/open.ts'
import { findArchive } from '../../db/tables/archives.ts'
import { listAllLogRecords } from '../../db/tables/log-records.ts'
import { type PrunedRange, parsePruning } from './pruning-record.ts'
import type { Report } from './row-check.ts'

/** Lists the ranges in their order, and reports records whose archive is not the one that they name. */
export async function listPrunings(orm: Orm, report: Report): Promise<PrunedRange[]> {
  const all: PrunedRange[] = []
  for await (const { id, at, body } of listAllLogRecords(orm, 'pruning')) {
    const place = { source: 'records', ref: id, at } as const
    try {
      const { file, sha256, ranges } = parsePruning(body)
      const archive = await findArchive(orm, file)
      if (archive?.state !== 'finished' || archive.sha256 !== sha256)
        report({
          problem: `the rows of pruned entries are in ${file}, which is not an archive of this database`,
          ...place,
        })
      all.push(...ranges)
    } catch {
      report({ problem: 'a record of a pruning is damaged', ...place })
    }
  }
  return all.toSorted((one, other) => one.first - other.first)
}
