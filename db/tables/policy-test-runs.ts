// The engine that last ran the tests of all policies.
import type { Orm } from '../file/open.ts'
import { policyTestRuns } from '../schema/policy-parts.ts'
import type { Statement } from '../write/rows.ts'

/** Undefined in a database whose tests never ran at a start. */
export async function readTestedEngine(orm: Orm): Promise<string | undefined> {
  return (await orm.select().from(policyTestRuns))[0]?.engine
}

/** `at` is in milliseconds since 1970 UTC. */
export function putTestedEngine(orm: Orm, engine: string, at: number): Statement {
  const set = { engine, at }
  return orm
    .insert(policyTestRuns)
    .values({ id: 1, ...set })
    .onConflictDoUpdate({ target: policyTestRuns.id, set })
}
