// Reads when the groups of usage were last used, from the newest rows of the ledger.
import { and, gte, lt, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { usage } from '../schema/record-schema.ts'
import type { UsageGrouping } from '../schema/usage-groupings.ts'
import { matching, rangeOf, type UsageFilter } from '../tables/usage.ts'
import { type OnProgress, type RowRange, readInSlices } from './slices.ts'
import { dayOfRow, groupColumns } from './usage-columns.ts'

/** When each group was last used, by its values as JSON, of the newest rows of the ledger that fit. Milliseconds. */
export async function readUsedAt(
  orm: Orm,
  by: UsageGrouping,
  filter: UsageFilter,
  { rowsMax, onProgress }: { rowsMax: number; onProgress?: OnProgress | undefined },
): Promise<Map<string, number>> {
  const columns = sql.join(by === 'day' ? [dayOfRow] : Object.values(groupColumns[by]), sql`, `)
  const read = async ({ from, until }: RowRange) => {
    const [slice] = await orm.all<{ uses: string }>(sql`
      select json_group_array(json(used)) as uses from (
        select json_array(json_array(${columns}), max(${usage.at})) as used
        from usage where ${and(gte(usage.id, from), lt(usage.id, until), matching(filter))} group by ${columns}
      )`)
    return JSON.parse(slice?.uses ?? '[]') as [values: unknown[], at: number][]
  }
  const { from, until } = await rangeOf(orm, filter)
  const found = new Map<string, number>()
  for await (const uses of readInSlices({ from: Math.max(from, until - rowsMax), until }, read, onProgress))
    for (const [values, at] of uses) {
      const name = JSON.stringify(values)
      found.set(name, Math.max(found.get(name) ?? 0, at))
    }
  return found
}
