// Reads the usage ledger: single requests, and the cost of each key. Only write.ts adds rows,
// archives.ts removes old ones, and rows never change.
import { and, desc, eq, getTableColumns, gt, gte, lt, or, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../file/open.ts'
import { listInSlices, type OnProgress, type RequestAt, type RowRange, readInSlices } from '../read/slices.ts'
import { dayTotals, summedUsageId, usage } from '../schema/record-schema.ts'
import { apiKeys } from '../schema/schema.ts'

export type UsageFilter = {
  organizationId?: string
  keyId?: string
  policyId?: string
  issuerId?: string
  subject?: string
  attribution?: string | undefined
  /** Milliseconds since 1970 UTC: includes `since`, excludes `until`. */
  since?: number
  until?: number
  beforeId?: number
  /** Returns only rows newer than this id. */
  afterId?: number
  model?: string
  upstream?: string
  status?: number
  result?: (typeof requestResults)[number]
  limit: number
}

/** How a request ended. Every request is one of them. */
export const requestResults = ['succeeded', 'failed', 'client_left'] as const

/** Builds the conditions of a filter on row values. The range of row ids is separate. */
export function matching(filter: UsageFilter) {
  const { organizationId, keyId, policyId, issuerId, subject, attribution, since, until } = filter
  const { model, upstream, status, result } = filter
  return and(
    organizationId === undefined ? undefined : eq(usage.organizationId, organizationId),
    keyId === undefined ? undefined : eq(usage.keyId, keyId),
    policyId === undefined ? undefined : eq(usage.policyId, policyId),
    issuerId === undefined ? undefined : eq(usage.issuerId, issuerId),
    subject === undefined ? undefined : eq(usage.subject, subject),
    attribution === undefined ? undefined : eq(usage.attribution, attribution),
    since === undefined ? undefined : gte(usage.at, since),
    until === undefined ? undefined : lt(usage.at, until),
    model === undefined ? undefined : or(eq(usage.model, model), eq(usage.modelAsked, model)),
    upstream === undefined ? undefined : eq(usage.upstream, upstream),
    status === undefined ? undefined : eq(usage.status, status),
    result === undefined ? undefined : hasEnded(result),
  )
}

function hasEnded(result: (typeof requestResults)[number]) {
  if (result === 'client_left') return eq(usage.clientLeft, true)
  const hasSucceeded = and(lt(usage.status, 400), eq(usage.completed, true))
  return and(eq(usage.clientLeft, false), result === 'succeeded' ? hasSucceeded : sql`not (${hasSucceeded})`)
}

/** Caps a column at the largest number that libSQL can read: earlier versions stored costs beyond the safe integers. */
export function readable<Column extends SQLiteColumn>(column: Column) {
  return sql<Column['_']['data']>`min(${column}, ${sql.raw(String(Number.MAX_SAFE_INTEGER))})`
}

/** The cost of a key by day, as it is packed: its id, and a list of days with their cost in nanodollars. */
export type UnpackedDays = [keyId: string, days: [day: number, costNanodollars: number][]]

const keysAtOnce = 500

/** Called with the last key of each slice, null for the rest, and the newest usage row that its costs include: later ones are only in the ledger. */
export type OnSpentSlice = (lastKeyId: string | null, usageId: number) => void

/** Lists the cost of each key that is not deleted by day, packed (packed-rows.ts), many keys in one text. */
export async function listSpentDays(orm: Orm, onSlice: OnSpentSlice = () => {}): Promise<string[]> {
  const { keyId, day } = dayTotals
  const days = sql`json_group_array(json_array(${day}, ${readable(dayTotals.costNanodollars)}))`
  const isDeleted = sql`exists (select 1 from ${apiKeys} where ${apiKeys.id} = ${keyId} and ${apiKeys.deletedAt} is not null)`
  const spent: string[] = []
  for (let last: string | null = ''; last !== null; ) {
    const [slice]: { keys: string | null; last: string | null; usage: number }[] = await orm.all(sql`
      select group_concat(packed, char(10)) as keys, max(id) as last, ${sql.raw(summedUsageId)} as usage from (
        select ${keyId} as id, json_array(${keyId}, ${days}) as packed from ${dayTotals}
        where ${keyId} > ${last} group by ${keyId} having not ${isDeleted} order by ${keyId} limit ${keysAtOnce}
      )`)
    if (slice?.keys != null) spent.push(slice.keys)
    last = slice?.last ?? null
    onSlice(last, slice?.usage ?? 0)
  }
  return spent
}

/** Lists what was spent after a usage row, oldest first, at most `limit` rows. */
export function listSpentSince(
  orm: Orm,
  usageId: number,
  limit: number,
): Promise<{ id: number; keyId: string; at: number; cost: number | null }[]> {
  const { id, keyId, at } = usage
  const cost = readable(usage.costNanodollars)
  return orm.select({ id, keyId, at, cost }).from(usage).where(gt(id, usageId)).orderBy(id).limit(limit)
}

/** A usage row as listed. */
export type ListedUsage = typeof usage.$inferSelect
const readableUsage = { ...getTableColumns(usage), costNanodollars: readable(usage.costNanodollars) }

/**
 * Lists single requests newest first, each mapped by `show`. Reads at most `rowsReadMax` rows. If it stops there, `moreBeforeId` is the
 * `beforeId` that continues the listing.
 */
export async function listUsage<Shown>(
  orm: Orm,
  filter: UsageFilter,
  show: (row: ListedUsage) => Shown,
  { rowsReadMax = usageRowsReadMax, onProgress }: { rowsReadMax?: number; onProgress?: OnProgress | undefined } = {},
): Promise<{ rows: Shown[]; moreBeforeId: number | undefined }> {
  const range = await rangeOf(orm, filter)
  const from = Math.max(range.from, range.until - rowsReadMax)
  const read = ({ from, until }: RowRange, limit: number) =>
    orm
      .select(readableUsage)
      .from(usage)
      .where(and(gte(usage.id, from), lt(usage.id, until), matching(filter)))
      .orderBy(desc(usage.id))
      .limit(limit)
  const rows = await listInSlices({ rows: { ...range, from }, limit: filter.limit, read, show }, onProgress)
  return { rows, moreBeforeId: rows.length < filter.limit && from > range.from ? from : undefined }
}

/** More than the number of requests that end while one request runs. */
const usageRowsReadMax = 200_000

/**
 * Finds the usage row of a request. The search starts at its time and reads at most `rowsReadMax` rows, more than can
 * end before this one.
 */
export async function findUsage(
  orm: Orm,
  { requestId, at }: RequestAt,
  { rowsReadMax = usageRowsReadMax }: { rowsReadMax?: number } = {},
): Promise<ListedUsage | undefined> {
  const { from, until } = await rangeOf(orm, { since: at, limit: 1 })
  const read = (slice: RowRange) =>
    orm
      .select(readableUsage)
      .from(usage)
      .where(and(gte(usage.id, slice.from), lt(usage.id, slice.until), eq(usage.requestId, requestId)))
  for await (const [found] of readInSlices({ from, until: Math.min(until, from + rowsReadMax) }, read))
    if (found !== undefined) return found
  return undefined
}

/** Returns the range of row ids that a filter can match, up to the last row now. */
export async function rangeOf(orm: Orm, { since, beforeId, afterId = 0 }: UsageFilter): Promise<RowRange> {
  const { first, end } = await rowIdsOf(orm)
  const rows = { from: Math.max(first, afterId + 1), until: Math.min(beforeId ?? Number.POSITIVE_INFINITY, end) }
  return since === undefined ? rows : { ...rows, from: await firstRowSince(orm, since, rows) }
}

/** Returns the first id and the one after the last. Rows before the first are in archives. */
export async function rowIdsOf(orm: Orm): Promise<{ first: number; end: number }> {
  // As two subqueries: a select of both would scan the table.
  const [ids] = await orm.all<{ first: number | null; last: number | null }>(
    sql`select (select min(id) from usage) as first, (select max(id) from usage) as last`,
  )
  return { first: ids?.first ?? 1, end: (ids?.last ?? 0) + 1 }
}

/** Rows are in the order in which requests end, except for short delays. This also covers brief clock errors. */
const disorderMilliseconds = 120_000
/**
 * Rows sampled to find where a time begins. If the clock was changed, the search misses at most the rows between two
 * samples.
 */
const samples = 1_000

/**
 * Returns a row id at or shortly before the first row that can have that time. The stored time is the start of the
 * request, so its end is later.
 */
async function firstRowSince(orm: Orm, since: number, { from: first, until }: RowRange): Promise<number> {
  const step = Math.max(Math.ceil((until - first) / samples), 1)
  const read = ({ from, until: end }: RowRange) => {
    const ids = Array.from({ length: end - from }, (_, index) => first + (from + index) * step)
    return orm.all<{ id: number; ended: number }>(sql`
      select id, at + duration_milliseconds as ended from usage
      where id in (select value from json_each(${JSON.stringify(ids)})) order by id`)
  }
  let before = first
  for await (const rows of readInSlices({ from: 0, until: Math.ceil((until - first) / step) }, read))
    for (const { id, ended } of rows) {
      if (ended >= since - disorderMilliseconds) return before
      before = id
    }
  return before
}
