// The tables of budgets, as drizzle sees them, and what a budget has as JSON.
import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { flag, time } from './columns.ts'

export const budgetPeriods = ['hour', 'day', 'week', 'month', 'lifetime'] as const
export type BudgetPeriod = (typeof budgetPeriods)[number]
export const budgetModes = ['block', 'warn'] as const
/** What running requests hold of a budget. */
export const holdRules = ['expected', 'worst', 'off'] as const
export const unpricedRules = ['count', 'refuse'] as const

/** US dollars, tokens and requests. */
export type BudgetAmounts = { usd?: number; tokens?: number; requests?: number }
export type BudgetWindow = BudgetAmounts & { per: BudgetPeriod }
/** Ids, except of models, which are patterns. All that are set must match. */
export type BudgetScope = {
  workspaces?: string[]
  keys?: string[]
  labels?: Record<string, string>
  policies?: string[]
  models?: string[]
}
/** More until a time in milliseconds. `value`: only for this one of a budget that has one for each. */
export type BudgetTopUp = BudgetAmounts & { until: number; because: string; value?: string; at: number }

export const budgets = sqliteTable('budgets', {
  id: text('id').primaryKey(),
  organizationId: text('organization_id').notNull(),
  name: text('name').notNull(),
  enabled: flag('enabled').notNull(),
  appliesTo: text('applies_to', { mode: 'json' }).$type<BudgetScope>(),
  /** Null: all of it together. */
  each: text('each'),
  windows: text('windows', { mode: 'json' }).$type<BudgetWindow[]>().notNull(),
  overrides: text('overrides', { mode: 'json' }).$type<Record<string, BudgetWindow[]>>(),
  topUps: text('top_ups', { mode: 'json' }).$type<BudgetTopUp[]>(),
  mode: text('mode', { enum: budgetModes }).notNull(),
  unpriced: text('unpriced', { enum: unpricedRules }).notNull(),
  createdAt: time('created_at').notNull(),
  updatedAt: time('updated_at').notNull(),
  deletedAt: time('deleted_at'),
  managedBy: text('managed_by'),
  hold: text('hold', { enum: holdRules }).notNull(),
  concurrentRequests: integer('concurrent_requests'),
  /** Percents of what a window allows. */
  alerts: text('alerts', { mode: 'json' }).$type<number[]>().notNull(),
})

/** Hours since 1970. Empty texts stand for nulls. */
export const hourTotals = sqliteTable(
  'hour_totals',
  {
    hour: integer('hour').notNull(),
    keyId: text('key_id').notNull(),
    policyId: text('policy_id').notNull(),
    attribution: text('attribution').notNull(),
    model: text('model').notNull(),
    requests: integer('requests').notNull(),
    totalTokens: integer('total_tokens').notNull(),
    costNanodollars: integer('cost_nanodollars').notNull(),
    requestsWithoutCost: integer('requests_without_cost').notNull(),
    /** Null where nobody has added them up. */
    promptTokens: integer('prompt_tokens'),
    completionTokens: integer('completion_tokens'),
  },
  (table) => [primaryKey({ columns: [table.hour, table.keyId, table.policyId, table.attribution, table.model] })],
)

/** How much a node of a server database may use of a counter near its limit: what its requests hold, and what it has in reserve. */
export const budgetSlices = sqliteTable(
  'budget_slices',
  {
    budgetId: text('budget_id').notNull(),
    counter: text('counter').notNull(),
    nodeId: text('node_id').notNull(),
    requests: integer('requests').notNull(),
    tokens: integer('tokens').notNull(),
    nanodollars: integer('nanodollars').notNull(),
    /** By the clock of the database: a node that does not renew it is gone. */
    until: time('until').notNull(),
  },
  (table) => [primaryKey({ columns: [table.budgetId, table.counter, table.nodeId] })],
)

export type Budget = typeof budgets.$inferSelect
