// Adds rows of the ledger to the totals that reports and budgets are read from: by key and day, and by hour with everything that budgets
// distinguish. Not every commit does it: usage_summed says which rows the totals include, and who reads them adds the rows after it.
import { getTableColumns, getTableName } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { hourTotals } from '../schema/budget-schema.ts'
import { dayTotals, summedUsageId } from '../schema/record-schema.ts'
import { costUnknownText } from '../schema/unknown-cost.ts'
import type { BoundStatement, Statement } from './rows.ts'

const days = { key_id: 'key_id', day: 'at / 86400000' }
const hours = {
  hour: 'at / 3600000',
  key_id: 'key_id',
  policy_id: "coalesce(policy_id, '')",
  attribution: "coalesce(attribution, '')",
  model: "coalesce(model, '')",
}

const counts: Record<string, string> = { requests: 'count(*)', requests_without_cost: `sum(${costUnknownText})` }

/** libSQL cannot read larger numbers. */
const most = Number.MAX_SAFE_INTEGER

/** A statement that adds the rows that the totals lack. `names`: the columns that name a total, as expressions of a row. */
function addTo(table: SQLiteTable, names: Record<string, string>): string {
  const columns = Object.values(getTableColumns(table)).map(({ name }) => name)
  const summed = columns.filter((name) => names[name] === undefined)
  // As a float, a sum does not fail where whole numbers end.
  const sumOf = (name: string) => counts[name] ?? `cast(min(total(${name}), ${most}) as integer)`
  const keys = Object.keys(names)
  return `insert into ${getTableName(table)} (${columns.join(', ')})
    select ${columns.map((name) => names[name] ?? sumOf(name)).join(', ')} from usage where id > ${summedUsageId}
    group by ${keys.map((name) => columns.indexOf(name) + 1).join(', ')}
    on conflict (${keys.join(', ')}) do update set ${summed.map((name) => `${name} = min(${name} + excluded.${name}, ${most})`).join(', ')}`
}

/** Adds all rows that the totals lack, in one commit. */
export const usageSums: BoundStatement[] = [
  addTo(dayTotals, days),
  addTo(hourTotals, hours),
  `insert into usage_summed (id, usage_id) select 1, id from (select id from usage order by id desc limit 1) where true
    on conflict (id) do update set usage_id = excluded.usage_id`,
].map((sql) => ({ sql, args: [] }))

/** The same for `Writer.write`. */
export const addUsageSums: Statement[] = usageSums.map(({ sql }) => ({ toSQL: () => ({ sql, params: [] }) }))

const none: BoundStatement[] = []

/** Rows of the ledger that the totals may lack for each process that writes them: some tenths of a millisecond to add. */
const rowsUnsummedMax = 256

/** Returns what a commit of so many rows adds to the totals: nothing, or all that they lack. The first one adds what earlier processes left. */
export function createUsageSummer(): (rows: number) => BoundStatement[] {
  let lacking = rowsUnsummedMax
  return (rows) => {
    lacking += rows
    if (lacking < rowsUnsummedMax) return none
    lacking = 0
    return usageSums
  }
}
