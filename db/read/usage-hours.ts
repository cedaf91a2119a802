// Adds up usage by day and by key, policy, model or attribution from the totals by hour, newest first, and the requests that these do not
// include yet.
import { and, gte, lt, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { summedUsageId } from '../schema/record-schema.ts'
import { costUnknownText } from '../schema/unknown-cost.ts'
import type { UsageGrouping } from '../schema/usage-groupings.ts'
import { nextSlice } from './pace.ts'
import { addSum, emptyReport, type Sum, type UsageReport } from './usage-report.ts'

const [hourMilliseconds, hoursOfDay] = [60 * 60 * 1_000, 24]

/** What the totals by hour distinguish, beside the day. */
const namesOf: Partial<Record<UsageGrouping, string>> = {
  key: 'key_id',
  policy: 'policy_id',
  model: 'model',
  attribution: 'attribution',
  day: '',
}

/** Whether the totals by hour can be grouped so. */
export function hasHours(by: UsageGrouping): boolean {
  return namesOf[by] !== undefined
}

export type HoursFilter = {
  /** Undefined where there is only one: looking for that of each key takes longer than adding up. */
  organizationId: string | undefined
  keyId?: string | undefined
  policyId?: string | undefined
  /** Days since 1970; includes both. */
  firstDay: number
  lastDay: number
}

/** Totals of a statement: about 5 ms for the second connection of a file. */
const totalsAtOnce = 8_000
/** The hours of the first statement. */
const hoursAtOnce = 6

type Slice = { sums: string; totals: number; unknown: number | null }

/**
 * Adds up the newest hours that fit, at most about `totalsMax` totals. `cutAt` is the time of the first one if there were more, or if nobody
 * knows the prompt tokens of those before.
 */
export async function reportHours(
  orm: Orm,
  by: UsageGrouping,
  filter: HoursFilter,
  totalsMax: number,
): Promise<UsageReport & { cutAt: number | undefined }> {
  const report = emptyReport()
  const first = filter.firstDay * hoursOfDay
  const cutTo = (hour: number) => ({ ...report, cutAt: hour * hourMilliseconds })
  let [until, width, read] = [(filter.lastDay + 1) * hoursOfDay, hoursAtOnce, 0]
  while (until > first) {
    await nextSlice()
    const from = Math.max(first, until - width)
    const { sums, totals, unknown } = await readSlice(orm, by, filter, from, until)
    const known =
      unknown === null
        ? { from, sums }
        : { from: unknown + 1, ...(await readSlice(orm, by, filter, unknown + 1, until)) }
    for (const sum of JSON.parse(known.sums) as Sum[]) addSum(report, sum)
    if (unknown !== null) return cutTo(unknown + 1)
    read += totals
    until = from
    if (read >= totalsMax && until > first) return cutTo(until)
    width = Math.max(1, Math.min(2 * width, Math.floor((width * totalsAtOnce) / Math.max(totals, 1))))
  }
  return { ...report, cutAt: undefined }
}

const columns = ['key_id', 'policy_id', 'model', 'attribution'] as const
const numbers = ['prompt_tokens', 'completion_tokens', 'total_tokens', 'cost_nanodollars'] as const
const unpriced = 'requests_without_cost'
const texts = (list: readonly string[]) => sql.raw(list.join(', '))
/** A row of the ledger as totals of one request. */
const ofRow = texts([
  ...columns.map((name) => (name === 'key_id' ? name : `coalesce(${name}, '') as ${name}`)),
  `at / ${hourMilliseconds} as hour`,
  '1 as requests',
  ...numbers.map((name) => `coalesce(${name}, 0) as ${name}`),
  `${costUnknownText} as ${unpriced}`,
])
const ofHour = texts([...columns, 'hour', 'requests', ...numbers, unpriced])
const summed = texts(['requests', ...numbers, unpriced].map((name) => `cast(total(${name}) as integer)`))

/** One statement, since a request moves from the ledger to the totals. `unknown`: the newest hour without prompt tokens. */
async function readSlice(
  orm: Orm,
  by: UsageGrouping,
  { organizationId, keyId, policyId }: HoursFilter,
  from: number,
  until: number,
): Promise<Slice> {
  const name = namesOf[by] ?? ''
  const inHours = (hour: SQL, width: number) => and(gte(hour, from * width), lt(hour, until * width))
  const isWanted = and(
    keyId === undefined ? undefined : sql`key_id = ${keyId}`,
    policyId === undefined ? undefined : sql`policy_id = ${policyId}`,
    organizationId === undefined
      ? undefined
      : sql`exists (select 1 from api_keys where id = key_id and organization_id = ${organizationId})`,
  )
  const [slice] = await orm.all<Slice>(sql`
    with hours as (
      select ${ofHour} from hour_totals where ${inHours(sql`hour`, 1)}
      union all select ${ofRow} from usage where id > ${sql.raw(summedUsageId)} and ${inHours(sql`at`, hourMilliseconds)}
    )
    select json_group_array(json(sum)) as sums, max(unknown) as unknown,
      (select count(*) from hour_totals where ${inHours(sql`hour`, 1)}) as totals
    from (
      select json_array(${sql.raw(name === '' ? 'json_array()' : `json_array(nullif(${name}, ''))`)}, hour / 24, ${summed}) as sum,
        max(iif(prompt_tokens is null, hour, null)) as unknown
      from hours where ${isWanted ?? sql`true`} group by ${sql.raw([...(name === '' ? [] : [name]), 'hour / 24'].join(', '))}
    )`)
  return slice ?? { sums: '[]', totals: 0, unknown: null }
}
