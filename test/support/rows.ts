// A database for one test, and rows for it: an organization with everything that a policy, an audit row or a usage row
// names.
import { join } from 'node:path'
import type { Database } from '../../db/file/open.ts'
import type { Revision, SharedDatabase } from '../../db/remote/shared-database.ts'
import { firstPosition } from '../../db/remote/shared-database.ts'
import type { AuditRow, UsageRow } from '../../db/schema/record-schema.ts'
import type { ApiKey, Issuer, Organization, Policy, User, Workspace } from '../../db/schema/schema.ts'
import { insertApiKey } from '../../db/tables/api-keys.ts'
import { insertIssuer } from '../../db/tables/issuers.ts'
import { insertOrganization, insertUser, insertWorkspace } from '../../db/tables/organizations.ts'
import { insertPolicy } from '../../db/tables/policies.ts'
import type { NodeMemory } from '../../db/write/change-queue.ts'
import type { Statement } from '../../db/write/rows.ts'
import { openConfigured } from '../../src/nodes/load.ts'
import { loadConfig } from '../../src/settings/config.ts'
import { temporaryFolder } from './latchkey.ts'
import { serverKindFor } from './server-kind.ts'

const times = { createdAt: 1, updatedAt: 1, deletedAt: null, managedBy: null }

/** `following` is for a writer that plans changes again on a server database. */
export type TestDatabase = {
  database: Database
  path: string
  following: NodeMemory | undefined
  close: () => Promise<void>
}

/** Creates a database in a new folder. Its path is the URL of a server database. */
export async function createDatabase(): Promise<TestDatabase> {
  const folder = temporaryFolder()
  const server = await serverKindFor(folder.path)
  const settings = server?.settings ?? { LATCHKEY_DATABASE_URL: `file:${join(folder.path, 'latchkey.db')}` }
  const database = await openConfigured(loadConfig({ flags: settings, environment: {} }), true)
  if ('refused' in database) throw new Error(database.message)
  const close = async () => {
    await database.close()
    await server?.close()
    folder.remove()
  }
  return { database, path: database.path, following: database.shared && followingOf(database.shared), close }
}

function followingOf(shared: SharedDatabase): NodeMemory {
  let { revision } = firstPosition
  const advance = (to: Revision) => {
    if (to.id > revision.id) revision = to
  }
  const refresh = async () =>
    advance((await shared.refresh({ ...firstPosition, usageId: Number.MAX_SAFE_INTEGER })).revision)
  const takeIn: NodeMemory['takeIn'] = async (committed, load) => {
    if (await load()) advance(committed.revision ?? firstPosition.revision)
  }
  return { revision: () => revision, refresh, takeIn }
}

export type OrganizationRows = {
  organization: Organization
  workspace: Workspace
  user: User
  key: ApiKey
  issuer: Issuer
  policy: Policy
}

/** Rows of one organization. Their ids and names start with `name`. */
export function organizationRows(name: string): OrganizationRows {
  const organization: Organization = {
    ...{ id: name, name, plan: 'enterprise', createdAt: 1, updatedAt: 1 },
    recordClaims: 'selected',
    timeZone: null,
    budgetHeaders: false,
    upstreamHeaders: false,
  }
  const within = { organizationId: name }
  const workspace: Workspace = { id: `${name}-workspace`, ...within, name: 'default', createdAt: 1 }
  const user: User = { id: `${name}-user`, ...within, name: 'admin', createdAt: 1 }
  const key: ApiKey = {
    id: `${name}-key`,
    ...within,
    workspaceId: workspace.id,
    userId: user.id,
    name: 'key',
    kind: 'inference',
    hash: name.padEnd(64, '0'),
    label: 'sk-lk-v1-…',
    previousHash: '',
    previousUntil: 0,
    disabled: false,
    expiresAt: null,
    limitNanodollars: null,
    limitReset: null,
    requestsPerMinute: null,
    tokensPerMinute: null,
    allowedModels: null,
    allowedPresets: null,
    labels: null,
    attributeFromHeader: null,
    role: null,
    ...{
      concurrentRequests: null,
      queueClass: 'normal' as const,
      queueWeight: 1,
      queueSeconds: 30,
      fairBy: 'key' as const,
    },
    ...times,
  }
  const issuer: Issuer = {
    id: `${name}-issuer`,
    ...within,
    name: 'issuer',
    issuerUrl: 'https://idp.example.com',
    keySource: 'discovery',
    jwksUrl: null,
    jwks: null,
    clockSkewSeconds: 30,
    maxTokenAgeSeconds: null,
    caPem: null,
    keysStaleSeconds: 86_400,
    bundleSignerId: null,
    loginClientId: null,
    loginScopes: null,
    loginRedirectUri: null,
    pageClientId: null,
    pageAuthentication: 'none' as const,
    pageSecretEncrypted: null,
    pageMaxAgeSeconds: null,
    keysExpireAt: null,
    keyBundle: null,
    shared: null,
    ...times,
  }
  const policy: Policy = {
    id: `${name}-policy`,
    ...within,
    issuerId: issuer.id,
    keyId: key.id,
    description: null,
    name: 'policy',
    audience: 'latchkey',
    subject: 'workload',
    condition: null,
    conditionEnvironment: null,
    attributeTo: null,
    attributeEnvironment: null,
    requiredScope: null,
    requiredTokenType: null,
    enabled: true,
    maxLifetimeSeconds: 900,
    replayProtection: false,
    allowedModels: null,
    allowedPresets: null,
    lintExceptions: null,
    tests: null,
    ...times,
  }
  return { organization, workspace, user, key, issuer, policy }
}

export function insertOrganizationRows({ orm }: Database, rows: OrganizationRows): Statement[] {
  return [
    insertOrganization(orm, rows.organization),
    insertWorkspace(orm, rows.workspace),
    insertUser(orm, rows.user),
    insertApiKey(orm, rows.key),
    insertIssuer(orm, rows.issuer),
    insertPolicy(orm, rows.policy),
  ]
}

export function auditRow(requestId: string): AuditRow {
  return {
    at: 1,
    requestId,
    outcome: 'refused',
    error: 'invalid_grant',
    reason: 'policy_unknown',
    detail: null,
    organizationId: null,
    policyId: null,
    issuerId: null,
    keyId: null,
    policyNamed: null,
    subject: null,
    subjectTokenId: null,
    subjectTokenSha256: null,
    accessTokenId: null,
    accessTokenExpiresAt: null,
    clientAddress: null,
    recordedClaims: null,
    attribution: null,
    grant: 'token-exchange',
  }
}

export function usageRow(requestId: string, { organization, workspace, key }: OrganizationRows): UsageRow {
  return {
    at: 1,
    requestId,
    organizationId: organization.id,
    workspaceId: workspace.id,
    keyId: key.id,
    policyId: null,
    issuerId: null,
    subject: null,
    accessTokenId: null,
    endpoint: '/chat/completions',
    model: 'echo',
    status: 200,
    streamed: true,
    completed: true,
    promptTokens: 1,
    completionTokens: 2,
    totalTokens: 3,
    usageSource: 'upstream',
    durationMilliseconds: 4,
    modelAsked: null,
    upstream: null,
    presetVersion: null,
    cachedTokens: null,
    reasoningTokens: null,
    costNanodollars: null,
    firstByteMilliseconds: null,
    clientLeft: false,
    estimated: false,
    attribution: null,
    endUser: null,
    sessionId: null,
    metadata: null,
    unit: null,
    units: null,
    price: null,
    attempts: null,
    error: null,
  }
}
