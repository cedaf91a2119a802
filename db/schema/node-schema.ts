// The tables that nodes share on a server database, and the row by which each tries whether commits succeed. In a database file, nodes and
// batches stay empty.
import { blob, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { time } from './columns.ts'

/** The clock of the database, in milliseconds since 1970 UTC. Clocks of nodes can differ. */
export const databaseTime = "cast(unixepoch('subsec') * 1000 as integer)"
/** A node that has not reported for this long is not counted. */
export const nodeMilliseconds = 5_000

export const installation = sqliteTable('installation', { id: text('id').primaryKey() })

export const nodes = sqliteTable('nodes', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  version: text('version').notNull(),
  schemaVersion: integer('schema_version').notNull(),
  /** By the clock of the database, as all times of this table. */
  startedAt: time('started_at').notNull(),
  lastSeenAt: time('last_seen_at').notNull(),
  /** The newest admin change that the node obeys. */
  revision: integer('revision').notNull(),
  /** Null for a program without it, as is the offset. */
  baseUrl: text('base_url'),
  /** How many milliseconds the clock of the node is ahead of the database. */
  clockOffset: integer('clock_offset'),
})

/** Who archives old rows of a server database. */
export const archiveLease = sqliteTable('archive_lease', {
  id: integer('id').primaryKey(),
  holder: text('holder').notNull(),
  until: time('until').notNull(),
})

/** A commit that was sent with this id. */
export const batches = sqliteTable('batches', {
  number: integer('number').primaryKey(),
  id: text('id').notNull(),
  at: time('at').notNull(),
})

export type NodeRow = typeof nodes.$inferSelect

/** One row, rewritten by health checks (write-probe.ts). */
export const writeProbe = sqliteTable('write_probe', {
  id: integer('id').primaryKey(),
  at: time('at').notNull(),
  filler: blob('filler'),
})
