// Reads the exchange audit. Rows are written by write.ts alone and never change.
import { and, desc, eq, gte, lt } from 'drizzle-orm'
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
  return orm
    .select({ row: exchangeAudit, policyName: policies.name, issuerUrl: issuers.issuerUrl })
    .from(exchangeAudit)
    .leftJoin(policies, eq(policies.id, exchangeAudit.policyId))
    .leftJoin(issuers, eq(issuers.id, exchangeAudit.issuerId))
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
