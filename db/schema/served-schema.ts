// The tables of usage by inference server and preset, as drizzle sees them (tables/served-totals.ts).
import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Days since 1970. Empty texts stand for nulls. */
export const servedTotals = sqliteTable(
  'served_totals',
  {
    day: integer('day').notNull(),
    organizationId: text('organization_id').notNull(),
    upstream: text('upstream').notNull(),
    workspaceId: text('workspace_id').notNull(),
    presetVersion: text('preset_version').notNull(),
    requests: integer('requests').notNull(),
    promptTokens: integer('prompt_tokens').notNull(),
    completionTokens: integer('completion_tokens').notNull(),
    totalTokens: integer('total_tokens').notNull(),
    costNanodollars: integer('cost_nanodollars').notNull(),
    requestsWithoutCost: integer('requests_without_cost').notNull(),
  },
  ({ day, organizationId, upstream, workspaceId, presetVersion }) => [
    primaryKey({ columns: [day, organizationId, upstream, workspaceId, presetVersion] }),
  ],
)

/** The newest row of the ledger that `served_totals` includes, and the first day that it knows (tables/served-totals.ts). */
export const servedSummed = sqliteTable('served_summed', {
  id: integer('id').primaryKey(),
  usageId: integer('usage_id').notNull(),
  sinceDay: integer('since_day').notNull(),
})
