// When policies, keys, issuers and presets last worked, and when and why they were last refused. Times are in
// milliseconds since 1970 UTC.
import { sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type LastUseRow, lastUses } from '../schema/record-schema.ts'
import type { Statement } from '../write/rows.ts'

const idsPerStatement = 500

/** Reads the rows with these ids. */
export async function readLastUses(orm: Orm, ids: readonly string[]): Promise<LastUseRow[]> {
  const rows: LastUseRow[] = []
  for (let start = 0; start < ids.length; start += idsPerStatement) {
    const some = ids.slice(start, start + idsPerStatement)
    const isOne = sql`${lastUses.id} in (select value from json_each(${JSON.stringify(some)}))`
    for (const row of await orm.select().from(lastUses).where(isOne)) rows.push(row)
  }
  return rows
}

/** Writes rows in one statement. A time that is null, or older than the stored one of another node, leaves what is stored. */
export function putLastUses(rows: readonly LastUseRow[]): Statement {
  const sql = `insert into last_uses (id, used_at, refused_at, refused_reason)
    select value ->> 0, value ->> 1, value ->> 2, value ->> 3 from json_each(?) where true
    on conflict (id) do update set
      used_at = iif(excluded.used_at >= ifnull(used_at, 0), excluded.used_at, used_at),
      refused_at = iif(excluded.refused_at >= ifnull(refused_at, 0), excluded.refused_at, refused_at),
      refused_reason = iif(excluded.refused_at >= ifnull(refused_at, 0), excluded.refused_reason, refused_reason)`
  const values = rows.map(({ id, usedAt, refusedAt, refusedReason }) => [id, usedAt, refusedAt, refusedReason])
  return { toSQL: () => ({ sql, params: [JSON.stringify(values)] }) }
}

/** Deletes the rows with these ids in one statement. */
export function dropLastUses(ids: readonly string[]): Statement {
  const sql = 'delete from last_uses where id in (select value from json_each(?))'
  return { toSQL: () => ({ sql, params: [JSON.stringify(ids)] }) }
}
