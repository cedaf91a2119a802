// Counts exchanges by hour, organization, policy and outcome, from ranges of rows of the audit.
import { and, gte, lt, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type RowRange, readInSlices } from '../read/slices.ts'
import { exchangeAudit } from '../schema/record-schema.ts'

export const hourMilliseconds = 60 * 60 * 1_000

/** `hour` is in hours since 1970 UTC. `reason` is null for an issued token. */
export type ExchangeCount = [
  organizationId: string | null,
  policyId: string | null,
  hour: number,
  reason: string | null,
  count: number,
]

/** Yields the counts of each slice. The same group comes once for each slice that has rows of it. */
export async function* countExchanges(orm: Orm, rows: RowRange): AsyncGenerator<ExchangeCount[]> {
  const { organizationId, policyId, reason, outcome } = exchangeAudit
  const hour = sql`${exchangeAudit.at} / ${sql.raw(String(hourMilliseconds))}`
  const why = sql`case ${outcome} when 'issued' then null else coalesce(${reason}, '') end`
  const read = async ({ from, until }: RowRange) => {
    const [slice] = await orm.all<{ counts: string }>(sql`
      select json_group_array(json_array(organization, policy, hour, why, count)) as counts from (
        select ${organizationId} as organization, ${policyId} as policy, ${hour} as hour, ${why} as why, count(*) as count
        from exchange_audit where ${and(gte(exchangeAudit.id, from), lt(exchangeAudit.id, until))}
        group by 1, 2, 3, 4
      )`)
    return JSON.parse(slice?.counts ?? '[]') as ExchangeCount[]
  }
  yield* readInSlices(rows, read)
}
