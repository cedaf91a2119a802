// Adds up usage by day and by key, policy, model or attribution from the totals by hour, newest first, and the requests that these do not
// include yet.
import { and, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { summedUsageId } from '../schema/record-schema.ts'
import { costUnknownText } from '../schema/unknown-cost.ts'
import type { UsageGrouping } from '../schema/usage-groupings.ts'
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

type Slice = { sums: string; totals: number; unknown: number }

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
    const from = Math.max(first, beginningOf(until, width))
    const { sums, totals, unknown } = await readSlice(orm, by, filter, from, until)
    const isCut = unknown > 0
    const known = isCut ? (await newestUnknown(orm, filter, from, until)) + 1 : from
    const added = isCut ? (await readSlice(orm, by, filter, known, until)).sums : sums
    for (const sum of JSON.parse(added) as Sum[]) addSum(report, sum)
    if (isCut) return cutTo(known)
    read += totals
    until = from
    if (read >= totalsMax && until > first) return cutTo(until)
    width = Math.max(1, Math.min(2 * width, Math.floor((width * totalsAtOnce) / Math.max(totals, 1))))
  }
  return { ...report, cutAt: undefined }
}

const dayOf = (hour: number) => Math.floor(hour / hoursOfDay)

/** Where the hours of a statement begin. They are of one day if they can be: grouping by day too takes a quarter longer. */
function beginningOf(until: number, width: number): number {
  return width > hoursOfDay ? until - width : Math.max(until - width, dayOf(until - 1) * hoursOfDay)
}

const numbers = ['prompt_tokens', 'completion_tokens', 'total_tokens', 'cost_nanodollars'] as const
const totalOf = (column: string) => `cast(total(${column}) as integer)`

/** A table with what is added up of it. */
const ofHours = {
  ...{ table: 'hour_totals', width: 1, time: 'hour', where: 'true' },
  summed: ['requests', ...numbers, 'requests_without_cost'].map(totalOf).join(', '),
  unknown: 'count(*) - count(prompt_tokens)',
}
/** The rows of the ledger that the totals do not include yet. */
const ofRows = {
  ...{ table: 'usage', width: hourMilliseconds, time: 'at', where: `id > ${summedUsageId}` },
  summed: ['count(*)', ...numbers.map(totalOf), totalOf(costUnknownText)].join(', '),
  unknown: '0',
}

function wantedOf({ organizationId, keyId, policyId }: HoursFilter): SQL | undefined {
  return and(
    keyId === undefined ? undefined : sql`key_id = ${keyId}`,
    policyId === undefined ? undefined : sql`policy_id = ${policyId}`,
    organizationId === undefined
      ? undefined
      : sql`exists (select 1 from api_keys where id = key_id and organization_id = ${organizationId})`,
  )
}

const inHours = ({ time, width }: typeof ofHours, from: number, until: number) =>
  sql`${sql.raw(time)} >= ${from * width} and ${sql.raw(time)} < ${until * width}`

/** The newest hour of some without prompt tokens. */
async function newestUnknown(orm: Orm, filter: HoursFilter, from: number, until: number): Promise<number> {
  const [found] = await orm.all<{ hour: number }>(sql`select max(hour) as hour from hour_totals
    where ${and(inHours(ofHours, from, until), wantedOf(filter), sql`prompt_tokens is null`)}`)
  return found?.hour ?? from
}

/**
 * One statement, since a request moves from the ledger to the totals. Each is added up apart: together they take half as long again.
 * `totals` counts what is read, and `unknown` the totals without prompt tokens.
 */
async function readSlice(
  orm: Orm,
  by: UsageGrouping,
  filter: HoursFilter,
  from: number,
  until: number,
): Promise<Slice> {
  const value = namesOf[by] || undefined
  const isWanted = wantedOf(filter)
  const spansDays = dayOf(from) !== dayOf(until - 1)
  const sumOf = (of: typeof ofHours) => {
    const day = spansDays ? `${of.time} / ${of.width * hoursOfDay}` : undefined
    const groups = [value, day].filter((each) => each !== undefined)
    return sql`select json_array(${sql.raw(value === undefined ? 'json_array()' : `json_array(nullif(${value}, ''))`)},
        ${sql.raw(day ?? String(dayOf(from)))}, ${sql.raw(of.summed)}) as sum, count(*) as size, ${sql.raw(of.unknown)} as unknown
      from ${sql.raw(of.table)} where ${and(inHours(of, from, until), sql.raw(of.where), isWanted)}
      ${groups.length === 0 ? sql`having count(*) > 0` : sql`group by ${sql.raw(groups.join(', '))}`}`
  }
  // What a filter leaves out is read, too.
  const totals =
    isWanted === undefined
      ? sql`total(size)`
      : sql`(select count(*) from hour_totals where ${inHours(ofHours, from, until)})`
  const [slice] = await orm.all<Slice>(sql`
    select json_group_array(json(sum)) as sums, ${totals} as totals, total(unknown) as unknown
    from (${sumOf(ofHours)} union all ${sumOf(ofRows)})`)
  return slice ?? { sums: '[]', totals: 0, unknown: 0 }
}
