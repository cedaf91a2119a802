// Adds up usage by day and by key, policy, subject, model or preset: from the daily totals of the keys where they know enough, otherwise from
// the newest rows of the ledger.
import { and, between, gte, lt, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../file/open.ts'
import { dayTotals, summedUsageId, usage } from '../schema/record-schema.ts'
import { apiKeys } from '../schema/schema.ts'
import { costUnknown } from '../schema/unknown-cost.ts'
import type { UsageGrouping } from '../schema/usage-groupings.ts'
import { matching, rangeOf, readable, type UsageFilter } from '../tables/usage.ts'
import { type OnProgress, type RowRange, readInSlices } from './slices.ts'
import { dayOfRow, groupColumns } from './usage-columns.ts'

/** The summed fields, in the order in which a slice returns them. `unpriced` counts requests with an unknown cost. */
const added = ['requests', 'promptTokens', 'completionTokens', 'totalTokens', 'costNanodollars', 'unpriced'] as const
export type UsageTotals = Record<(typeof added)[number], number>
/** `days` has the totals of each day (days since 1970) with requests. */
export type UsageGroup = { values: (string | number | null)[]; totals: UsageTotals; days: Map<number, UsageTotals> }

/** The names of the values of a group. */
export function valueNamesOf(by: UsageGrouping): string[] {
  return Object.keys(groupColumns[by])
}

/** The values, the day, and the fields of `added`. Those of all groups together have no values. */
export type Sum = [values: (string | number | null)[] | null, day: number, ...numbers: number[]]

/** More groups than anyone reads. The rest is added up as one group without values. */
const groupsMax = 20_000

/** `days` has the totals of each day, of all groups and the rest. */
export type UsageReport = { groups: Map<string, UsageGroup>; rest: UsageTotals; days: Map<number, UsageTotals> }

export function emptyReport(): UsageReport {
  return { groups: new Map(), rest: emptyTotals(), days: new Map() }
}

function emptyTotals(): UsageTotals {
  return { requests: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanodollars: 0, unpriced: 0 }
}

function addTo(totals: UsageTotals, numbers: readonly number[]): void {
  for (const [index, field] of added.entries()) totals[field] += numbers[index] ?? 0
}

function addToDay(days: Map<number, UsageTotals>, day: number, numbers: readonly number[]): void {
  const ofDay = days.get(day) ?? emptyTotals()
  days.set(day, ofDay)
  addTo(ofDay, numbers)
}

export function addSum({ groups, rest, days }: UsageReport, [values, day, ...numbers]: Sum): void {
  addToDay(days, day, numbers)
  if (values === null) return
  const name = JSON.stringify(values)
  const known = groups.get(name)
  if (known === undefined && groups.size >= groupsMax) {
    addTo(rest, numbers)
    return
  }
  const group = known ?? { values, totals: emptyTotals(), days: new Map<number, UsageTotals>() }
  if (known === undefined) groups.set(name, group)
  addToDay(group.days, day, numbers)
  addTo(group.totals, numbers)
}

/** Adds up the newest rows of the ledger that fit, at most `rowsMax`. `cutAt` is the time of the first one read if there were more. */
export async function reportLedger(
  orm: Orm,
  by: UsageGrouping,
  filter: UsageFilter,
  { rowsMax, onProgress }: { rowsMax: number; onProgress?: OnProgress | undefined },
): Promise<UsageReport & { cutAt: number | undefined }> {
  const report = emptyReport()
  const columns: (SQLiteColumn | SQL)[] = Object.values(groupColumns[by])
  const summed = [
    ...[usage.promptTokens, usage.completionTokens, usage.totalTokens, usage.costNanodollars].map(
      (column) => sql`cast(total(${column}) as integer)`,
    ),
    sql`sum(${costUnknown})`,
  ]
  const read = async ({ from, until }: RowRange) => {
    const [slice] = await orm.all<{ sums: string }>(sql`
      select json_group_array(json(sum)) as sums from (
        select json_array(json_array(${sql.join(columns, sql`, `)}), ${dayOfRow}, count(*), ${sql.join(summed, sql`, `)}) as sum
        from usage where ${and(gte(usage.id, from), lt(usage.id, until), matching(filter))}
        group by ${sql.join([...columns, dayOfRow], sql`, `)}
      )`)
    return JSON.parse(slice?.sums ?? '[]') as Sum[]
  }
  const { from, until } = await rangeOf(orm, filter)
  const start = Math.max(from, until - rowsMax)
  for await (const sums of readInSlices({ from: start, until }, read, onProgress))
    for (const sum of sums) addSum(report, sum)
  return { ...report, cutAt: start > from ? await timeOf(orm, start) : undefined }
}

async function timeOf(orm: Orm, id: number): Promise<number | undefined> {
  const [row] = await orm.all<{ at: number }>(sql`select at from usage where id >= ${id} order by id limit 1`)
  return row?.at
}

const keysPerSlice = 1_000

export type DaysFilter = {
  organizationId: string
  /** Only these keys. */
  keyIds?: readonly string[] | undefined
  /** Days since 1970; includes both. */
  firstDay: number
  lastDay: number
  /** Whether groups have their days. Without it, all days are added up as the first one. */
  perDay: boolean
  /** Whether the report has the days of all groups together. Those of a report `perDay` are of what it read. */
  withDays?: boolean
}

/** Tables with what is added up, with the columns for each field of `added`. */
const totals = {
  keyId: dayTotals.keyId,
  day: dayTotals.day,
  added: [sql`sum(${dayTotals.requests})`, ...sumsOf(dayTotals), sql`sum(${dayTotals.requestsWithoutCost})`],
}
const unsummed = {
  keyId: usage.keyId,
  day: dayOfRow,
  added: [sql`count(*)`, ...sumsOf(usage), sql`sum(${costUnknown})`],
}

function sumsOf({ promptTokens, completionTokens, totalTokens, costNanodollars }: typeof usage | typeof dayTotals) {
  return [promptTokens, completionTokens, totalTokens, readable(costNanodollars)].map((column) => sql`sum(${column})`)
}

type KeySums = { by: 'key' | 'day' | 'all'; isByDay: boolean; first: number; last: number }

/** The sums of some keys, one for each group. Those of all keys together have no values. */
function readingOf({ by, isByDay, first, last }: KeySums): SQL {
  const sumOf = ({ keyId, day, added }: typeof totals | typeof unsummed) => {
    const values = { key: sql`json_array(${keyId})`, day: sql`json_array()`, all: sql`null` }[by]
    return sql`json_array(${values}, ${isByDay ? day : sql`${first}`}, ${sql.join(added, sql`, `)}) as sum`
  }
  const groupsOf = ({ keyId, day }: typeof totals | typeof unsummed) =>
    sql.join([...(by === 'key' ? [keyId] : []), ...(isByDay ? [day] : [])], sql`, `)
  return sql`select ${sumOf(totals)} from some cross join day_totals on ${totals.keyId} = some.id
      where ${between(totals.day, first, last)} group by ${groupsOf(totals)}
    union all select ${sumOf(unsummed)} from usage
      where ${usage.id} > ${sql.raw(summedUsageId)} and ${usage.keyId} in (select id from some)
        and ${between(unsummed.day, first, last)} group by ${groupsOf(unsummed)}`
}

/** Adds up the daily totals of an organization's keys, and the requests that these do not include yet. */
export async function reportDays(
  orm: Orm,
  by: 'key' | 'day',
  { organizationId, keyIds, firstDay: first, lastDay: last, perDay, withDays = false }: DaysFilter,
): Promise<UsageReport> {
  const report = emptyReport()
  const all = emptyReport()
  const asked = readingOf({ by, isByDay: perDay, first, last })
  const sums = withDays ? sql`${asked} union all ${readingOf({ by: 'all', isByDay: true, first, last })}` : asked
  const isWanted =
    keyIds === undefined ? sql`true` : sql`${apiKeys.id} in (select value from json_each(${JSON.stringify(keyIds)}))`
  for (let lastKey: string | null = ''; lastKey !== null; ) {
    const keys: SQL = sql`select id from api_keys where id > ${lastKey} and organization_id = ${organizationId} and ${isWanted}
      order by id limit ${keysPerSlice}`
    const [slice]: { last: string | null; sums: string }[] = await orm.all(sql`
      with some as materialized (${keys})
      select (select max(id) from some) as last, json_group_array(json(sum)) as sums from (${sums})`)
    for (const sum of JSON.parse(slice?.sums ?? '[]') as Sum[]) addSum(sum[0] === null ? all : report, sum)
    lastKey = slice?.last ?? null
  }
  return withDays ? { ...report, days: all.days } : report
}
