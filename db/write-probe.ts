// The row that health checks rewrite, so that they detect a full disk before a workload does.
import type { Orm } from './open.ts'
import { writeProbe } from './schema.ts'

/** Rewrites the row. `at` is in milliseconds since 1970 UTC. The commit adds one page to the write-ahead log. */
export function touchWriteProbe(orm: Orm, at: number) {
  return orm.insert(writeProbe).values({ id: 1, at }).onConflictDoUpdate({ target: writeProbe.id, set: { at } })
}
