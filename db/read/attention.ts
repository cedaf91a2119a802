// Reads what may need attention from the whole database: policies that cannot issue, or never did, and keys with a
// budget.
import { type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { summedUsageId } from '../schema/record-schema.ts'
import { costUnknown } from '../schema/unknown-cost.ts'
import { readInSlices } from './slices.ts'

/** `problem` as in the reasons of refusals; null where the policy issued nothing since the time asked for. */
export type PolicyState = [
  id: string,
  name: string,
  problem: 'issuer_deleted' | 'key_deleted' | 'key_disabled' | 'key_expired' | null,
]

/** The policies of an organization: how many there are, and those that need attention. */
export type PolicyStates = { organizationId: string; total: number; states: PolicyState[] }

/**
 * The policies that are neither deleted nor paused, or those of one organization. A policy that issued an access token since `issuedSince`
 * needs no attention unless it cannot issue now, and one made after `madeUntil` had no time to. Times in milliseconds; uses of the last minute
 * are in memory only.
 */
export async function* readPolicyStates(
  orm: Orm,
  {
    now,
    issuedSince,
    madeUntil,
    organizationId,
  }: { now: number; issuedSince: number; madeUntil: number; organizationId: string | undefined },
): AsyncGenerator<PolicyStates[]> {
  const problem = sql`case when issuers.deleted_at is not null then 'issuer_deleted'
    when api_keys.deleted_at is not null then 'key_deleted' when api_keys.disabled then 'key_disabled'
    when api_keys.expires_at <= ${now} then 'key_expired' end`
  const slices = readRows<Omit<PolicyStates, 'states'> & { states: string | null }>(
    orm,
    'policies',
    (isInSlice) => sql`select organization_id as organizationId, count(*) as total,
      group_concat(case when problem is not null or not is_fine then json_array(id, name, problem) end, char(10)) as states
      from (select rows.id, rows.name, rows.organization_id, ${problem} as problem,
        coalesce(last_uses.used_at >= ${issuedSince}, 0) or rows.created_at > ${madeUntil} as is_fine from policies as rows
        join issuers on issuers.id = rows.issuer_id join api_keys on api_keys.id = rows.key_id
        left join last_uses on last_uses.id = rows.id
        where ${isInSlice} and rows.deleted_at is null and rows.enabled and ${isOf(organizationId)})
      group by organization_id`,
  )
  for await (const rows of slices)
    yield rows.map(({ states, ...row }) => ({
      ...row,
      states: (states?.split('\n') ?? []).map((text) => JSON.parse(text) as PolicyState),
    }))
}

export type BudgetedKey = {
  id: string
  name: string
  organizationId: string
  limitNanodollars: number
  limitReset: 'daily' | 'weekly' | 'monthly' | null
}

/** The usable keys that have a budget, or those of one organization. */
export function readBudgetedKeys(orm: Orm, now: number, organizationId?: string): AsyncGenerator<BudgetedKey[]> {
  return readRows<BudgetedKey>(
    orm,
    'api_keys',
    (isInSlice) => sql`select rows.id, rows.name, rows.organization_id as organizationId,
      rows.limit_nanodollars as limitNanodollars, rows.limit_reset as limitReset from api_keys as rows
      where ${isInSlice} and rows.limit_nanodollars is not null and rows.deleted_at is null and not rows.disabled
      and (rows.expires_at is null or rows.expires_at > ${now}) and ${isOf(organizationId)}`,
  )
}

/** Requests whose cost is unknown; empty texts where they had no policy or model. */
export type UnknownCosts = { keyId: string; policyId: string; model: string; requests: number }

const unknownCostsMax = 1_000

/** The requests of unknown cost since an hour (in hours since 1970), most first. Those that the totals lack are of any time. */
export function readUnknownCosts(orm: Orm, since: number): Promise<UnknownCosts[]> {
  return orm.all<UnknownCosts>(sql`
    select key_id as "keyId", policy_id as "policyId", model, sum(requests) as requests from (
      select key_id, policy_id, model, requests_without_cost as requests from hour_totals
        where hour >= ${since} and requests_without_cost > 0
      union all
      select key_id, coalesce(policy_id, ''), coalesce(model, ''), 1 from usage where id > ${sql.raw(summedUsageId)} and ${costUnknown})
    group by 1, 2, 3 order by 4 desc limit ${unknownCostsMax}`)
}

/** Policies are judged by so many exchanges, the newest. */
const exchangesJudgedMax = 200_000

/** The time of the oldest exchange by which policies are judged, in milliseconds; 0 without an exchange. */
export async function judgedSince(orm: Orm): Promise<number> {
  const from = Math.max(1, (await lastRow(orm, 'exchange_audit')) + 1 - exchangesJudgedMax)
  const [oldest] = await orm.all<{ at: number | null }>(
    sql`select min(at) as at from (select at from exchange_audit where id >= ${from} order by id limit 100)`,
  )
  return oldest?.at ?? 0
}

function readRows<Row>(orm: Orm, table: 'policies' | 'api_keys', select: (isInSlice: SQL) => SQL) {
  async function* read(): AsyncGenerator<Row[]> {
    const until = (await lastRow(orm, table)) + 1
    const inSlice = ({ from, until: end }: { from: number; until: number }) =>
      orm.all<Row>(select(sql`rows.rowid >= ${from} and rows.rowid < ${end}`))
    yield* readInSlices({ from: 1, until }, inSlice)
  }
  return read()
}

function isOf(organizationId: string | undefined): SQL {
  return organizationId === undefined ? sql`true` : sql`rows.organization_id = ${organizationId}`
}

async function lastRow(orm: Orm, table: string): Promise<number> {
  const [last] = await orm.all<{ id: number | null }>(sql`select max(rowid) as id from ${sql.raw(table)}`)
  return last?.id ?? 0
}
