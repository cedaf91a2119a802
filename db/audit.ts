// Reads the exchange audit. Rows are written by write.ts alone and never change.
import { and, desc, eq, gte, lt, max } from 'drizzle-orm'
import type { Orm } from './open.ts'
import { exchangeAudit } from './record-schema.ts'
import { timeOfRequest } from './request-time.ts'
import { listInSlices, type OnProgress, type RowRange, readInSlices } from './slices.ts'

/** A row as it is listed. */
export type ListedAudit = typeof exchangeAudit.$inferSelect

export type AuditFilter = {
  organizationId?: string
  policyId?: string
  keyId?: string
  issuerId?: string
  subject?: string
  outcome?: 'issued' | 'refused'
  reason?: string
  /** Milliseconds since 1970, UTC; from this moment on. */
  since?: number
  /** Rows older than this one, for the next page. */
  beforeId?: number
  limit: number
}

/** There is no index, so a filter that finds little reads row by row: so many at once, and then its caller goes on. */
export const auditRowsReadMax = 200_000

/**
 * Newest first, each as `show` gives it. It ends at `rowsReadMax` rows, found or not; `moreBeforeId` tells that, and goes on there as
 * `beforeId`.
 */
export async function listAudit<Shown>(
  orm: Orm,
  filter: AuditFilter,
  show: (row: ListedAudit) => Shown,
  { rowsReadMax = auditRowsReadMax, onProgress }: { rowsReadMax?: number; onProgress?: OnProgress | undefined } = {},
): Promise<{ rows: Shown[]; moreBeforeId: number | undefined }> {
  const { since, beforeId, limit } = filter
  const until = Math.min(beforeId ?? Number.POSITIVE_INFINITY, (await lastRowId(orm)) + 1)
  const from = Math.max(until - rowsReadMax, 1)
  const read = (slice: RowRange, most: number) =>
    orm
      .select()
      .from(exchangeAudit)
      .where(and(gte(exchangeAudit.id, slice.from), lt(exchangeAudit.id, slice.until), matching(filter)))
      .orderBy(desc(exchangeAudit.id))
      .limit(most)
  const rows = await listInSlices({ rows: { from, until }, limit, read, show }, onProgress)
  const isCut = rows.length < limit && from > 1 && (since === undefined || (await mayBeSince(orm, since, from)))
  return { rows, moreBeforeId: isCut ? from : undefined }
}

function matching({ organizationId, policyId, keyId, issuerId, subject, outcome, reason, since }: AuditFilter) {
  return and(
    organizationId === undefined ? undefined : eq(exchangeAudit.organizationId, organizationId),
    policyId === undefined ? undefined : eq(exchangeAudit.policyId, policyId),
    keyId === undefined ? undefined : eq(exchangeAudit.keyId, keyId),
    issuerId === undefined ? undefined : eq(exchangeAudit.issuerId, issuerId),
    subject === undefined ? undefined : eq(exchangeAudit.subject, subject),
    outcome === undefined ? undefined : eq(exchangeAudit.outcome, outcome),
    reason === undefined ? undefined : eq(exchangeAudit.reason, reason),
    since === undefined ? undefined : gte(exchangeAudit.at, since),
  )
}

/** Whether rows before this one may be as new as that. */
async function mayBeSince(orm: Orm, time: number, id: number): Promise<boolean> {
  const [row] = await orm.select({ at: exchangeAudit.at }).from(exchangeAudit).where(eq(exchangeAudit.id, id))
  return row === undefined || row.at >= time - disorderMilliseconds
}

/** Rows are written in the order of time but for the longest that an exchange can take. */
const disorderMilliseconds = 120_000

/**
 * The row of a request. Its id begins with its time (UUID version 7) and rows are in the order of time, so the place is found by halving,
 * without an index that every exchange would pay for. Where the clock was set back they are not, and the newest rows are searched as well.
 */
export async function findAudit(orm: Orm, requestId: string): Promise<ListedAudit | undefined> {
  const at = timeOfRequest(requestId)
  const from = await firstRowSince(orm, at - disorderMilliseconds)
  const until = (await firstRowSince(orm, at + disorderMilliseconds)) + 1
  const end = (await lastRowId(orm)) + 1
  return (
    (await findWithin(orm, requestId, { from, until })) ??
    findWithin(orm, requestId, { from: Math.max(end - auditRowsReadMax, 1), until: end })
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

/** The number of about the first row at or after a time; one more than the last when there is none. */
async function firstRowSince(orm: Orm, time: number): Promise<number> {
  let low = 1
  let high = (await lastRowId(orm)) + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [row] = await orm.select({ at: exchangeAudit.at }).from(exchangeAudit).where(eq(exchangeAudit.id, middle))
    if (row === undefined || row.at >= time) high = middle
    else low = middle + 1
  }
  return low
}

/** 0 when there is none. */
async function lastRowId(orm: Orm): Promise<number> {
  const [last] = await orm.select({ id: max(exchangeAudit.id) }).from(exchangeAudit)
  return last?.id ?? 0
}
