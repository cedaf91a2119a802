// The tables of inference servers and of what models cost, as drizzle sees them.
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { flag, names, time, unitPrices } from './columns.ts'
import type { CredentialExchange } from './credential-exchange.ts'
import { affinities } from './value-names.ts'

export const upstreams = sqliteTable('upstreams', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  baseUrl: text('base_url').notNull(),
  credentialEncrypted: text('credential_encrypted'),
  models: names('models').notNull(),
  priority: integer('priority').notNull(),
  caPem: text('ca_pem'),
  firstByteSeconds: integer('first_byte_seconds').notNull(),
  idleSeconds: integer('idle_seconds').notNull(),
  createdAt: time('created_at').notNull(),
  updatedAt: time('updated_at').notNull(),
  deletedAt: time('deleted_at'),
  forwardHeaders: names('forward_headers').notNull(),
  returnHeaders: names('return_headers').notNull(),
  managedBy: text('managed_by'),
  credentialExchange: text('credential_exchange', { mode: 'json' }).$type<CredentialExchange>(),
  /** Null where the number of requests that it runs at once is not known. */
  maxRunning: integer('max_running'),
  weight: integer('weight').notNull(),
  affinity: text('affinity', { enum: affinities }).notNull(),
  /** Null where the server is not probed. */
  probePath: text('probe_path'),
  probeSeconds: integer('probe_seconds').notNull(),
  sendPriority: flag('send_priority').notNull(),
  sendFairnessId: flag('send_fairness_id').notNull(),
})

export const prices = sqliteTable('prices', {
  model: text('model').primaryKey(),
  promptNanodollars: integer('prompt_nanodollars').notNull(),
  completionNanodollars: integer('completion_nanodollars').notNull(),
  cachedNanodollars: integer('cached_nanodollars'),
  updatedAt: time('updated_at').notNull(),
  deletedAt: time('deleted_at'),
  managedBy: text('managed_by'),
  ...unitPrices,
  maxOutputTokens: integer('max_output_tokens'),
  /** Prices that take effect later: JSON, by time. */
  later: text('later'),
})

export type Upstream = typeof upstreams.$inferSelect
export type Price = typeof prices.$inferSelect
