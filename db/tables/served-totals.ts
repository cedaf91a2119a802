// The totals of the ledger by day, inference server and preset. Requests do not add to them: the second connection reads what is new in the
// ledger, and one commit adds its sums, so that a commit of requests costs nothing more. `served_summed` says which rows they include.
import { getTableColumns, getTableName, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { readFitting } from '../read/fitting.ts'
import { dayMilliseconds } from '../read/usage-columns.ts'
import { usage } from '../schema/record-schema.ts'
import { servedTotals } from '../schema/served-schema.ts'
import { costUnknownText } from '../schema/unknown-cost.ts'
import type { Statement } from '../write/rows.ts'

/** Of the ledger, read and added at a time: a commit of as many totals takes 5 ms. */
const rowsAtOnce = 2_000

const names: Record<string, string> = {
  day: `at / ${dayMilliseconds}`,
  organization_id: 'organization_id',
  upstream: "coalesce(upstream, '')",
  workspace_id: 'workspace_id',
  preset_version: "coalesce(preset_version, '')",
}
const counts: Record<string, string> = { requests: 'count(*)', requests_without_cost: `sum(${costUnknownText})` }
const columns = Object.values(getTableColumns(servedTotals)).map(({ name }) => name)
const summed = columns.filter((name) => names[name] === undefined)
/** libSQL cannot read larger numbers. */
const most = Number.MAX_SAFE_INTEGER
const sumOf = (name: string) => counts[name] ?? `cast(min(total(${name}), ${most}) as integer)`

const summedId = sql.raw('(select usage_id from served_summed)')

/** How many rows of the ledger these totals lack. */
async function countLacking(orm: Orm): Promise<number> {
  const [found] = await orm.all<{ rows: number }>(
    sql`select coalesce((select max(id) from ${usage}), 0) - ${summedId} as rows`,
  )
  return found?.rows ?? 0
}

export type ServedTotalsContext = {
  orm: Orm
  reader: Orm
  write: (statements: Statement[]) => Promise<void>
  /** Ends the work between two commits. */
  isStopped: () => boolean
}

/**
 * Adds what the totals lack, in commits of some thousand requests, unless that is fewer rows than `rowsMin`. Several nodes may do it at a time:
 * of two that add the same requests, one commit changes nothing.
 */
export async function addServedTotals(
  { orm, reader, write, isStopped }: ServedTotalsContext,
  rowsMin = rowsAtOnce,
): Promise<void> {
  if ((await countLacking(orm)) < rowsMin) return
  while (!isStopped()) {
    const { result } = await readFitting(rowsAtOnce, (rows) => readNext(reader, rows))
    if (result === undefined || result.until <= result.after || isStopped()) return
    await write(adding(result))
  }
}

/** The sums of requests after one row of the ledger, until another. */
type Next = { sums: string; after: number; until: number }

/** One statement, since another node, or another copy of a server database, may be further. */
async function readNext(reader: Orm, rows: number): Promise<Next | undefined> {
  const grouped = columns.map((name) => names[name] ?? sumOf(name)).join(', ')
  const [found] = await reader.all<Next>(sql`
    with next as materialized (select ${summedId} as after, coalesce((select max(id) from usage), 0) as last),
      first as materialized (select coalesce((select min(id) from usage where id > (select after from next)), 1) as id)
    select after, min(last, (select id from first) - 1 + ${rows}) as until, (
      select json_group_array(json(sum)) from (
        select json_array(${sql.raw(grouped)}) as sum from usage
        where id >= (select id from first) and id < (select id from first) + ${rows}
        group by ${sql.raw(Object.values(names).join(', '))}
      )) as sums
    from next`)
  return found
}

const add = `insert into ${getTableName(servedTotals)} (${columns.join(', ')})
  select ${columns.map((_, place) => `json_extract(value, '$[${place}]')`).join(', ')} from json_each(?)
  where (select usage_id from served_summed) = ?
  on conflict (${Object.keys(names).join(', ')}) do update set ${summed
    .map((name) => `${name} = min(${name} + excluded.${name}, ${most})`)
    .join(', ')}`

function adding({ sums, after, until }: Next): Statement[] {
  return [
    { toSQL: () => ({ sql: add, params: [sums, after] }) },
    { toSQL: () => ({ sql: 'update served_summed set usage_id = ? where usage_id = ?', params: [until, after] }) },
  ]
}
