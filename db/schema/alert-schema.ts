// The tables of alerts, as drizzle sees them: what happened, where it is sent, and how far each delivery is.
import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { flag, names, time } from './columns.ts'

/** What webhooks can ask for. */
export const alertTypes = ['budget.reached', 'finding.opened', 'finding.closed'] as const
export type AlertType = (typeof alertTypes)[number]

export const webhooks = sqliteTable('webhooks', {
  id: text('id').primaryKey(),
  organizationId: text('organization_id').notNull(),
  name: text('name').notNull(),
  enabled: flag('enabled').notNull(),
  url: text('url').notNull(),
  /** Types of alerts, or `*` for all. */
  events: names('events').notNull(),
  /** What its requests are signed with. Null after the master key was lost. */
  credentialEncrypted: text('credential_encrypted'),
  caPem: text('ca_pem'),
  createdAt: time('created_at').notNull(),
  updatedAt: time('updated_at').notNull(),
  deletedAt: time('deleted_at'),
  managedBy: text('managed_by'),
})

export const alerts = sqliteTable('alerts', {
  /** Of the event too: receivers recognize a repeated one by it. */
  id: text('id').primaryKey(),
  organizationId: text('organization_id').notNull(),
  type: text('type', { enum: alertTypes }).notNull(),
  /** Two alerts of an organization with the same name do not exist while neither has ended. */
  subject: text('subject').notNull(),
  data: text('data', { mode: 'json' }).$type<Record<string, unknown>>().notNull(),
  at: time('at').notNull(),
  /** When a finding was found last. */
  seenAt: time('seen_at').notNull(),
  endedAt: time('ended_at'),
  /** Kept at least until then; null: until it has ended. */
  neededUntil: time('needed_until'),
})

/** An alert on its way to a webhook. */
export const alertDeliveries = sqliteTable(
  'alert_deliveries',
  {
    alertId: text('alert_id').notNull(),
    webhookId: text('webhook_id').notNull(),
    attempts: integer('attempts').notNull(),
    /** When it is tried next; null once it is delivered or given up. */
    dueAt: time('due_at'),
    triedAt: time('tried_at'),
    deliveredAt: time('delivered_at'),
    /** Why the last attempt failed. */
    problem: text('problem'),
    /** Names the attempt that is being made. */
    claim: text('claim'),
  },
  (table) => [primaryKey({ columns: [table.alertId, table.webhookId] })],
)

export type Webhook = typeof webhooks.$inferSelect
export type Alert = typeof alerts.$inferSelect
export type AlertDelivery = typeof alertDeliveries.$inferSelect
