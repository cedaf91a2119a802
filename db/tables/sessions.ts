// The sessions of the admin page. Times are in milliseconds since 1970 UTC.
import { eq, inArray, isNotNull, lte, or } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type SessionRow, sessions } from '../schema/record-schema.ts'
import type { Statement } from '../write/rows.ts'

/** Lists the sessions with these ids, or all. */
export function listSessions(orm: Orm, ids?: readonly string[]): Promise<SessionRow[]> {
  return orm
    .select()
    .from(sessions)
    .where(ids === undefined ? undefined : inArray(sessions.id, ids))
}

export function insertSession(orm: Orm, row: SessionRow): Statement {
  return orm.insert(sessions).values(row)
}

export function endSessions(orm: Orm, ids: readonly string[], endedAt: number): Statement {
  return orm.update(sessions).set({ endedAt }).where(inArray(sessions.id, ids))
}

/** Writes when sessions were last used, by id, in one statement. */
export function putSessionUses(uses: ReadonlyMap<string, number>): Statement {
  const sql = `update sessions set used_at = max(used_at, use.value ->> 1) from json_each(?) as use where sessions.id = use.value ->> 0`
  const params = [JSON.stringify([...uses])]
  return { toSQL: () => ({ sql, params }) }
}

/** Removes the sessions that were ended, and those that were last used or began at these times or before. */
export function dropSessions(
  orm: Orm,
  { usedBefore, begunBefore }: { usedBefore: number; begunBefore: number },
): Statement {
  const isOver = or(isNotNull(sessions.endedAt), lte(sessions.usedAt, usedBefore), lte(sessions.createdAt, begunBefore))
  return orm.delete(sessions).where(isOver)
}

/** Notes until when the issuer has said who a session is. */
export function putSessionValidity(orm: Orm, id: string, validUntil: number): Statement {
  return orm.update(sessions).set({ validUntil }).where(eq(sessions.id, id))
}
