// The one row that a health check rewrites, so that a full disk shows before a workload meets it.
import type { Orm } from './open.ts'
import { writeProbe } from './schema.ts'

/** Rewrites the row; `at` in milliseconds since 1970. A commit of it takes one page of the write-ahead log. */
export function touchWriteProbe(orm: Orm, at: number) {
  return orm.insert(writeProbe).values({ id: 1, at }).onConflictDoUpdate({ target: writeProbe.id, set: { at } })
}
