// Reads the exchange audit. Only write.ts adds rows, archives.ts removes old ones, and rows never change.
import { and, desc, eq, gte, inArray, isNotNull, lt, max, min, or, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { listInSlices, type OnProgress, type RequestAt, type RowRange, readInSlices } from '../read/slices.ts'
import { exchangeAudit } from '../schema/record-schema.ts'

/** An audit row as listed. */
export type ListedAudit = typeof exchangeAudit.$inferSelect

export type AuditFilter = {
  organizationId?: string
  policyId?: string
  keyId?: string
  issuerId?: string
  subject?: string
  outcome?: 'issued' | 'refused'
  reason?: string
  grant?: ListedAudit['grant']
  /** Milliseconds since 1970 UTC: includes `since`, excludes `until`. */
  since?: number
  until?: number
  /** Returns only rows older than this id; used for the next page. */
  beforeId?: number
  /** Returns only rows newer than this id. */
  afterId?: number
  limit: number
}

/** The most rows that one listing reads. The table has no index on these filters, so a rare match needs a full scan. */
export const auditRowsReadMax = 200_000

/**
 * Lists rows newest first, each mapped by `show`. Reads at most `rowsReadMax` rows. If it stops there, `moreBeforeId`
 * is the `beforeId` that continues the listing.
 */
export async function listAudit<Shown>(
  orm: Orm,
  filter: AuditFilter,
  show: (row: ListedAudit) => Shown,
  { rowsReadMax = auditRowsReadMax, onProgress }: { rowsReadMax?: number; onProgress?: OnProgress | undefined } = {},
): Promise<{ rows: Shown[]; moreBeforeId: number | undefined }> {
  const { since, beforeId, afterId = 0, limit } = filter
  // Rows after the end would use up what may be read.
  const end =
    filter.until === undefined
      ? (await lastRowId(orm)) + 1
      : (await firstRowSince(orm, filter.until + disorderMilliseconds)) + 1
  const until = Math.min(beforeId ?? Number.POSITIVE_INFINITY, end)
  const first = Math.max(await firstRowId(orm), afterId + 1)
  const from = Math.max(until - rowsReadMax, first)
  const read = (slice: RowRange, most: number) =>
    orm
      .select()
      .from(exchangeAudit)
      .where(and(gte(exchangeAudit.id, slice.from), lt(exchangeAudit.id, slice.until), matching(filter)))
      .orderBy(desc(exchangeAudit.id))
      .limit(most)
  const rows = await listInSlices({ rows: { from, until }, limit, read, show }, onProgress)
  const isCut = rows.length < limit && from > first && (since === undefined || (await mayBeSince(orm, since, from)))
  return { rows, moreBeforeId: isCut ? from : undefined }
}

function matching(filter: AuditFilter) {
  const { organizationId, policyId, keyId, issuerId, subject, outcome, reason, grant, since, until } = filter
  return and(
    organizationId === undefined ? undefined : eq(exchangeAudit.organizationId, organizationId),
    policyId === undefined ? undefined : eq(exchangeAudit.policyId, policyId),
    keyId === undefined ? undefined : eq(exchangeAudit.keyId, keyId),
    issuerId === undefined ? undefined : eq(exchangeAudit.issuerId, issuerId),
    subject === undefined ? undefined : eq(exchangeAudit.subject, subject),
    outcome === undefined ? undefined : eq(exchangeAudit.outcome, outcome),
    reason === undefined ? undefined : eq(exchangeAudit.reason, reason),
    grant === undefined || grant === null ? undefined : eq(exchangeAudit.grant, grant),
    since === undefined ? undefined : gte(exchangeAudit.at, since),
    until === undefined ? undefined : lt(exchangeAudit.at, until),
  )
}

/** Reports whether rows before this id can be as recent as `time`. */
async function mayBeSince(orm: Orm, time: number, id: number): Promise<boolean> {
  const row = await rowAtOrAfter(orm, id)
  return row === undefined || row.at >= time - disorderMilliseconds
}

/** Rows are in time order, except that two rows can be swapped by up to the longest duration of an exchange. */
const disorderMilliseconds = 120_000

/**
 * Finds the audit row of a request that began at a time. Rows are in time order, so a binary search finds the row
 * without an index that would slow every exchange. A clock that was set back breaks that order, so the newest rows are
 * searched as well.
 */
export async function findAudit(orm: Orm, { requestId, at }: RequestAt): Promise<ListedAudit | undefined> {
  const from = await firstRowSince(orm, at - disorderMilliseconds)
  const until = (await firstRowSince(orm, at + disorderMilliseconds)) + 1
  const end = (await lastRowId(orm)) + 1
  return (
    (await findWithin(orm, requestId, { from, until })) ??
    findWithin(orm, requestId, { from: Math.max(end - auditRowsReadMax, await firstRowId(orm)), until: end })
  )
}

async function findWithin(orm: Orm, requestId: string, rows: RowRange): Promise<ListedAudit | undefined> {
  const read = ({ from, until }: RowRange) =>
    orm
      .select()
      .from(exchangeAudit)
      .where(and(gte(exchangeAudit.id, from), lt(exchangeAudit.id, until), eq(exchangeAudit.requestId, requestId)))
  for await (const [found] of readInSlices(rows, read)) if (found !== undefined) return found
  return undefined
}

/** An exchange as `readVerified` yields it. `recordedClaims` is parsed. */
export type VerifiedExchange = Pick<ListedAudit, 'at' | 'requestId' | 'reason' | 'policyId' | 'subjectTokenId'> & {
  subject: string
  recordedClaims: unknown
}

export type VerifiedFilter = {
  organizationId: string
  issuerId: string
  /** In milliseconds since 1970 UTC. */
  since: number
  /** The reasons for which a verified token is refused. */
  reasons: readonly string[]
}

/** The claims of a row can take 4 KB. */
const verifiedRowsMax = 1_000

/** Yields the exchanges of verified tokens of an issuer, newest first, as texts for `readVerifiedExchange`. */
export async function* readVerified(
  orm: Orm,
  { organizationId, issuerId, since, reasons }: VerifiedFilter,
  onProgress?: OnProgress,
): AsyncGenerator<string[]> {
  const { id, at, recordedClaims, outcome, reason, ...row } = exchangeAudit
  const rows = { from: await firstRowSince(orm, since - disorderMilliseconds), until: (await lastRowId(orm)) + 1 }
  const fields = [at, row.requestId, reason, row.policyId, row.subjectTokenId, row.subject]
  // The claims are JSON already, and quoting them as a text would cost more than everything else here.
  const packed = sql`rtrim(json_array(${sql.join(fields, sql`, `)}), ']') || ',' || coalesce(${recordedClaims}, 'null') || ']'`
  const isVerified = or(eq(outcome, 'issued'), isNotNull(recordedClaims), inArray(reason, [...reasons]))
  // Rows whose subject was erased say nothing any more.
  const isOfSubject = isNotNull(row.subject)
  const isTheirs = and(eq(row.organizationId, organizationId), eq(row.issuerId, issuerId), gte(at, since), isOfSubject)
  const read = async (slice: RowRange) => {
    const isInSlice = and(gte(id, slice.from), lt(id, slice.until))
    const [found] = await orm.all<{ rows: string | null }>(sql`
      select group_concat(packed, char(10)) as "rows" from (
        select ${packed} as packed from ${exchangeAudit} where ${and(isInSlice, isTheirs, isVerified)} order by id desc
      )`)
    return found?.rows ?? null
  }
  for await (const text of readInSlices(rows, read, onProgress, { newestFirst: true, rowsMax: verifiedRowsMax }))
    if (text !== null) yield text.split('\n')
}

export function readVerifiedExchange(text: string): VerifiedExchange {
  const [at, requestId, reason, policyId, subjectTokenId, subject, recordedClaims] = JSON.parse(text) as [
    number,
    ...[string, string | null, string | null, string | null, string, unknown],
  ]
  return { at, requestId, reason, policyId, subjectTokenId, subject, recordedClaims }
}

/**
 * Returns the approximate id of the first row at or after a time, or the last id plus one if there are no matching rows.
 */
export async function firstRowSince(orm: Orm, time: number): Promise<number> {
  let low = await firstRowId(orm)
  let high = (await lastRowId(orm)) + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const row = await rowAtOrAfter(orm, middle)
    if (row === undefined || row.at >= time) high = middle
    else low = row.id + 1
  }
  return Math.min(low, high)
}

/** Archived rows leave gaps between ids. */
export async function rowAtOrAfter(orm: Orm, id: number): Promise<{ id: number; at: number } | undefined> {
  const { id: rowId, at } = exchangeAudit
  const [row] = await orm.select({ id: rowId, at }).from(exchangeAudit).where(gte(rowId, id)).orderBy(rowId).limit(1)
  return row
}

/** Returns the first id and the one after the last. Rows before the first are in archives. */
export async function rangeOfAudit(orm: Orm): Promise<{ first: number; end: number }> {
  return { first: await firstRowId(orm), end: (await lastRowId(orm)) + 1 }
}

/** Returns 1 for an empty table. Earlier rows are in archives. */
async function firstRowId(orm: Orm): Promise<number> {
  const [first] = await orm.select({ id: min(exchangeAudit.id) }).from(exchangeAudit)
  return first?.id ?? 1
}

/** Returns 0 for an empty table. */
async function lastRowId(orm: Orm): Promise<number> {
  const [last] = await orm.select({ id: max(exchangeAudit.id) }).from(exchangeAudit)
  return last?.id ?? 0
}
