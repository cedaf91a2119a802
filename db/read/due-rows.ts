// Finds the rows of the audit log and the ledger that are due for an archive.
import { eq, max, min, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import type { ArchiveKind } from '../schema/archive-kinds.ts'
import { archivedTables, type PlannedArchive } from '../tables/archives.ts'
import { type RowRange, readInSlices } from './slices.ts'

export type DueRows = {
  kind: ArchiveKind
  /** Rows older than this time are due, in milliseconds since 1970 UTC. */
  before: number
  now: number
  /** About the most rows of one archive. */
  rowsMax: number
}

/**
 * Rows are in the order of time, apart from long streams, which are stored when they end. A row that is this much younger than `before`
 * ends the search.
 */
const disorderMilliseconds = 60 * 60 * 1_000

const slicesMax = 4_000

type DueSlice = {
  end: number
  rows: number
  firstRowId: number | null
  lastRowId: number | null
  firstAt: number | null
  lastAt: number | null
  organizations: string
}

/**
 * Finds the oldest rows that are due; undefined without any. The newest row of the table is never due, because SQLite would
 * use its number again. Rows from the future, which a wrong clock wrote, are passed over.
 */
export async function planArchive(orm: Orm, due: DueRows): Promise<PlannedArchive | undefined> {
  const { kind, before, now, rowsMax } = due
  const read = async (slice: RowRange) => (await orm.all<DueSlice>(dueInSlice(due, slice)))[0]
  const organizations = new Set<string | null>()
  let planned: PlannedArchive | undefined
  const slices = readInSlices(await olderRowIds(orm, kind), read, () => {}, { rowsMax: Math.min(rowsMax, slicesMax) })
  for await (const slice of slices) {
    const { firstRowId, lastRowId, firstAt, lastAt, rows, end } = slice ?? { firstRowId: null, rows: 0, end: 0 }
    if (firstRowId !== null) {
      for (const id of JSON.parse(slice?.organizations ?? '[]') as (string | null)[]) organizations.add(id)
      planned = {
        ...{ kind, before, organizations: [] },
        firstRowId: planned?.firstRowId ?? firstRowId,
        lastRowId: lastRowId ?? firstRowId,
        firstAt: Math.min(planned?.firstAt ?? Number.POSITIVE_INFINITY, firstAt ?? 0),
        lastAt: Math.max(planned?.lastAt ?? 0, lastAt ?? 0),
        rowCount: (planned?.rowCount ?? 0) + rows,
      }
    }
    const isLast = end > 0 && (await hasYounger(orm, kind, end, { before, now }))
    if (isLast || (planned?.rowCount ?? 0) >= rowsMax) break
  }
  return planned && { ...planned, organizations: [...organizations].toSorted() }
}

/** One row that sums up the due rows of a slice, up to `end`, where the search ends or the slice does. */
function dueInSlice({ kind, before, now }: DueRows, { from, until }: RowRange): SQL {
  const table = archivedTables[kind]
  const isDue = sql`${table.at} < ${before}`
  const of = (value: SQL) => sql`${value} filter (where ${isDue})`
  return sql`
    with bound as (
      select coalesce(min(id), ${until}) as "end" from ${table}
      where id >= ${from} and id < ${until} and ${table.at} between ${before + disorderMilliseconds} and ${now}
    )
    select bound."end" as "end", ${of(sql`count(*)`)} as "rows", ${of(sql`min(id)`)} as "firstRowId",
      ${of(sql`max(id)`)} as "lastRowId", ${of(sql`min(${table.at})`)} as "firstAt", ${of(sql`max(${table.at})`)} as "lastAt",
      ${of(sql`json_group_array(distinct ${table.organizationId})`)} as "organizations"
    from ${table}, bound where id >= ${from} and id < bound."end"`
}

async function hasYounger(
  orm: Orm,
  kind: ArchiveKind,
  id: number,
  { before, now }: { before: number; now: number },
): Promise<boolean> {
  const table = archivedTables[kind]
  const [row] = await orm.select({ at: table.at }).from(table).where(eq(table.id, id))
  return row !== undefined && row.at >= before + disorderMilliseconds && row.at <= now
}

/** The row ids of a table except the newest. Its first rows can be in archives. */
async function olderRowIds(orm: Orm, kind: ArchiveKind): Promise<RowRange> {
  const { id } = archivedTables[kind]
  const [first] = await orm.select({ id: min(id) }).from(archivedTables[kind])
  const [last] = await orm.select({ id: max(id) }).from(archivedTables[kind])
  return { from: first?.id ?? 1, until: last?.id ?? 0 }
}
