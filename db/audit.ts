// Reads the exchange audit. Rows are written by write.ts alone and never change.
import { and, desc, eq, gte, lt, lte, max } from 'drizzle-orm'
import type { Orm } from './open.ts'
import { exchangeAudit, issuers, policies } from './schema.ts'

export type AuditFilter = {
  organizationId?: string
  outcome?: 'issued' | 'refused'
  /** Milliseconds since 1970, UTC; from this moment on. */
  since?: number
  /** Rows older than this one, for the next page. */
  beforeId?: number
  limit: number
}

/** Newest first, with the names of policy and issuer as they are today. */
export function listAudit(orm: Orm, filter: AuditFilter) {
  return selectAudit(orm)
    .where(
      and(
        filter.organizationId === undefined ? undefined : eq(exchangeAudit.organizationId, filter.organizationId),
        filter.outcome === undefined ? undefined : eq(exchangeAudit.outcome, filter.outcome),
        filter.since === undefined ? undefined : gte(exchangeAudit.at, filter.since),
        filter.beforeId === undefined ? undefined : lt(exchangeAudit.id, filter.beforeId),
      ),
    )
    .orderBy(desc(exchangeAudit.id))
    .limit(filter.limit)
}

function selectAudit(orm: Orm) {
  return orm
    .select({ row: exchangeAudit, policyName: policies.name, issuerUrl: issuers.issuerUrl })
    .from(exchangeAudit)
    .leftJoin(policies, eq(policies.id, exchangeAudit.policyId))
    .leftJoin(issuers, eq(issuers.id, exchangeAudit.issuerId))
}

/** Rows are written in the order of time but for the longest that an exchange can take. */
const disorderMilliseconds = 120_000

/**
 * The row of a request. Its id begins with its time (UUID version 7) and rows are in the order of time, so the place is found by halving,
 * without an index that every exchange would pay for.
 */
export async function findAudit(orm: Orm, requestId: string) {
  const at = Number.parseInt(requestId.replace('-', '').slice(0, 12), 16)
  const from = await firstRowSince(orm, at - disorderMilliseconds)
  const until = await firstRowSince(orm, at + disorderMilliseconds)
  const [found] = await selectAudit(orm).where(
    and(gte(exchangeAudit.id, from), lte(exchangeAudit.id, until), eq(exchangeAudit.requestId, requestId)),
  )
  return found
}

/** The number of about the first row at or after a time; one more than the last when there is none. */
async function firstRowSince(orm: Orm, time: number): Promise<number> {
  const [last] = await orm.select({ id: max(exchangeAudit.id) }).from(exchangeAudit)
  let low = 1
  let high = (last?.id ?? 0) + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [row] = await orm.select({ at: exchangeAudit.at }).from(exchangeAudit).where(eq(exchangeAudit.id, middle))
    if (row === undefined || row.at >= time) high = middle
    else low = middle + 1
  }
  return low
}
