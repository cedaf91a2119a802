// The append-only tables: exchanges, inference requests with their daily totals, and admin changes. Also the archives, which
// hold old rows of the first two.
import { integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { archiveKinds } from './archive-kinds.ts'
import { flag, time } from './columns.ts'
import { roles } from './value-names.ts'

export const grantNames = ['token-exchange', 'jwt-bearer'] as const

export const exchangeAudit = sqliteTable('exchange_audit', {
  id: integer('id').primaryKey(),
  at: time('at').notNull(),
  requestId: text('request_id').notNull(),
  outcome: text('outcome', { enum: ['issued', 'refused'] }).notNull(),
  error: text('error'),
  reason: text('reason'),
  detail: text('detail'),
  organizationId: text('organization_id'),
  policyId: text('policy_id'),
  issuerId: text('issuer_id'),
  keyId: text('key_id'),
  policyNamed: text('policy_named'),
  subject: text('subject'),
  subjectTokenId: text('subject_token_id'),
  subjectTokenSha256: text('subject_token_sha256'),
  accessTokenId: text('access_token_id'),
  accessTokenExpiresAt: time('access_token_expires_at'),
  clientAddress: text('client_address'),
  recordedClaims: text('recorded_claims'),
  attribution: text('attribution'),
  grant: text('grant', { enum: grantNames }),
})

export const changeActors = ['local', 'key', 'server'] as const
export const changeKinds = [
  'organization',
  'workspace',
  'key',
  'issuer',
  'policy',
  'signing_key',
  'upstream',
  'price',
  'preset',
  'user',
  'archive',
  'document',
  'bundle_signer',
  'budget',
  'webhook',
  'session',
] as const

export const adminChanges = sqliteTable('admin_changes', {
  id: integer('id').primaryKey(),
  at: time('at').notNull(),
  actor: text('actor', { enum: changeActors }).notNull(),
  actorKeyId: text('actor_key_id'),
  requestId: text('request_id'),
  operation: text('operation').notNull(),
  organizationId: text('organization_id'),
  kind: text('kind').$type<(typeof changeKinds)[number]>().notNull(),
  targetId: text('target_id').notNull(),
  before: text('before'),
  after: text('after'),
  osUser: text('os_user'),
  sudoUser: text('sudo_user'),
  groupId: text('group_id'),
  sessionId: text('session_id'),
  /** A random id of the change; null for changes of older programs. */
  lineage: text('lineage'),
  /** Whom an issuer signed in, where that person made the change. */
  actorIssuer: text('actor_issuer'),
  actorSubject: text('actor_subject'),
})

export const usageUnits = ['character', 'image', 'audio_second'] as const

export const usage = sqliteTable('usage', {
  id: integer('id').primaryKey(),
  at: time('at').notNull(),
  requestId: text('request_id').notNull(),
  organizationId: text('organization_id').notNull(),
  workspaceId: text('workspace_id').notNull(),
  keyId: text('key_id').notNull(),
  policyId: text('policy_id'),
  issuerId: text('issuer_id'),
  subject: text('subject'),
  accessTokenId: text('access_token_id'),
  endpoint: text('endpoint').notNull(),
  model: text('model'),
  status: integer('status').notNull(),
  streamed: flag('streamed').notNull(),
  completed: flag('completed').notNull(),
  promptTokens: integer('prompt_tokens'),
  completionTokens: integer('completion_tokens'),
  totalTokens: integer('total_tokens'),
  usageSource: text('usage_source', { enum: ['upstream', 'none'] }).notNull(),
  durationMilliseconds: integer('duration_milliseconds').notNull(),
  modelAsked: text('model_asked'),
  upstream: text('upstream'),
  presetVersion: text('preset_version'),
  cachedTokens: integer('cached_tokens'),
  reasoningTokens: integer('reasoning_tokens'),
  costNanodollars: integer('cost_nanodollars'),
  firstByteMilliseconds: integer('first_byte_milliseconds'),
  clientLeft: flag('client_left').notNull(),
  /** The completion tokens, and what follows from them, are the least value, from the content that passed. */
  estimated: flag('estimated').notNull(),
  /** Whose usage it is: verified at the exchange, or sent by a trusted front end. */
  attribution: text('attribution'),
  /** What the caller says. Nothing relies on it. */
  endUser: text('end_user'),
  sessionId: text('session_id'),
  metadata: text('metadata'),
  /** What was counted in addition to tokens, and how much of it. */
  unit: text('unit', { enum: usageUnits }),
  units: real('units'),
  /** The price of the model that the cost was computed with; null where the upstream said it, or nobody knows. */
  price: text('price'),
  /** How many upstreams were tried. */
  attempts: integer('attempts'),
  /** Why it failed: the reason of the refusal; null where the upstream itself said so. */
  error: text('error'),
})

/** Responses that upstreams keep for later requests. Only the key that made one may name it. */
export const storedResponses = sqliteTable('stored_responses', {
  id: integer('id').primaryKey(),
  responseId: text('response_id').notNull(),
  keyId: text('key_id').notNull(),
  upstreamId: text('upstream_id').notNull(),
  createdAt: time('created_at').notNull(),
})

export const dayTotals = sqliteTable(
  'day_totals',
  {
    keyId: text('key_id').notNull(),
    day: integer('day').notNull(),
    requests: integer('requests').notNull(),
    promptTokens: integer('prompt_tokens').notNull(),
    completionTokens: integer('completion_tokens').notNull(),
    totalTokens: integer('total_tokens').notNull(),
    costNanodollars: integer('cost_nanodollars').notNull(),
    requestsWithoutCost: integer('requests_without_cost').notNull(),
  },
  (table) => [primaryKey({ columns: [table.keyId, table.day] })],
)

/** The newest row of the ledger that `day_totals` and `hour_totals` include (write/usage-sums.ts). */
export const usageSummed = sqliteTable('usage_summed', {
  id: integer('id').primaryKey(),
  usageId: integer('usage_id').notNull(),
})
/** The same in SQL; 0 before the first request. */
export const summedUsageId = '(select coalesce(max(usage_id), 0) from usage_summed)'

/** Sessions of the admin page. `keyUpdatedAt`: when its key was last changed before the session began. */
export const sessions = sqliteTable('sessions', {
  id: text('id').primaryKey(),
  organizationId: text('organization_id').notNull(),
  keyId: text('key_id').notNull(),
  keyUpdatedAt: time('key_updated_at').notNull(),
  tokenSha256: text('token_sha256').notNull(),
  openedBy: text('opened_by'),
  clientAddress: text('client_address'),
  createdAt: time('created_at').notNull(),
  usedAt: time('used_at').notNull(),
  endedAt: time('ended_at'),
  role: text('role', { enum: roles }),
  /** What a session of a person rests on; null where a key or link began it. `validUntil`: when the issuer must say again who it is. */
  policyId: text('policy_id'),
  policyUpdatedAt: time('policy_updated_at'),
  issuerId: text('issuer_id'),
  issuerUpdatedAt: time('issuer_updated_at'),
  issuerUrl: text('issuer_url'),
  subject: text('subject'),
  person: text('person'),
  providerSession: text('provider_session'),
  validUntil: time('valid_until'),
})

/** By the id of a policy, key, issuer or preset. */
export const lastUses = sqliteTable('last_uses', {
  id: text('id').primaryKey(),
  usedAt: time('used_at'),
  refusedAt: time('refused_at'),
  refusedReason: text('refused_reason'),
})

export const usedSubjectTokens = sqliteTable(
  'used_subject_tokens',
  {
    issuerId: text('issuer_id').notNull(),
    tokenIdSha256: text('token_id_sha256').notNull(),
    expiresAt: time('expires_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.issuerId, table.tokenIdSha256] })],
)

/** One-time links to the admin page. Times are by the clock of the database. */
export const signInLinks = sqliteTable('sign_in_links', {
  codeSha256: text('code_sha256').primaryKey(),
  keyId: text('key_id').notNull(),
  readOnly: flag('read_only').notNull(),
  openedBy: text('opened_by'),
  createdAt: time('created_at').notNull(),
  expiresAt: time('expires_at').notNull(),
  usedAt: time('used_at'),
})

/** A file that holds old rows. */
export const archives = sqliteTable('archives', {
  id: integer('id').primaryKey(),
  kind: text('kind', { enum: archiveKinds }).notNull(),
  state: text('state', { enum: ['writing', 'verified', 'removing', 'finished'] }).notNull(),
  folder: text('folder').notNull(),
  file: text('file').notNull(),
  firstRowId: integer('first_row_id').notNull(),
  lastRowId: integer('last_row_id').notNull(),
  /** The file holds the rows of its range that are older than this time. */
  before: time('before').notNull(),
  firstAt: time('first_at').notNull(),
  lastAt: time('last_at').notNull(),
  rowCount: integer('row_count').notNull(),
  /** Ids of the organizations that the rows belong to; null for exchanges that named an unknown policy. */
  organizations: text('organizations', { mode: 'json' }).$type<(string | null)[]>().notNull(),
  bytes: integer('bytes'),
  sha256: text('sha256'),
  createdAt: time('created_at').notNull(),
  finishedAt: time('finished_at'),
  /** The host that wrote the file; null in a database file. */
  node: text('node'),
  /** When the entries of its rows left the audit log, as far as they can; null before. */
  prunedAt: time('pruned_at'),
})

export type LastUseRow = typeof lastUses.$inferSelect
export type UsedSubjectToken = typeof usedSubjectTokens.$inferSelect
export type SessionRow = typeof sessions.$inferSelect
export type Archive = typeof archives.$inferSelect
export type AdminChange = typeof adminChanges.$inferSelect
export type AuditRow = Omit<typeof exchangeAudit.$inferSelect, 'id'>
export type UsageRow = Omit<typeof usage.$inferSelect, 'id'>
export type StoredResponse = Omit<typeof storedResponses.$inferSelect, 'id'>
