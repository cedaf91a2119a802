// The tables of configuration and working state, as drizzle sees them; a test compares them with migrations/.
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { KeyBundleRecord } from './bundle-schema.ts'
import { flag, names, pairs, time } from './columns.ts'
import type { LintException, PolicyTest } from './policy-parts.ts'
import { fairBys, keyKinds, keySources, limitResets, pageAuthentications, queueClasses, roles } from './value-names.ts'

export const planNames = ['free', 'business', 'enterprise'] as const
export const presetStatuses = ['active', 'disabled', 'archived'] as const
/** What the audit keeps of the claims of a verified token. */
export const claimRecordings = ['off', 'hashed', 'selected', 'all'] as const

export const organizations = sqliteTable('organizations', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  plan: text('plan', { enum: planNames }).notNull(),
  createdAt: time('created_at').notNull(),
  updatedAt: time('updated_at').notNull(),
  recordClaims: text('record_claims', { enum: claimRecordings }).notNull(),
  timeZone: text('time_zone'),
  budgetHeaders: flag('budget_headers').notNull(),
  upstreamHeaders: flag('upstream_headers').notNull(),
})

export const workspaces = sqliteTable('workspaces', {
  id: text('id').primaryKey(),
  organizationId: text('organization_id').notNull(),
  name: text('name').notNull(),
  createdAt: time('created_at').notNull(),
})

export const users = sqliteTable('users', {
  id: text('id').primaryKey(),
  organizationId: text('organization_id').notNull(),
  name: text('name').notNull(),
  createdAt: time('created_at').notNull(),
})

export const apiKeys = sqliteTable('api_keys', {
  id: text('id').primaryKey(),
  organizationId: text('organization_id').notNull(),
  workspaceId: text('workspace_id').notNull(),
  userId: text('owner_id').notNull(),
  name: text('name').notNull(),
  kind: text('kind', { enum: keyKinds }).notNull(),
  hash: text('hash').notNull(),
  label: text('label').notNull(),
  disabled: flag('disabled').notNull(),
  createdAt: time('created_at').notNull(),
  updatedAt: time('updated_at').notNull(),
  deletedAt: time('deleted_at'),
  expiresAt: time('expires_at'),
  limitNanodollars: integer('limit_nanodollars'),
  limitReset: text('limit_reset', { enum: limitResets }),
  requestsPerMinute: integer('requests_per_minute'),
  tokensPerMinute: integer('tokens_per_minute'),
  allowedModels: names('allowed_models'),
  allowedPresets: names('allowed_presets'),
  managedBy: text('managed_by'),
  labels: pairs('labels'),
  /** The header that says whose usage a call with this key is. */
  attributeFromHeader: text('attribute_from_header'),
  concurrentRequests: integer('concurrent_requests'),
  queueClass: text('queue_class', { enum: queueClasses }).notNull(),
  queueWeight: integer('queue_weight').notNull(),
  queueSeconds: integer('queue_seconds').notNull(),
  fairBy: text('fair_by', { enum: fairBys }).notNull(),
  /** Null for an inference key. */
  role: text('role', { enum: roles }),
  /** Of the text before a rotation, which works until `previousUntil`; empty without one. */
  previousHash: text('previous_hash').notNull(),
  previousUntil: time('previous_until').notNull(),
})

export const issuers = sqliteTable('issuers', {
  id: text('id').primaryKey(),
  organizationId: text('organization_id').notNull(),
  name: text('name').notNull(),
  issuerUrl: text('issuer_url').notNull(),
  keySource: text('key_source', { enum: keySources }).notNull(),
  jwksUrl: text('jwks_url'),
  jwks: text('jwks'),
  clockSkewSeconds: integer('clock_skew_seconds').notNull(),
  createdAt: time('created_at').notNull(),
  updatedAt: time('updated_at').notNull(),
  deletedAt: time('deleted_at'),
  maxTokenAgeSeconds: integer('max_token_age_seconds'),
  caPem: text('ca_pem'),
  keysStaleSeconds: integer('keys_stale_seconds').notNull(),
  managedBy: text('managed_by'),
  bundleSignerId: text('bundle_signer_id'),
  keysExpireAt: time('keys_expire_at'),
  keyBundle: text('key_bundle', { mode: 'json' }).$type<KeyBundleRecord>(),
  /** Whether strangers can get its tokens, as an administrator answered. */
  shared: flag('shared'),
  loginClientId: text('login_client_id'),
  loginScopes: text('login_scopes'),
  loginRedirectUri: text('login_redirect_uri'),
  pageClientId: text('page_client_id'),
  pageAuthentication: text('page_authentication', { enum: pageAuthentications }).notNull(),
  pageSecretEncrypted: text('page_secret_encrypted'),
  pageMaxAgeSeconds: integer('page_max_age_seconds'),
})

export const issuerKeySets = sqliteTable('issuer_key_sets', {
  issuerId: text('issuer_id').primaryKey(),
  source: text('source').notNull(),
  jwks: text('jwks').notNull(),
  fetchedAt: time('fetched_at').notNull(),
  freshUntil: time('fresh_until').notNull(),
})

export const policies = sqliteTable('policies', {
  id: text('id').primaryKey(),
  organizationId: text('organization_id').notNull(),
  issuerId: text('issuer_id').notNull(),
  keyId: text('key_id').notNull(),
  name: text('name').notNull(),
  audience: text('audience').notNull(),
  subject: text('subject'),
  condition: text('condition'),
  requiredScope: text('required_scope'),
  requiredTokenType: text('required_token_type'),
  enabled: flag('enabled').notNull(),
  maxLifetimeSeconds: integer('max_lifetime_seconds').notNull(),
  createdAt: time('created_at').notNull(),
  updatedAt: time('updated_at').notNull(),
  deletedAt: time('deleted_at'),
  conditionEnvironment: integer('condition_environment'),
  replayProtection: flag('replay_protection').notNull(),
  allowedModels: names('allowed_models'),
  allowedPresets: names('allowed_presets'),
  lintExceptions: text('lint_exceptions', { mode: 'json' }).$type<LintException[]>(),
  tests: text('tests', { mode: 'json' }).$type<PolicyTest[]>(),
  managedBy: text('managed_by'),
  description: text('description'),
  attributeTo: text('attribute_to'),
  attributeEnvironment: integer('attribute_environment'),
})

/** By organization and owner; `owner` is null for documents without one. `locked`: edits by hand are refused. */
export const configDocuments = sqliteTable('config_documents', {
  id: text('id').primaryKey(),
  organizationId: text('organization_id').notNull(),
  owner: text('owner'),
  locked: flag('locked').notNull(),
  sha256: text('sha256'),
  revision: text('revision'),
  createdAt: time('created_at').notNull(),
  updatedAt: time('updated_at').notNull(),
})

export const presets = sqliteTable('presets', {
  id: text('id').primaryKey(),
  organizationId: text('organization_id').notNull(),
  workspaceId: text('workspace_id').notNull(),
  slug: text('slug').notNull(),
  name: text('name').notNull(),
  description: text('description'),
  status: text('status', { enum: presetStatuses }).notNull(),
  statusUpdatedAt: time('status_updated_at'),
  creatorId: text('creator_id').notNull(),
  designatedVersion: integer('designated_version').notNull(),
  latestVersion: integer('latest_version').notNull(),
  createdAt: time('created_at').notNull(),
  updatedAt: time('updated_at').notNull(),
  managedBy: text('managed_by'),
})

export const presetVersions = sqliteTable('preset_versions', {
  id: text('id').notNull(),
  presetId: text('preset_id').notNull(),
  version: integer('version').notNull(),
  config: text('config').notNull(),
  systemPrompt: text('system_prompt'),
  creatorId: text('creator_id').notNull(),
  createdAt: time('created_at').notNull(),
})

export const signingKeys = sqliteTable('signing_keys', {
  id: text('id').primaryKey(),
  algorithm: text('algorithm', { enum: ['ES256'] }).notNull(),
  publicJwk: text('public_jwk').notNull(),
  privateKeyEncrypted: text('private_key_encrypted').notNull(),
  createdAt: time('created_at').notNull(),
  activeAt: time('active_at').notNull(),
  retiredAt: time('retired_at'),
  revoked: flag('revoked').notNull(),
})

export type Organization = typeof organizations.$inferSelect
export type Workspace = typeof workspaces.$inferSelect
export type User = typeof users.$inferSelect
export type ApiKey = typeof apiKeys.$inferSelect
export type Issuer = typeof issuers.$inferSelect
export type IssuerKeySet = typeof issuerKeySets.$inferSelect
export type Policy = typeof policies.$inferSelect
export type SigningKey = typeof signingKeys.$inferSelect
export type ConfigDocument = typeof configDocuments.$inferSelect
export type Preset = typeof presets.$inferSelect
export type PresetVersion = typeof presetVersions.$inferSelect
