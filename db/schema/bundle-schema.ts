// The tables of signed bundles of issuer keys, as drizzle sees them.
import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { time } from './columns.ts'

export const bundleAlgorithms = ['EdDSA', 'ES256'] as const

export const bundleSigners = sqliteTable('bundle_signers', {
  id: text('id').primaryKey(),
  organizationId: text('organization_id').notNull(),
  name: text('name').notNull(),
  algorithm: text('algorithm', { enum: bundleAlgorithms }).notNull(),
  keyId: text('key_id').notNull(),
  publicJwk: text('public_jwk').notNull(),
  createdAt: time('created_at').notNull(),
  updatedAt: time('updated_at').notNull(),
  deletedAt: time('deleted_at'),
})

/** The newest bundle that a key signed for an issuer. */
export const bundleSequences = sqliteTable(
  'bundle_sequences',
  {
    organizationId: text('organization_id').notNull(),
    keyId: text('key_id').notNull(),
    issuerUrl: text('issuer_url').notNull(),
    sequence: integer('sequence').notNull(),
    importedAt: time('imported_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.organizationId, table.keyId, table.issuerUrl] })],
)

/** The bundle that an issuer's keys came from. Times in milliseconds. */
export type KeyBundleRecord = {
  signerId: string
  keyId: string
  packer: string
  sequence: number
  issuedAt: number
  refreshHintSeconds: number | null
  sha256: string
  evidence: Record<string, string>
}

export type BundleSigner = typeof bundleSigners.$inferSelect
export type BundleSequence = typeof bundleSequences.$inferSelect
