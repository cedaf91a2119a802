// What leaves the transparent audit log: entries of whole tiles whose rows and salts are in an archive. The triggers of
// migrations/0045_pruning.sql refuse every other deletion.
import { and, asc, eq, isNull, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { logCheckpoints, logEntries, logPruned } from '../schema/log-schema.ts'
import { type Archive, archives } from '../schema/record-schema.ts'
import type { Statement } from '../write/rows.ts'

/** Leaves from `first` to below `end`: whole tiles. */
export type LeafRange = { first: number; end: number }

/** Archives of exchanges whose entries were not looked at, oldest first. */
export function listUnprunedArchives(orm: Orm): Promise<Archive[]> {
  const { kind, state, prunedAt, id } = archives
  const isWaiting = and(eq(kind, 'exchanges'), eq(state, 'finished'), isNull(prunedAt))
  return orm.select().from(archives).where(isWaiting).orderBy(asc(id))
}

/** The ranges of an archive, or of all of them, in their order. Their entries are gone, or about to go. */
export function listPruned(orm: Orm, archiveId?: number): Promise<LeafRange[]> {
  const { firstLeaf, endLeaf } = logPruned
  return orm
    .select({ first: firstLeaf, end: endLeaf })
    .from(logPruned)
    .where(archiveId === undefined ? undefined : eq(logPruned.archiveId, archiveId))
    .orderBy(asc(firstLeaf))
}

/** The sizes at which later proofs can begin: those of the newest checkpoint of each log, and of the newest that a witness signed. */
export async function listKeptSizes(orm: Orm): Promise<number[]> {
  const rows = await orm.all<{ size: number | null; cosigned: number | null }>(sql`
    select max(size) as size, max(case when cosigned_at is not null then size end) as cosigned
    from ${logCheckpoints} group by epoch`)
  return rows.flatMap(({ size, cosigned }) => [size, cosigned]).filter((each) => each !== null)
}

/** Allows the entries of these ranges to go. The commit fails with an error that is `isOvertaken` if another node has done so. */
export function insertPruned(orm: Orm, archiveId: number, ranges: readonly LeafRange[]): Statement {
  const rows = ranges.map(({ first, end }) => ({ firstLeaf: first, endLeaf: end, archiveId }))
  return orm.insert(logPruned).values(rows)
}

/** Deletes the entries of a part of a range. */
export function removeEntries(orm: Orm, { first, end }: LeafRange): Statement {
  return orm.delete(logEntries).where(sql`leaf >= ${first} and leaf < ${end}`)
}

export function markPruned(orm: Orm, { id }: Archive, prunedAt: number): Statement {
  return orm.update(archives).set({ prunedAt }).where(eq(archives.id, id))
}

/** The first leaf of a range that still has its entry; undefined without one. */
export async function firstEntryIn(orm: Orm, { first, end }: LeafRange): Promise<number | undefined> {
  const [found] = await orm.all<{ leaf: number | null }>(
    sql`select min(leaf) as leaf from ${logEntries} where leaf >= ${first} and leaf < ${end}`,
  )
  return found?.leaf ?? undefined
}
