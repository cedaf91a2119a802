// Reads the usage ledger: totals per key, or the single requests. Rows are written by write.ts alone and never change.
import { and, asc, count, desc, eq, getTableColumns, gte, lt, max, min, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Orm } from './open.ts'
import { apiKeys, issuers, policies, usage, usageDays } from './schema.ts'
import type { UsageGrouping } from './usage-groupings.ts'

export type UsageFilter = {
  organizationId?: string
  keyId?: string
  /** Milliseconds since 1970, UTC; from this moment on, and before that one. */
  since?: number
  until?: number
  beforeId?: number
  limit: number
}

function matching(filter: UsageFilter) {
  return and(
    filter.organizationId === undefined ? undefined : eq(usage.organizationId, filter.organizationId),
    filter.keyId === undefined ? undefined : eq(usage.keyId, filter.keyId),
    filter.since === undefined ? undefined : gte(usage.at, filter.since),
    filter.until === undefined ? undefined : lt(usage.at, filter.until),
    filter.beforeId === undefined ? undefined : lt(usage.id, filter.beforeId),
  )
}

/** A number as far as libSQL can read it: earlier versions wrote costs beyond the safe integers. */
function readable<Column extends SQLiteColumn>(column: Column) {
  return sql<Column['_']['data']>`min(${column}, ${sql.raw(String(Number.MAX_SAFE_INTEGER))})`
}

/** What each key has spent by day. */
export function listSpentDays(orm: Orm) {
  const { keyId, day } = usageDays
  return orm.select({ keyId, day, costNanodollars: readable(usageDays.costNanodollars) }).from(usageDays)
}

const dayMilliseconds = 24 * 60 * 60 * 1_000
/** Rows of earlier versions may hold larger counts; their totals were added up to this bound (0003_inference.sql). */
const countMax = 1_000_000_000
const groups: Record<UsageGrouping, (SQLiteColumn | SQL)[]> = {
  key: [usage.keyId],
  policy: [usage.policyId],
  subject: [usage.issuerId, usage.subject],
  model: [usage.model],
  preset: [usage.workspaceId, usage.presetVersion],
  upstream: [usage.upstream],
  day: [sql`${usage.at} / ${sql.raw(String(dayMilliseconds))}`],
}

/** SQLite's total is a float: a sum that leaves the safe integers stays readable. */
function total(column: SQLiteColumn) {
  return sql<number>`total(${column})`.mapWith(Number)
}

/** One row a group; the one that has used the most tokens first, days in their order. */
export function sumUsage(orm: Orm, by: UsageGrouping, filter: UsageFilter) {
  const totalTokens = total(usage.totalTokens)
  return orm
    .select({
      keyId: usage.keyId,
      keyName: apiKeys.name,
      keyDeletedAt: apiKeys.deletedAt,
      policyId: usage.policyId,
      policyName: policies.name,
      issuerId: usage.issuerId,
      issuerUrl: issuers.issuerUrl,
      subject: usage.subject,
      model: usage.model,
      upstream: usage.upstream,
      workspaceId: usage.workspaceId,
      presetVersion: usage.presetVersion,
      requests: count(),
      promptTokens: total(usage.promptTokens),
      completionTokens: total(usage.completionTokens),
      totalTokens,
      costNanodollars: total(usage.costNanodollars),
      /** Requests whose cost nobody knows. */
      unpriced: sql<number>`sum(${usage.costNanodollars} is null)`.mapWith(Number),
      firstUsedAt: min(usage.at),
      lastUsedAt: max(usage.at),
    })
    .from(usage)
    .innerJoin(apiKeys, eq(apiKeys.id, usage.keyId))
    .leftJoin(policies, eq(policies.id, usage.policyId))
    .leftJoin(issuers, eq(issuers.id, usage.issuerId))
    .where(matching(filter))
    .groupBy(...groups[by])
    .orderBy(by === 'day' ? asc(min(usage.at)) : desc(totalTokens))
    .limit(filter.limit)
}

const counted = sql.raw(
  `count(*) as requests, ${['prompt_tokens', 'completion_tokens', 'total_tokens']
    .map((name) => `min(coalesce(sum(min(${name}, ${countMax})), 0), ${Number.MAX_SAFE_INTEGER}) as ${name}`)
    .join(', ')}, cast(min(total(cost_nanodollars), ${Number.MAX_SAFE_INTEGER}) as integer) as cost_nanodollars`,
)

/** The days of keys whose totals are not what their rows add up to; there are none. */
export async function findDrift(orm: Orm): Promise<{ keyId: string; day: number }[]> {
  return orm.all(sql`
    with summed as (
      select key_id, at / ${sql.raw(String(dayMilliseconds))} as day, ${counted} from usage group by 1, 2
    ), kept as (
      select key_id, day, requests, prompt_tokens, completion_tokens, total_tokens,
        ${readable(usageDays.costNanodollars)} as cost_nanodollars
      from usage_days
    )
    select key_id as "keyId", day from (select * from summed except select * from kept)
    union select key_id, day from (select * from kept except select * from summed) order by 2, 1`)
}

const readableUsage = { ...getTableColumns(usage), costNanodollars: readable(usage.costNanodollars) }

/** Single requests, newest first, with the names of key, policy and issuer as they are today. */
export function listUsage(orm: Orm, filter: UsageFilter) {
  return orm
    .select({ row: readableUsage, keyName: apiKeys.name, policyName: policies.name, issuerUrl: issuers.issuerUrl })
    .from(usage)
    .innerJoin(apiKeys, eq(apiKeys.id, usage.keyId))
    .leftJoin(policies, eq(policies.id, usage.policyId))
    .leftJoin(issuers, eq(issuers.id, usage.issuerId))
    .where(matching(filter))
    .orderBy(desc(usage.id))
    .limit(filter.limit)
}
