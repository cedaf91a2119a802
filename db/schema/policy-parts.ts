// What a policy has as JSON, and the row that says which engine ran its tests.
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { time } from './columns.ts'

/** A finding of the linter that an administrator accepts, and why. */
export type LintException = { rule: string; because: string }

/** A case that a policy must decide as `expect` says: `allow`, or a reason of the audit. */
export type PolicyTest = { name: string; claims: Record<string, unknown>; expect: string }

/** One row: the engine that last ran the tests of all policies. */
export const policyTestRuns = sqliteTable('policy_test_runs', {
  id: integer('id').primaryKey(),
  engine: text('engine').notNull(),
  at: time('at').notNull(),
})
