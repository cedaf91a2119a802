// Reads the usage ledger: totals per key, or the single requests. Rows are written by write.ts alone and never change.
import { and, count, desc, eq, gte, lt, max, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Orm } from './open.ts'
import { apiKeys, issuers, policies, usage, usageDays } from './schema.ts'

export type UsageFilter = {
  organizationId?: string
  keyId?: string
  /** Milliseconds since 1970, UTC; from this moment on. */
  since?: number
  beforeId?: number
  limit: number
}

function matching(filter: UsageFilter) {
  return and(
    filter.organizationId === undefined ? undefined : eq(usage.organizationId, filter.organizationId),
    filter.keyId === undefined ? undefined : eq(usage.keyId, filter.keyId),
    filter.since === undefined ? undefined : gte(usage.at, filter.since),
    filter.beforeId === undefined ? undefined : lt(usage.id, filter.beforeId),
  )
}

/** What each key has spent by day. */
export function listSpentDays(orm: Orm) {
  const { keyId, day, costNanodollars } = usageDays
  return orm.select({ keyId, day, costNanodollars }).from(usageDays).orderBy(day)
}

/** SQLite's total is a float: a sum that leaves the safe integers stays readable. */
function total(column: SQLiteColumn) {
  return sql<number>`total(${column})`.mapWith(Number)
}

/** One row a key, the most recently used first. */
export function sumUsageByKey(orm: Orm, filter: UsageFilter) {
  const lastUsedAt = max(usage.at)
  return orm
    .select({
      keyId: usage.keyId,
      keyName: apiKeys.name,
      keyDeletedAt: apiKeys.deletedAt,
      requests: count(),
      promptTokens: total(usage.promptTokens),
      completionTokens: total(usage.completionTokens),
      totalTokens: total(usage.totalTokens),
      lastUsedAt,
    })
    .from(usage)
    .innerJoin(apiKeys, eq(apiKeys.id, usage.keyId))
    .where(matching(filter))
    .groupBy(usage.keyId)
    .orderBy(desc(lastUsedAt))
    .limit(filter.limit)
}

/** Single requests, newest first, with the names of key, policy and issuer as they are today. */
export function listUsage(orm: Orm, filter: UsageFilter) {
  return orm
    .select({ row: usage, keyName: apiKeys.name, policyName: policies.name, issuerUrl: issuers.issuerUrl })
    .from(usage)
    .innerJoin(apiKeys, eq(apiKeys.id, usage.keyId))
    .leftJoin(policies, eq(policies.id, usage.policyId))
    .leftJoin(issuers, eq(issuers.id, usage.issuerId))
    .where(matching(filter))
    .orderBy(desc(usage.id))
    .limit(filter.limit)
}
