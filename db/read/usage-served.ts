// Adds up usage by inference server or preset from their totals by day, and the requests that these do not include yet.
import { and, between, eq, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { servedTotals } from '../schema/served-schema.ts'
import type { UsageGrouping } from '../schema/usage-groupings.ts'
import type { UsageFilter } from '../tables/usage.ts'
import type { OnProgress } from './slices.ts'
import { dayMilliseconds } from './usage-columns.ts'
import { addSum, reportLedger, type Sum, type UsageReport } from './usage-report.ts'

const { day, organizationId, upstream, workspaceId, presetVersion } = servedTotals
/** The values of a group, and what the totals are grouped by. */
const valuesOf = {
  upstream: [sql`nullif(${upstream}, '')`],
  preset: [workspaceId, sql`nullif(${presetVersion}, '')`],
}

/** Whether the totals by inference server and preset can be grouped so. */
export function isServed(by: UsageGrouping): by is keyof typeof valuesOf {
  return Object.hasOwn(valuesOf, by)
}

const { requests, promptTokens, completionTokens, totalTokens, costNanodollars, requestsWithoutCost } = servedTotals
const summed = [requests, promptTokens, completionTokens, totalTokens, costNanodollars, requestsWithoutCost].map(
  (column) => sql`cast(total(${column}) as integer)`,
)

export type ServedFilter = {
  organizationId: string
  /** Days since 1970; includes both. */
  firstDay: number
  lastDay: number
}

/**
 * Adds up all requests, or, where the totals lack more than `rowsMax`, the newest as many. `cutAt` is the time of the first one if there were
 * more, or the first day that the totals know.
 */
export async function reportServed(
  orm: Orm,
  by: keyof typeof valuesOf,
  filter: ServedFilter,
  options: { rowsMax: number; onProgress?: OnProgress | undefined },
): Promise<UsageReport & { cutAt: number | undefined }> {
  const values = sql.join(valuesOf[by], sql`, `)
  const [kept] = await orm.all<{ sums: string; usageId: number; sinceDay: number }>(sql`
    select usage_id as "usageId", since_day as "sinceDay", (
      select json_group_array(json(sum)) from (
        select json_array(json_array(${values}), ${day}, ${sql.join(summed, sql`, `)}) as sum from ${servedTotals}
        where ${and(eq(organizationId, filter.organizationId), between(day, filter.firstDay, filter.lastDay))}
          and ${day} >= since_day
        group by ${values}, ${day}
      )) as sums
    from served_summed`)
  const { sums, usageId, sinceDay } = kept ?? { sums: '[]', usageId: 0, sinceDay: 0 }
  const since = Math.max(filter.firstDay, sinceDay) * dayMilliseconds
  const until = (filter.lastDay + 1) * dayMilliseconds
  const rest: UsageFilter = { organizationId: filter.organizationId, since, until, afterId: usageId, limit: 1 }
  const report = await reportLedger(orm, by, rest, options)
  if (report.cutAt !== undefined) return report
  for (const sum of JSON.parse(sums) as Sum[]) addSum(report, sum)
  return { ...report, cutAt: sinceDay > filter.firstDay ? since : undefined }
}
