// Old rows of the audit log and the ledger on their way into files: the text of the rows, and their removal. The table `archives` remembers
// each file. Only `removeArchivedRows` deletes rows of those two tables.
import { and, asc, desc, eq, getTableColumns, getTableName, gte, lt, ne, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type OnProgress, type RowRange, readInSlices } from '../read/slices.ts'
import type { ArchiveKind } from '../schema/archive-kinds.ts'
import { type Archive, archives, exchangeAudit, usage } from '../schema/record-schema.ts'
import type { Statement } from '../write/rows.ts'
import { addUsageSums } from '../write/usage-sums.ts'

/** The tables whose rows archives hold. */
export const archivedTables = { exchanges: exchangeAudit, usage } as const

/** The table whose rows a kind of archive holds. */
export function tableOf(kind: ArchiveKind): string {
  return getTableName(archivedTables[kind])
}

/** What a new archive will hold. */
export type PlannedArchive = Pick<
  Archive,
  'kind' | 'before' | 'firstRowId' | 'lastRowId' | 'firstAt' | 'lastAt' | 'rowCount' | 'organizations'
>

/** The rows of an archive. */
export type ArchivedRows = Pick<Archive, 'kind' | 'firstRowId' | 'lastRowId' | 'before'>

const rangeOf = ({ firstRowId, lastRowId }: ArchivedRows): RowRange => ({ from: firstRowId, until: lastRowId + 1 })

function isIn({ kind, before }: ArchivedRows, slice: RowRange) {
  const table = archivedTables[kind]
  return and(gte(table.id, slice.from), lt(table.id, slice.until), lt(table.at, before))
}

/** About a megabyte of text. */
const linesMax = 1_000

/** Yields the rows that are still in the table as lines of JSON in the order of their ids, many lines at a time. */
export async function* archivedLines(
  orm: Orm,
  rows: ArchivedRows,
  onProgress?: OnProgress,
): AsyncGenerator<{ text: string; lines: number }> {
  const table = archivedTables[rows.kind]
  const members = Object.values(getTableColumns(table)).map(({ name }) => sql.raw(`'${name}', ${name}`))
  const read = async (slice: RowRange) => {
    const [found] = await orm.all<{ lines: number; text: string | null }>(sql`
      select count(*) as lines, group_concat(line, char(10)) as "text" from (
        select json_object(${sql.join(members, sql`, `)}) as line from ${table} where ${isIn(rows, slice)} order by id
      )`)
    return found
  }
  for await (const found of readInSlices(rangeOf(rows), read, onProgress, { rowsMax: linesMax }))
    if (found !== undefined && found.lines > 0) yield { text: `${found.text}\n`, lines: found.lines }
}

/**
 * The one way to delete rows of the audit log and the ledger. The triggers let go of rows while their archive is 'removing', which it is
 * only within this transaction, and which only a verified archive can be, and only rows that the totals include. Run these statements in one
 * commit.
 */
export function removeArchivedRows(orm: Orm, archive: Archive, slice: RowRange): Statement[] {
  const become = (state: Archive['state'], from: Archive['state']) =>
    orm
      .update(archives)
      .set({ state })
      .where(and(eq(archives.id, archive.id), eq(archives.state, from)))
  return [
    ...(archive.kind === 'usage' ? addUsageSums : []),
    become('removing', 'verified'),
    orm.delete(archivedTables[archive.kind]).where(isIn(archive, slice)),
    become('verified', 'removing'),
  ]
}

export function insertArchive(
  orm: Orm,
  planned: PlannedArchive,
  place: Pick<Archive, 'folder' | 'file' | 'node' | 'createdAt'>,
): Statement {
  return orm.insert(archives).values({ ...planned, ...place, state: 'writing' })
}

/** An archive that is not verified yet can be written elsewhere. */
export function moveUnverified(
  orm: Orm,
  { id }: Archive,
  { folder, file, node }: Pick<Archive, 'folder' | 'file' | 'node'>,
): Statement {
  return orm
    .update(archives)
    .set({ folder, file, node })
    .where(and(eq(archives.id, id), eq(archives.state, 'writing')))
}

export function markVerified(
  orm: Orm,
  { id }: Archive,
  { bytes, sha256 }: { bytes: number; sha256: string },
): Statement {
  return orm
    .update(archives)
    .set({ state: 'verified', bytes, sha256 })
    .where(and(eq(archives.id, id), eq(archives.state, 'writing')))
}

export function markFinished(orm: Orm, { id }: Archive, finishedAt: number): Statement {
  return orm
    .update(archives)
    .set({ state: 'finished', finishedAt })
    .where(and(eq(archives.id, id), eq(archives.state, 'verified')))
}

/** The archive of a file. */
export async function findArchive(orm: Orm, file: string): Promise<Archive | undefined> {
  const [found] = await orm.select().from(archives).where(eq(archives.file, file))
  return found
}

/** The archives that a run has begun and not finished, oldest first. */
export function listUnfinishedArchives(orm: Orm, kind: ArchiveKind): Promise<Archive[]> {
  return orm
    .select()
    .from(archives)
    .where(and(eq(archives.kind, kind), ne(archives.state, 'finished')))
    .orderBy(asc(archives.id))
}

export type ArchiveFilter = { kind?: ArchiveKind | undefined; beforeId?: number | undefined; limit: number }

/** Lists archives, newest first. */
export function listArchives(orm: Orm, { kind, beforeId, limit }: ArchiveFilter): Promise<Archive[]> {
  const isOfKind = kind === undefined ? undefined : eq(archives.kind, kind)
  const isBefore = beforeId === undefined ? undefined : lt(archives.id, beforeId)
  return orm.select().from(archives).where(and(isOfKind, isBefore)).orderBy(desc(archives.id)).limit(limit)
}

export type ArchivedTime = {
  kind?: ArchiveKind | undefined
  /** Milliseconds since 1970 UTC: includes `since`, excludes `until`. */
  since?: number | undefined
  until?: number | undefined
  organizationId?: string | undefined
}

/** Files that hold rows of a time; the rows may have left the table. */
export type HoldingFile = Pick<Archive, 'file' | 'folder' | 'node' | 'firstAt' | 'lastAt'>

/** Lists the verified files with rows of a time, newest first. A limit of -1 is no limit. */
export function listFilesHolding(
  orm: Orm,
  { kind, since, until, organizationId }: ArchivedTime,
  limit = -1,
): Promise<HoldingFile[]> {
  const { file, folder, node, firstAt, lastAt, state, organizations } = archives
  const isTheirs = sql`exists (select 1 from json_each(${organizations}) where value = ${organizationId ?? null})`
  return orm
    .select({ file, folder, node, firstAt, lastAt })
    .from(archives)
    .where(
      and(
        kind === undefined ? undefined : eq(archives.kind, kind),
        ne(state, 'writing'),
        since === undefined ? undefined : gte(lastAt, since),
        until === undefined ? undefined : lt(firstAt, until),
        organizationId === undefined ? undefined : isTheirs,
      ),
    )
    .orderBy(desc(archives.id))
    .limit(limit)
}
