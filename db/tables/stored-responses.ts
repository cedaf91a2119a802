// Responses that upstreams keep, with the key that made each. write.ts adds rows, and old rows are deleted with new ones.
import { eq } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type StoredResponse, storedResponses } from '../schema/record-schema.ts'
import type { BoundStatement } from '../write/rows.ts'

/** As long as OpenAI keeps them. */
const keptMilliseconds = 30 * 24 * 60 * 60 * 1_000

/** Undefined when no key has made it here, or its time is over. */
export async function readStoredResponse(orm: Orm, responseId: string): Promise<StoredResponse | undefined> {
  const [row] = await orm.select().from(storedResponses).where(eq(storedResponses.responseId, responseId))
  return row
}

/** Deletes up to two old rows for each new one, the oldest first. */
export function dropOldResponses(rows: readonly StoredResponse[]): BoundStatement {
  const newest = Math.max(...rows.map(({ createdAt }) => createdAt))
  const sql = `delete from stored_responses where created_at < ?
    and id in (select id from stored_responses order by id limit ?)`
  return { sql, args: [newest - keptMilliseconds, 2 * rows.length] }
}
