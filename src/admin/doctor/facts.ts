// Collects what the doctor's rules judge: from memory, the database, the disk and the files of the settings. Nothing is fetched.
import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { judgedSince, readBudgetedKeys, readPolicyStates } from '../../../db/read/attention.ts'
import { readSchemaVersion } from '../../../db/read/facts.ts'
import { mapInSlices } from '../../../db/read/pace.ts'
import { readWaiting } from '../../../db/remote/waiting-file.ts'
import type { Organization } from '../../../db/schema/schema.ts'
import { readDeliveryStates } from '../../../db/tables/alerts.ts'
import { listNodes } from '../../../db/tables/nodes.ts'
import { causeOf } from '../../fault.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import { emptyKeySet } from '../../federation/issuer/key-expiry.ts'
import { isEntitled } from '../../federation/policy-binding.ts'
import type { Rest } from '../../inference/queue/circuit.ts'
import { neverUsedAgeMilliseconds } from '../../limits.ts'
import { waitingPath } from '../../nodes/grace.ts'
import { readSpace } from '../../runtime/disk-space.ts'
import { describeDenial, statIfReachable } from '../../runtime/file-access.ts'
import { firstToExpire, type Validity } from '../../values/certificates.ts'
import type { Needs } from '../operation/context.ts'
import { type IssuerFacts, isDown, type UpstreamFacts } from './issuer-rules.ts'
import { budgetShare, type FailingWebhook, type OrganizationFacts, type PolicyFacts } from './organization-rules.ts'
import type { BackupFacts, ServerFacts } from './server-rules.ts'
import { readSpentBudgets } from './spent-budgets.ts'
import { readUnpriced } from './unpriced.ts'

export type OrganizationContext = Needs<
  'reader' | 'registry' | 'issuerKeys' | 'spending' | 'budgets' | 'lastUses' | 'clockDifferences' | 'dispatch' | 'now'
>

/** The facts of all organizations, or of one. Other requests go on meanwhile. `showsCauses`: why fetches failed, for those who may know. */
export async function readOrganizations(
  context: OrganizationContext,
  { only, showsCauses = false }: { only?: string | undefined; showsCauses?: boolean } = {},
): Promise<(OrganizationFacts & { id: string })[]> {
  const { registry } = context
  const since = await judgedSince(context.reader)
  const policies = await readPolicies(context, since, only)
  const issuers = await readIssuers(context, only, showsCauses)
  const budgets = await readBudgets(context, only)
  const spentBudgets = await readSpentBudgets(context, only)
  const unpriced = await readUnpriced(context, only)
  const webhooks = await readWebhooks(context)
  const isAlone = registry.organizations.size === 1
  const wanted = [...registry.organizations.values()].filter(({ id }) => only === undefined || id === only)
  return wanted.map((organization: Organization) => ({
    id: organization.id,
    organization: isAlone || only !== undefined ? undefined : organization.name,
    isEntitled: isEntitled(organization),
    issuers: issuers.get(organization.id) ?? [],
    policies: policies.get(organization.id) ?? { total: 0, names: new Map() },
    exchangesSince: since,
    budgets: budgets.get(organization.id) ?? [],
    spentBudgets: spentBudgets.get(organization.id) ?? [],
    unpriced: unpriced.get(organization.id),
    webhooks: webhooks.get(organization.id) ?? [],
  }))
}

type OrganizationRow = { organizationId: string }

/** Names only, by problem: there can be very many policies. */
async function readPolicies(
  { reader, now, lastUses }: Needs<'reader' | 'lastUses' | 'now'>,
  issuedSince: number,
  only: string | undefined,
) {
  const found = new Map<string, PolicyFacts>()
  const at = now()
  const madeUntil = at - neverUsedAgeMilliseconds
  for await (const slice of readPolicyStates(reader, { now: at, issuedSince, madeUntil, organizationId: only }))
    for (const { organizationId, total, states } of slice) {
      const facts = found.get(organizationId) ?? { total: 0, names: new Map() }
      found.set(organizationId, facts)
      facts.total += total
      for (const [id, name, problem] of states) {
        const kind = problem ?? ((lastUses.usedLately(id) ?? -1) >= issuedSince ? undefined : 'never_issued')
        if (kind === undefined) continue
        const names = facts.names.get(kind)
        if (names === undefined) facts.names.set(kind, [name])
        else names.push(name)
      }
    }
  return found
}

async function readBudgets({ reader, spending, now }: Needs<'reader' | 'spending' | 'now'>, only: string | undefined) {
  const at = now()
  const near: (OrganizationFacts['budgets'][number] & OrganizationRow)[] = []
  for await (const rows of readBudgetedKeys(reader, at, only))
    for (const { id, name, organizationId, limitNanodollars: limit, limitReset } of rows) {
      const spent = spending.of(id, at)[limitReset ?? 'ever']
      if (spent >= budgetShare * limit) near.push({ organizationId, name, spent, limit })
    }
  return Map.groupBy(near, ({ organizationId }) => organizationId)
}

async function readWebhooks({ registry, reader }: Needs<'registry' | 'reader'>) {
  if (registry.webhooks.size === 0) return new Map<string, FailingWebhook[]>()
  const failing: (FailingWebhook & OrganizationRow)[] = []
  for (const { webhookId, failingSince, attempts, problem } of await readDeliveryStates(reader)) {
    const { name, organizationId, enabled, deletedAt } = registry.webhooks.get(webhookId) ?? {}
    if (name === undefined || organizationId === undefined || failingSince === null) continue
    if (enabled !== true || deletedAt !== null) continue
    failing.push({ organizationId, name, attempts: attempts ?? 0, since: failingSince, problem: problem ?? '' })
  }
  return Map.groupBy(failing, ({ organizationId }) => organizationId)
}

async function readIssuers(
  {
    registry,
    issuerKeys,
    clockDifferences,
    dispatch,
  }: Needs<'registry' | 'issuerKeys' | 'clockDifferences' | 'dispatch'>,
  only: string | undefined,
  showsCauses: boolean,
): Promise<Map<string, (IssuerFacts & OrganizationRow)[]>> {
  const live = [...registry.issuers.values()].filter(
    ({ deletedAt, organizationId }) => deletedAt === null && organizationId === (only ?? organizationId),
  )
  const toFacts = (issuer: Issuer) => {
    const { keySet, failures, failing, fetches } = issuerKeys.stateOf(issuer)
    const { keysStaleSeconds: staleSeconds, clockSkewSeconds, organizationId, name } = issuer
    return {
      organizationId,
      name,
      keys: keySet && { usableSeconds: keySet.usableMilliseconds / 1_000, staleSeconds },
      fetchFailures: failures,
      failing: failing && { since: failing.since, cause: showsCauses ? causeOf(failing.error) : undefined },
      isUnfetched: dispatch !== undefined && fetches === 0,
      expiry: expiryIn(issuer),
      isSignerRemoved: registry.bundleSigners.get(issuer.bundleSignerId ?? '')?.deletedAt != null,
      ca: validityIn(issuer.caPem),
      clockDifferences: clockDifferences?.of(issuer.id) ?? [],
      clockSkewSeconds,
    }
  }
  return Map.groupBy(await mapInSlices(live, toFacts), ({ organizationId }) => organizationId)
}

function expiryIn({ jwks, keysExpireAt, keyBundle, bundleSignerId }: Issuer): IssuerFacts['expiry'] {
  const isBundle = keyBundle !== null || bundleSignerId !== null
  if (jwks === emptyKeySet) return { isBundle, at: undefined }
  return keysExpireAt === null ? undefined : { isBundle, at: keysExpireAt }
}

export type UpstreamContext = Needs<'registry' | 'reachability' | 'circuits' | 'probes' | 'monotonic'>

export async function readUpstreamFacts(context: UpstreamContext): Promise<UpstreamFacts[]> {
  const { registry, reachability, circuits, probes, monotonic } = context
  const at = monotonic()
  const all = await mapInSlices(registry.upstreamsInOrder, (upstream) => ({
    upstream,
    failing: reachability?.failing(upstream),
    restsFor: restOf(circuits?.list(upstream, at), at),
    probeProblem: probes?.of(upstream)?.problem,
  }))
  const working = all.filter((each) => !isDown(each)).map(({ upstream }) => upstream)
  return mapInSlices(all, ({ upstream, ...state }) => ({
    ...state,
    name: upstream.name,
    ca: validityIn(upstream.caPem),
    hasOthers: upstream.models.every((pattern) => working.some((other) => other.serves(pattern))),
  }))
}

/** Milliseconds since the whole upstream rests. */
function restOf(rests: readonly Rest[] = [], at: number): number | undefined {
  const whole = rests.find(({ model }) => model === undefined)
  return whole && at - whole.since
}

/** Certificates were checked when they were saved. */
function validityIn(pem: string | null): Validity | undefined {
  return pem === null ? undefined : firstToExpire(pem)
}

type BackupContext = Needs<'config' | 'backups' | 'backupSchedule'>
export type ServerContext = BackupContext &
  Needs<'database' | 'orm' | 'retention' | 'auditLog' | 'signingKeys' | 'tlsState'>

export async function readServer(context: ServerContext): Promise<ServerFacts> {
  const { config, database, orm, tlsState, signingKeys } = context
  const { masterKey } = config
  const isFile = database.kind === 'file'
  const folder = dirname(database.path)
  const space = isFile ? await readSpaceIfKnown(folder) : undefined
  const nodes = await listNodes(orm)
  return {
    isServing: signingKeys !== undefined || nodes.some(({ isLive }) => isLive),
    nodes,
    databaseWeaknesses: (await database.shared?.weaknesses()) ?? [],
    grace: await readGrace(config),
    disk: space && { folder, ...space, database: sizeOf(database.path) },
    // A server database may have its own snapshots, or another node that makes backups.
    backup: isFile || config.backup !== undefined ? await readBackup(context) : undefined,
    isArchiveFailing: context.retention.isFailing(),
    auditLog: readAuditLog(context),
    masterKeyFile: masterKey.kind === 'file' ? { path: masterKey.path, mode: modeOf(masterKey.path) } : undefined,
    tls: tlsState?.(),
    schema: await readSchemaVersion(database.client),
  }
}

/** The file of the node on this machine, which this process may not be. */
async function readGrace(config: ServerContext['config']): Promise<ServerFacts['grace']> {
  const path = waitingPath(config)
  if (path === undefined) return undefined
  const { found } = await readWaiting(path).catch(() => ({ found: [] }))
  const refused = [`${path}.refused`, `${path}.damaged`].filter((each) => statIfReachable(each) !== undefined)
  const waiting = found.reduce((sum, { usage }) => sum + usage.length, 0)
  return { path, milliseconds: config.databaseServer?.grace?.milliseconds ?? 0, waiting, refused }
}

/** A folder that is missing is created with the first checkpoint. */
function readAuditLog({ auditLog }: Needs<'auditLog'>): ServerFacts['auditLog'] {
  const { failure, folderFailure, cosignedAt, checkpointAt, servingSince } = auditLog.state()
  const { mode, folder } = auditLog.settings
  const denial =
    mode === 'off' || folder === undefined ? undefined : describeDenial(join(folder, 'file'), { toWrite: true })
  const completeAt = servingSince === undefined ? undefined : Math.max(checkpointAt ?? 0, servingSince)
  return { failure, folderFailure: folderFailure ?? denial, completeAt, cosignedAt }
}

async function readBackup({ config, backups, backupSchedule }: BackupContext): Promise<BackupFacts> {
  const { folder, everyMilliseconds = 0 } = config.backup ?? {}
  const failure = backupSchedule.isFailing() ? (backups.state().lastFailure?.reason ?? 'see the log') : undefined
  const free = folder === undefined ? undefined : (await readSpaceIfKnown(folder))?.free
  await backupSchedule.look()
  return { folder, everyMilliseconds, newestAt: backupSchedule.newestAt(), failure, free }
}

const readSpaceIfKnown = (folder: string) => readSpace(folder).catch(() => undefined)

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

function modeOf(path: string): number | undefined {
  try {
    return statSync(path).mode
  } catch {
    return undefined
  }
}
