// The record that every handler and admin operation receives. This file opens a database as a context and closes it.
import { dirname } from 'node:path'
import { putIssuerKeySet, readIssuerKeySet } from '../../db/tables/issuers.ts'
import { listSigningKeys } from '../../db/tables/signing-keys.ts'
import { type CommitOutcome, createWriter, type Writer } from '../../db/write/write.ts'
import { touchWriteProbe } from '../../db/write/write-probe.ts'
import { createCommitVersion } from '../admin/operation/commit.ts'
import { type AdminContext, isInitialized, notInitialized } from '../admin/operation/context.ts'
import { createExchangeCounts } from '../admin/operation/exchange-counts.ts'
import { createLastUses, noteRows } from '../admin/operation/last-uses.ts'
import { createSlowReports } from '../admin/operation/slow-reports.ts'
import { createRevisionKey, type RevisionContext } from '../admin/sessions/configuration-revision.ts'
import type { SignInContext } from '../admin/sign-in/sign-in-context.ts'
import { createRetention } from '../archive/schedule.ts'
import { createAuditLog } from '../audit-log/audit-log.ts'
import { createBackups } from '../backup/backups.ts'
import { createBackupSchedule } from '../backup/schedule.ts'
import { describeError } from '../fault.ts'
import { createClockDifferences } from '../federation/issuer/clock-difference.ts'
import type { Outbound } from '../federation/issuer/guarded-fetch.ts'
import { createIssuerKeys } from '../federation/issuer/issuer-keys.ts'
import { privateNetworksFor } from '../federation/issuer/issuer-url.ts'
import { adoptNewer } from '../federation/issuer/stored-keys.ts'
import { createLoginOffers } from '../federation/login-offers.ts'
import type { MetadataContext } from '../federation/metadata-endpoints.ts'
import { createClaimHash } from '../federation/recording/claim-hash.ts'
import { createClaimRecorder } from '../federation/recording/claim-recorder.ts'
import type { ExchangeContext } from '../federation/token-endpoint.ts'
import { createRateLimiter } from '../http/rate-limit.ts'
import type { InferenceContext } from '../inference/endpoint.ts'
import type { ModelsContext } from '../inference/models/endpoint.ts'
import { createModelLists } from '../inference/models/model-lists.ts'
import { createCredentials } from '../inference/upstream/credentials.ts'
import { nameInstallation } from '../inference/upstream/forwarding-loop.ts'
import { createReachability } from '../inference/upstream/reachability.ts'
import { createKeyRates } from '../keys/key-rates.ts'
import { createTokenCache } from '../keys/token-cache.ts'
import type { HealthContext } from '../monitoring/health-endpoints.ts'
import type { MetricsEndpointContext } from '../monitoring/metrics-endpoint.ts'
import { createMetricsReport } from '../monitoring/metrics-report.ts'
import { createReadiness } from '../monitoring/readiness.ts'
import { type DatabaseServers, watchDatabaseServers } from '../nodes/database-servers.ts'
import { type Grace, openGrace } from '../nodes/grace.ts'
import { joinRates, shareOf } from '../nodes/join-rates.ts'
import { loadOrRefuse, openOrRefuse, type ServerRules } from '../nodes/load.ts'
import { type AccessLog, openAccessLog } from '../observe/access-log.ts'
import { atLevel, type Log } from '../observe/log.ts'
import { countRows, createMetrics, type Metrics } from '../observe/metrics.ts'
import { createWriteCheck } from '../observe/write-check.ts'
import { createAdminPage, createSessionFinder } from '../page/page.ts'
import type { PresetContext } from '../presets/endpoints.ts'
import { createPresets } from '../presets/versions.ts'
import type { Registry } from '../registry/registry.ts'
import { isShortOfSpace } from '../runtime/disk-space.ts'
import type { Fetch } from '../runtime/outbound.ts'
import { createMutex, type SharedRun } from '../scheduling/mutex.ts'
import { createQueues } from '../scheduling/queues.ts'
import { createRunningWork } from '../scheduling/running-work.ts'
import type { Config } from '../settings/config.ts'
import { createSettingsInEffect } from '../settings/effective-settings.ts'
import { openMasterKeyText } from '../tokens/keyring.ts'
import { openSigningKeys } from '../tokens/signing-keys.ts'
import { type AlertParts, createAlertParts } from './alert-parts.ts'
import { startBudgeting } from './budgeting.ts'
import { createQueueing, type QueueContext } from './queueing.ts'
import { openReplayGuard } from './replay-guard.ts'

/** An open database, whether it is served or not. */
export type OpenContext = AdminContext & {
  random: () => number
  metrics: Metrics
  /** Changes that may run together share a turn. */
  runShared: SharedRun
  /** Whether the database takes commits. */
  isWritable: () => Promise<boolean>
  /** Whether a commit has failed, and none of a probe has succeeded since. */
  isWriteFailing: () => boolean
  budgetSlices: ReturnType<typeof startBudgeting>
  /** Undefined unless this process serves a server database and the settings say so. */
  grace: Grace | undefined
}

/** What all endpoints need; each endpoint declares its part. */
export type Context = OpenContext &
  ExchangeContext &
  InferenceContext &
  ModelsContext &
  PresetContext &
  HealthContext &
  MetadataContext &
  MetricsEndpointContext &
  RevisionContext &
  AlertParts &
  QueueContext &
  Omit<SignInContext, 'page'> & { accessLog: AccessLog; databaseServers: DatabaseServers }

/** Dependencies on the outside world, which tests replace. */
export type Dependencies = {
  now: () => number
  monotonic: () => number
  /** At least 0 and below 1. */
  random: () => number
  fetch: Fetch
  resolve: Outbound['resolve']
  usesProxy: boolean
  log: Log
  onBroken: (error: unknown) => void
}

/**
 * Opens the database, a file as its only holder. With `create`, creates a missing file and its folder. `rules` are for
 * a server database. `serves`: requests will be served.
 * @throws Fault `configuration`, or `conflict` while another process holds the file
 */
export async function openContext(
  config: Config,
  dependencies: Dependencies,
  { create, rules, serves = false }: { create: boolean; rules?: ServerRules; serves?: boolean },
): Promise<OpenContext> {
  const { now, monotonic, random, onBroken } = dependencies
  const inEffect = createSettingsInEffect(config)
  const log = atLevel(dependencies.log, () => inEffect.read().logLevel)
  const onUnknown = (batch: string, error: Error) =>
    log('error', 'commit_outcome_unknown', { batch, reason: describeError(error) })
  const onReaderEnded = (reason: string) => log('warn', 'database_reader_ended', { reason })
  const database = await openOrRefuse(config, create, { monotonic, onUnknown, onReaderEnded, ...rules })
  const { orm, reader } = database
  const writeCheck = createWriteCheck(monotonic)
  const reportBroken = (error: unknown) => {
    log('error', 'database_broken', { reason: describeError(error) })
    onBroken(error)
  }
  const metrics = createMetrics(monotonic)
  const reportCommit = (outcome: CommitOutcome) => {
    writeCheck.note(outcome.isCommitted)
    metrics.countCommit(outcome)
  }
  const { registry, spending, budgets, budgetBuilder, follow, following } = await loadOrRefuse(database, config, {
    now,
    monotonic,
    onRefresh: metrics.countRefresh,
    onReplaced: reportBroken,
  })
  const send: Writer['sendUsage'] = (...commit) => written.sendUsage(...commit)
  const grace = serves ? await openGrace({ config, send, follow, writeCheck, log }) : undefined
  const written = createWriter(database, reportBroken, reportCommit, following, grace?.commitUsage)
  const counted = countRows(written, metrics, now)
  const lastUses = createLastUses(reader, counted, registry)
  const writer = noteRows(counted, lastUses)
  const isWritable = () =>
    writeCheck.isWritable(async () => {
      const isWhole = writeCheck.isFailing() || (database.kind === 'file' && (await isShortOfSpace(database.path)))
      await writer.write([touchWriteProbe(orm, now(), { isWhole })])
    })
  registry.onDeleted.push(spending.forget, metrics.busiestKeys.forget)
  const outbound = outboundFor(config, dependencies, registry)
  const issuerKeys = createIssuerKeys({
    outbound,
    now,
    monotonic,
    random,
    log,
    graceMilliseconds: config.bundleGraceMilliseconds,
    afterWait: follow.fresh,
    adopt:
      database.shared &&
      ((issuer, into) => adoptNewer(issuer, into, { now, monotonic, read: (id) => readIssuerKeySet(orm, id) })),
    keep: async (issuer, keySet) => {
      if (registry.issuers.get(issuer.id) === issuer) await writer.write([putIssuerKeySet(orm, keySet)])
    },
  })
  const presets = createPresets({ orm, registry, now, commit: createCommitVersion({ writer, registry }) })
  const work = createRunningWork(now)
  const auditLog = createAuditLog({ ...config, database, writer, now, log })
  const copied = { database, masterKey: config.masterKey, metrics, signCheckpoint: auditLog.signCheckpoint, now }
  const backups = createBackups({ ...copied, installation: () => nameInstallation(registry) })
  const backupSchedule = createBackupSchedule({ plan: config.backup, backups, work, now, log })
  const storage = { database, orm, reader, writer, work, now, monotonic, log }
  const scheduled = { backups, backupSchedule, ...createRetention(config.retention, storage, writeCheck.quietFor) }
  const reports = { exchangeCounts: createExchangeCounts(reader, now), slowReports: createSlowReports(monotonic) }
  const kept = { spending, budgets, presets, lastUses, auditLog, ...reports, queueReads: createQueues() }
  const budgetSlices = startBudgeting({ ...storage, registry, budgets, budgetBuilder, follow })
  const stored = { config, follow, inEffect, ...storage, registry, ...kept, budgetSlices, ...createMutex() }
  const watched = { metrics, isWritable, isWriteFailing: writeCheck.isFailing }
  return { ...stored, ...scheduled, ...watched, issuerKeys, outbound, random, grace }
}

function outboundFor(config: Config, { fetch, resolve, usesProxy }: Dependencies, registry: Registry): Outbound {
  const privateNetworks = () => privateNetworksFor(config, registry.organizations.size)
  return { fetch, resolve, usesProxy, insecureIssuers: config.insecureIssuers, privateNetworks }
}

/**
 * Adds to an open database what serving requires.
 * @throws Fault `configuration` if the database was never initialized or the master key does not match
 */
export async function openServing(
  admin: OpenContext,
  { baseUrl, pageUrl, tlsState }: { baseUrl: string; pageUrl: string; tlsState?: AdminContext['tlsState'] },
  fetch: Fetch,
): Promise<Context> {
  if (!isInitialized(admin)) throw notInitialized(admin.config)
  const rows = await listSigningKeys(admin.orm)
  const { key: masterKey, hex } = await openMasterKeyText(admin.config.masterKey, rows)
  const signingKeys = await openSigningKeys(rows, masterKey)
  admin.follow.onSigningKeys.push(async () => signingKeys.load(await listSigningKeys(admin.orm)))
  const reachability = createReachability(admin.now)
  const readiness = createReadiness({ ...admin, signingKeys, reachability })
  const accessLog = openAccessLog(admin.config.accessLog, { ...admin.config, log: admin.log })
  const page = admin.config.adminPage ? createAdminPage(admin, pageUrl) : undefined
  const { backup, retention, signingKeyDays } = admin.config
  const credentials = createCredentials({ ...admin, masterKey, fetch })
  const data = admin.database.kind === 'file' ? dirname(admin.database.path) : undefined
  const observed = {
    ...{ ...admin, signingKeys, signingKeyDays, reachability, readiness, accessLog, tlsState },
    ...{ ...createQueueing({ ...admin, reachability, credentials, fetch }), ...createAlertParts(admin, masterKey) },
    backupEveryMilliseconds: backup?.everyMilliseconds,
    folders: { data, backup: backup?.folder, archive: retention.folder },
    databaseServers: watchDatabaseServers(admin.database.shared),
  }
  return {
    ...observed,
    reportMetrics: createMetricsReport(observed),
    clockDifferences: createClockDifferences(admin.registry.onDeleted),
    ...{ callers: new WeakMap(), refreshTokens: new Map(), revisionKey: createRevisionKey(hex) },
    ...{ page, baseUrl, fetch, masterKey, listLoginOffers: createLoginOffers(admin.registry) },
    findSession: createSessionFinder(page),
    exchangeRate: createRateLimiter(() => shareOf(admin.inEffect.read().rateLimit, admin.follow)),
    replayGuard: await openReplayGuard(admin),
    claimRecorder: createClaimRecorder({ registry: admin.registry, hashFor: (id) => createClaimHash(hex, id) }),
    keyRates: createKeyRates(admin.registry.onDeleted, await joinRates(admin)),
    verifiedTokens: createTokenCache(signingKeys),
    ...{ modelLists: createModelLists(admin.monotonic), via: `1.1 ${nameInstallation(admin.registry)}`, credentials },
  }
}

/** Stops a running backup, which may wait for a checkpoint of the audit log, and archive run, commits queued rows, then closes the database. */
export async function closeContext(context: OpenContext): Promise<void> {
  const { backups, archiving, auditLog, lastUses, writer, database, grace } = context
  database.shared?.beginEnd()
  const logged = auditLog.stop()
  await Promise.all([backups.stop(), archiving.stop()])
  // After a failed commit the times are not exact, which must not keep the database open.
  await lastUses.flush().catch(() => {})
  await logged
  await writer.close()
  await database.close()
  await grace?.close()
}
