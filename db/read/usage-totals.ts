// Sums the usage ledger by key or another grouping, and compares the sums with the stored daily totals.
import { and, count, gte, lt, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../file/open.ts'
import { dayTotals, summedUsageId, usage } from '../schema/record-schema.ts'
import { costUnknown } from '../schema/unknown-cost.ts'
import type { UsageGrouping } from '../schema/usage-groupings.ts'
import { listFilesHolding } from '../tables/archives.ts'
import { matching, rangeOf, readable, rowIdsOf, type UsageFilter } from '../tables/usage.ts'
import { findHourDrift } from './hour-drift.ts'
import { createPace, nextSlice } from './pace.ts'
import { type OnProgress, type RowRange, readInSlices } from './slices.ts'
import { dayMilliseconds, dayOfRow, groupColumns } from './usage-columns.ts'

/** The summed fields, in the order in which a slice returns them. `unpriced` counts requests with an unknown cost. */
const added = ['requests', 'promptTokens', 'completionTokens', 'totalTokens', 'costNanodollars', 'unpriced'] as const
export type UsageSum = Record<(typeof added)[number], number> & {
  /** The values that the requests share, by the column names in `groups`. */
  group: Record<string, string | number | null>
  lastUsedAt: number
}

const groups: Record<UsageGrouping, Record<string, SQLiteColumn | SQL>> = { ...groupColumns, day: { day: dayOfRow } }

/** SQLite's `total` returns a float, so a sum beyond the safe integers stays readable. */
function total(column: SQLiteColumn) {
  return sql<number>`total(${column})`.mapWith(Number)
}

/**
 * Returns one row per group: days in order, other groups by most tokens first. It sums slice by slice and omits rows
 * committed meanwhile.
 */
export async function sumUsage(
  orm: Orm,
  by: UsageGrouping,
  filter: UsageFilter,
  onProgress?: OnProgress,
): Promise<UsageSum[]> {
  const names = Object.keys(groups[by])
  const columns = sql.join(Object.values(groups[by]), sql`, `)
  // Returns the slice as one text: a slice can have as many groups as rows, and libSQL takes several times longer to
  // return rows.
  const read = async ({ from, until }: RowRange) => {
    const [slice] = await orm.all<{ sums: string }>(sql`
      select '[' || coalesce(group_concat(sum), '') || ']' as sums from (
        select json_array(json_array(${columns}), count(*), ${sql.join(summedUp, sql`, `)}, max(${usage.at})) as sum
        from usage
        where ${and(gte(usage.id, from), lt(usage.id, until), matching(filter))}
        group by ${columns}
      )`)
    return JSON.parse(slice?.sums ?? '[]') as SliceSum[]
  }
  const sums = new Map<string, UsageSum>()
  for await (const rows of readInSlices(await rangeOf(orm, filter), read, onProgress))
    for (const row of rows) addUp(sums, names, row)
  const order = (one: UsageSum, other: UsageSum) =>
    by === 'day' ? Number(one.group.day) - Number(other.group.day) : other.totalTokens - one.totalTokens
  return firstOf(sums.values(), order, filter.limit)
}

/** The shared values, then the fields of `added`, then the time of the last request. */
type SliceSum = [values: (string | number | null)[], ...numbers: number[]]

/**
 * The sums after the request count. They are cast to integers because SQLite writes floats to JSON with fifteen digits.
 */
const summedUp = [
  ...[usage.promptTokens, usage.completionTokens, usage.totalTokens, usage.costNanodollars].map(
    (column) => sql`cast(total(${column}) as integer)`,
  ),
  sql`sum(${costUnknown})`,
]

function addUp(sums: Map<string, UsageSum>, names: string[], [values, ...numbers]: SliceSum): void {
  const name = JSON.stringify(values)
  const sum = sums.get(name) ?? emptySum(names, values)
  sums.set(name, sum)
  for (const [index, field] of added.entries()) sum[field] += numbers[index] ?? 0
  sum.lastUsedAt = Math.max(sum.lastUsedAt, numbers.at(-1) ?? 0)
}

function emptySum(names: string[], values: SliceSum[0]): UsageSum {
  const group = Object.fromEntries(names.map((name, index) => [name, values[index] ?? null]))
  const zeros = Object.fromEntries(added.map((field) => [field, 0])) as Record<(typeof added)[number], number>
  return { group, ...zeros, lastUsedAt: 0 }
}

/** Adds the numbers of another group to those of one. */
export function addedTo(sum: UsageSum, more: UsageSum): UsageSum {
  const both = { ...sum, lastUsedAt: Math.max(sum.lastUsedAt, more.lastUsedAt) }
  for (const field of added) both[field] += more[field]
  return both
}

const inSlice = and(gte(usage.id, sql.placeholder('from')), lt(usage.id, sql.placeholder('until')))

const sortedAtOnce = 5_000

/** Returns the first rows in an order without sorting all rows at once. */
async function firstOf<Row>(
  rows: Iterable<Row>,
  order: (one: Row, other: Row) => number,
  limit: number,
): Promise<Row[]> {
  let first: Row[] = []
  let more: Row[] = []
  for (const row of rows) {
    more.push(row)
    if (more.length < sortedAtOnce) continue
    first = [...first, ...more].toSorted(order).slice(0, limit)
    more = []
    await nextSlice()
  }
  return [...first, ...more].toSorted(order).slice(0, limit)
}

/** Earlier versions can have stored larger counts; the totals cap each count at this value (0003_inference.sql). */
const countMax = 1_000_000_000

function counted(column: SQLiteColumn) {
  return sql<number>`coalesce(sum(min(${column}, ${sql.raw(String(countMax))})), 0)`.mapWith(Number)
}

/** The summed columns of a day. */
const summed = ['requests', 'promptTokens', 'completionTokens', 'totalTokens', 'costNanodollars'] as const
type DayTotals = Record<(typeof summed)[number], number> & { keyId: string; day: number }
/** Stored totals by key and day, with the id of the last ledger row that they include. */
type KeptSlice = { rows: DayTotals[]; upto: number }

/**
 * Returns the days of keys whose stored totals differ from the sum of their rows, or from their totals by hour. A correct ledger returns an empty
 * list. Requests that the totals do not include yet do not count as drift, and days with archived rows are not compared.
 */
export async function findDrift(orm: Orm, onProgress?: OnProgress): Promise<{ keyId: string; day: number }[]> {
  const kept = await readKeptTotals(orm)
  const found = await addUpDays(orm, kept, onProgress)
  const pace = createPace()
  for (const { rows } of kept) {
    for (const row of rows) {
      await pace()
      const sum = found.get(nameOf(row))
      const isSame = summed.every((field) => Math.min(sum?.[field] ?? -1, Number.MAX_SAFE_INTEGER) === row[field])
      if (isSame) found.delete(nameOf(row))
      else found.set(nameOf(row), row)
    }
  }
  // Read last: rows can have left the ledger meanwhile.
  const archivedDays = await listArchivedDays(orm)
  const names = new Set(found.keys())
  const more = (await findHourDrift(orm)).filter((each) => !names.has(nameOf(each)))
  return [...found.values(), ...more]
    .filter(({ day }) => !archivedDays.has(day))
    .map(({ keyId, day }) => ({ keyId, day }))
    .toSorted((one, other) => one.day - other.day || (one.keyId < other.keyId ? -1 : 1))
}

/** Days since 1970 with rows in archives of the ledger. */
async function listArchivedDays(orm: Orm): Promise<Set<number>> {
  const days = new Set<number>()
  for (const { firstAt, lastAt } of await listFilesHolding(orm, { kind: 'usage' }))
    for (let each = Math.floor(firstAt / dayMilliseconds); each <= lastAt / dayMilliseconds; each++) days.add(each)
  return days
}

const nameOf = ({ keyId, day }: { keyId: string; day: number }) => `${keyId} ${day}`
const keptRowsPerSlice = 500

/** Reads all stored totals in slices. The last slice covers all remaining keys, even if it is empty. */
async function readKeptTotals(orm: Orm): Promise<KeptSlice[]> {
  const kept: KeptSlice[] = []
  for (;;) {
    const { keyId, day } = kept.at(-1)?.rows.at(-1) ?? { keyId: '', day: 0 }
    const read = await orm.all<{ upto: number } & (DayTotals | { keyId: null })>(sql`
        select ledger.upto, kept.* from (select ${sql.raw(summedUsageId)} as upto) as ledger left join (
          select key_id as "keyId", day, requests, prompt_tokens as "promptTokens", completion_tokens as "completionTokens",
            total_tokens as "totalTokens", ${readable(dayTotals.costNanodollars)} as "costNanodollars"
          from day_totals where (key_id, day) > (${keyId}, ${day}) order by key_id, day limit ${keptRowsPerSlice}
        ) as kept order by 2, 3`)
    const rows = read.filter((row): row is { upto: number } & DayTotals => row.keyId !== null)
    kept.push({ rows, upto: read[0]?.upto ?? 0 })
    if (rows.length < keptRowsPerSlice) return kept
  }
}

/** Sums the ledger by key and day. Each sum ends at the row that was the last when the stored total was read. */
async function addUpDays(orm: Orm, kept: KeptSlice[], onProgress?: OnProgress): Promise<Map<string, DayTotals>> {
  const slice = orm
    .select({
      keyId: usage.keyId,
      day: dayOfRow.mapWith(Number),
      requests: count(),
      promptTokens: counted(usage.promptTokens),
      completionTokens: counted(usage.completionTokens),
      totalTokens: counted(usage.totalTokens),
      costNanodollars: total(usage.costNanodollars),
    })
    .from(usage)
    .where(inSlice)
    .groupBy(usage.keyId, dayOfRow)
    .prepare()
  const found = new Map<string, DayTotals>()
  let { first: from } = await rowIdsOf(orm)
  for (const upto of new Set(kept.map((each) => each.upto))) {
    const isIn = (row: DayTotals) => upto === kept[0]?.upto || uptoOf(row, kept) >= upto
    const read = (rows: RowRange) => slice.execute(rows)
    for await (const rows of readInSlices({ from, until: upto + 1 }, read, onProgress))
      for (const row of rows.filter(isIn)) addUpDay(found, row)
    from = upto + 1
  }
  return found
}

function uptoOf(row: DayTotals, kept: KeptSlice[]): number {
  const holding = kept.find(({ rows }) => {
    const last = rows.at(-1)
    return last !== undefined && (row.keyId < last.keyId || (row.keyId === last.keyId && row.day <= last.day))
  })
  return (holding ?? kept.at(-1))?.upto ?? 0
}

function addUpDay(found: Map<string, DayTotals>, row: DayTotals): void {
  const sum = found.get(nameOf(row))
  if (sum === undefined) found.set(nameOf(row), row)
  else for (const field of summed) sum[field] += row[field]
}
