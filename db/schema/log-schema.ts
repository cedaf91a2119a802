// The tables of the transparent audit log, as drizzle sees them (migrations/0028_audit_log.sql, 0045_pruning.sql).
import { blob, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { time } from './columns.ts'

/** The tables whose rows get leaves. */
export const logSources = ['exchanges', 'changes', 'records'] as const
export type LogSource = (typeof logSources)[number]

/** The code of leaves that cover exchanges; src/audit-log/entry.ts has the others. */
export const exchangeEntryKind = 1

/** What leaves commit to that is in no other table. */
export const logRecordKinds = ['start', 'usage_day', 'key', 'restore', 'erasure', 'pruning'] as const
export type LogRecordKind = (typeof logRecordKinds)[number]

export const logRecords = sqliteTable('log_records', {
  id: integer('id').primaryKey(),
  at: time('at').notNull(),
  kind: text('kind', { enum: logRecordKinds }).notNull(),
  body: text('body').notNull(),
})

export const logEntries = sqliteTable('log_entries', {
  leaf: integer('leaf').primaryKey(),
  kind: integer('kind').notNull(),
  ref: integer('ref').notNull(),
  at: time('at').notNull(),
  salt: blob('salt', { mode: 'buffer' }),
  commitment: blob('commitment', { mode: 'buffer' }).notNull(),
})

export const logNodes = sqliteTable(
  'log_nodes',
  {
    level: integer('level').notNull(),
    number: integer('number').notNull(),
    hash: blob('hash', { mode: 'buffer' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.level, table.number] })],
)

/** Ranges of whole tiles whose entries are gone, or about to go. */
export const logPruned = sqliteTable('log_pruned', {
  firstLeaf: integer('first_leaf').primaryKey(),
  endLeaf: integer('end_leaf').notNull(),
  archiveId: integer('archive_id').notNull(),
})

export const logPositions = sqliteTable('log_positions', {
  source: text('source', { enum: logSources }).primaryKey(),
  ref: integer('ref').notNull(),
})

export const logEpochs = sqliteTable('log_epochs', {
  number: integer('number').primaryKey(),
  name: text('name').notNull(),
  beganAt: time('began_at').notNull(),
})

export const logCheckpoints = sqliteTable(
  'log_checkpoints',
  {
    epoch: text('epoch').notNull(),
    size: integer('size').notNull(),
    at: time('at').notNull(),
    note: text('note').notNull(),
    /** When a signature of a witness was brought back; null without one. */
    cosignedAt: time('cosigned_at'),
  },
  (table) => [primaryKey({ columns: [table.epoch, table.size] })],
)

export const auditKeys = sqliteTable('audit_keys', {
  id: text('id').primaryKey(),
  publicKey: text('public_key').notNull(),
  privateKeyEncrypted: text('private_key_encrypted').notNull(),
  createdAt: time('created_at').notNull(),
  retiredAt: time('retired_at'),
})

export type LogCheckpoint = typeof logCheckpoints.$inferSelect
export type AuditKey = typeof auditKeys.$inferSelect
