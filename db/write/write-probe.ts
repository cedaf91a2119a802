// The row that health checks rewrite, so that they detect a full disk before a workload does.
import { sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { writeProbe } from '../schema/node-schema.ts'

/** As many pages as a commit of a hundred requests. The bytes are random, since SQLite writes only pages that change. */
const fillerBytes = 64 * 4_096

/**
 * Rewrites the row. `at` is in milliseconds since 1970 UTC. The commit adds one page to the write-ahead log; with
 * `isWhole`, as many as a large ordinary commit.
 */
export function touchWriteProbe(orm: Orm, at: number, { isWhole }: { isWhole: boolean }) {
  const set = isWhole ? { at, filler: sql.raw(`randomblob(${fillerBytes})`) } : { at }
  return orm
    .insert(writeProbe)
    .values({ id: 1, ...set })
    .onConflictDoUpdate({ target: writeProbe.id, set })
}
