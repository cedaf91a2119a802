// Reads what may need attention from the whole database: policies that cannot issue, or never did, and keys with a
// budget. It reads slice by slice, so that other requests go on.
import { type SQL, sql } from 'drizzle-orm'
import type { Orm } from './open.ts'
import { readInSlices } from './slices.ts'

/** `problem` as in the reasons of refusals. */
export type PolicyState = {
  id: string
  name: string
  organizationId: string
  createdAt: number
  problem: 'issuer_deleted' | 'key_deleted' | 'key_disabled' | 'key_expired' | null
}

/** The policies that are neither deleted nor paused, or those of one organization. */
export function readPolicyStates(orm: Orm, now: number, organizationId?: string): AsyncGenerator<PolicyState[]> {
  return readRows<PolicyState>(orm, 'policies', (isInSlice) => {
    const problem = sql`case when issuers.deleted_at is not null then 'issuer_deleted'
      when api_keys.deleted_at is not null then 'key_deleted' when api_keys.disabled then 'key_disabled'
      when api_keys.expires_at <= ${now} then 'key_expired' end`
    return sql`select rows.id, rows.name, rows.organization_id as organizationId, rows.created_at as createdAt,
      ${problem} as problem from policies as rows
      join issuers on issuers.id = rows.issuer_id join api_keys on api_keys.id = rows.key_id
      where ${isInSlice} and rows.deleted_at is null and rows.enabled and ${isOf(organizationId)}`
  })
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

/** Exchanges that are read at most, the newest. */
const exchangesReadMax = 200_000

/** The policies that issued an access token since `since`, the time of the oldest exchange that was read. */
export async function readIssuingPolicies(orm: Orm): Promise<{ policyIds: ReadonlySet<string>; since: number }> {
  const until = (await lastRow(orm, 'exchange_audit')) + 1
  const from = Math.max(1, until - exchangesReadMax)
  const policyIds = new Set<string>()
  const slices = readInSlices({ from, until }, (slice) =>
    orm.all<{ id: string }>(sql`select distinct policy_id as id from exchange_audit
      where id >= ${slice.from} and id < ${slice.until} and outcome = 'issued' and policy_id is not null`),
  )
  for await (const rows of slices) for (const { id } of rows) policyIds.add(id)
  const [oldest] = await orm.all<{ at: number | null }>(
    sql`select min(at) as at from (select at from exchange_audit where id >= ${from} order by id limit 100)`,
  )
  return { policyIds, since: oldest?.at ?? 0 }
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
