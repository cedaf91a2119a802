// Budgets, and the totals by hour that they are read from.
import { and, asc, eq, gt, inArray, isNull, lte, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { nextSlice } from '../read/pace.ts'
import { type Budget, budgets } from '../schema/budget-schema.ts'
import { summedUsageId, usage } from '../schema/record-schema.ts'
import { costUnknown } from '../schema/unknown-cost.ts'
import type { Statement } from '../write/rows.ts'
import { rangeOf } from './usage.ts'

export function insertBudget(orm: Orm, row: Budget): Statement {
  return orm.insert(budgets).values(row)
}

/** Leaves out the id and the organization, which never change. */
export function updateBudget(
  orm: Orm,
  id: string,
  { id: _id, organizationId: _organizationId, ...change }: Partial<Budget>,
): Statement {
  return orm.update(budgets).set(change).where(eq(budgets.id, id))
}

/** Lists the budgets with these ids, deleted ones among them, or all that are not deleted, in the order in which they were inserted. */
export function listBudgets(orm: Orm, ids?: readonly string[]): Promise<Budget[]> {
  return orm
    .select()
    .from(budgets)
    .where(ids === undefined ? isNull(budgets.deletedAt) : inArray(budgets.id, [...ids]))
    .orderBy(sql`${budgets}.rowid`)
}

/** What was used in an hour; the hour in hours since 1970. */
export type HourTotals = [
  ...[hour: number, keyId: string, policyId: string, attribution: string, model: string],
  ...[requests: number, tokens: number, nanodollars: number, requestsWithoutCost: number],
]
/** Those of a session; empty for requests without one. */
export type SessionTotals = [...HourTotals, session: string]
/** `usageId`: the newest row of the ledger that the totals include. What came after it is only in the ledger. */
export type HoursSlice = { totals: HourTotals[]; usageId: number }

const hoursAtOnce = 2_000

/** Reads the totals since an hour in their order, many at a time. The last slice has fewer than the others, and can be empty. */
export async function* readHours(orm: Orm, since: number, most = hoursAtOnce): AsyncGenerator<HoursSlice> {
  let after: SQL = sql`hour >= ${since}`
  for (;;) {
    await nextSlice()
    const [slice] = await orm.all<{ totals: string; usageId: number }>(sql`
      select json_group_array(json_array(hour, key_id, policy_id, attribution, model, requests, total_tokens,
        cost_nanodollars, requests_without_cost)) as totals, ${sql.raw(summedUsageId)} as "usageId"
      from (select * from hour_totals where ${after} order by hour, key_id, policy_id, attribution, model limit ${most})`)
    const totals = JSON.parse(slice?.totals ?? '[]') as HourTotals[]
    yield { totals, usageId: slice?.usageId ?? 0 }
    const last = totals.at(-1)
    if (last === undefined || totals.length < most) return
    const names = sql.join(
      last.slice(0, 5).map((value) => sql`${value}`),
      sql`, `,
    )
    after = sql`(hour, key_id, policy_id, attribution, model) > (${names})`
  }
}

const sessionRowsAtOnce = 5_000

/**
 * Reads what sessions used, as totals by hour, from the rows of the ledger that began at a time or later. Rows are added up where they lie,
 * some thousand at a time. `usageId`: the newest row when it began; there is at least one slice.
 */
export async function* readSessions(
  orm: Orm,
  since: number,
): AsyncGenerator<{ totals: SessionTotals[]; usageId: number }> {
  const { from, until } = await rangeOf(orm, { since, limit: 1 })
  let first = from
  do {
    await nextSlice()
    const end = Math.min(first + sessionRowsAtOnce, until)
    const [slice] = await orm.all<{ totals: string }>(sql`
      select json_group_array(json_array(hour, key_id, policy_id, attribution, model, requests, tokens, cost, without_cost,
        session)) as totals from (
        select at / 3600000 as hour, key_id, coalesce(policy_id, '') as policy_id, coalesce(attribution, '') as attribution,
          coalesce(model, '') as model, coalesce(session_id, '') as session, count(*) as requests,
          coalesce(sum(total_tokens), 0) as tokens, cast(total(cost_nanodollars) as integer) as cost, sum(${costUnknown}) as without_cost
        from usage where id >= ${first} and id < ${end} and at >= ${since} group by 1, 2, 3, 4, 5, 6)`)
    yield { totals: JSON.parse(slice?.totals ?? '[]') as SessionTotals[], usageId: until - 1 }
    first = end
  } while (first < until)
}

const ledgerRowsAtOnce = 5_000

/** Reads the rows of the ledger after one, up to another, oldest first. */
export async function* readLedgerAfter(orm: Orm, after: number, upto: number) {
  const { id, at, keyId, policyId, attribution, sessionId: session, model } = usage
  const { totalTokens: tokens, costNanodollars: nanodollars } = usage
  const requestsWithoutCost = costUnknown.mapWith(Number)
  for (let last = after; ; ) {
    const rows = await orm
      .select({ id, at, keyId, policyId, attribution, session, model, tokens, nanodollars, requestsWithoutCost })
      .from(usage)
      .where(and(gt(id, last), lte(id, upto)))
      .orderBy(asc(id))
      .limit(ledgerRowsAtOnce)
    yield rows
    if (rows.length < ledgerRowsAtOnce) return
    last = rows.at(-1)?.id ?? last
  }
}
