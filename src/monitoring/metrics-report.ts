// The text of a scrape: what was counted, and the state of the server at this moment, under names instead of ids.
import { statSync } from 'node:fs'
import type { Database } from '../../db/file/open.ts'
import { createPace } from '../../db/read/pace.ts'
import type { Organization } from '../../db/schema/schema.ts'
import packageJson from '../../package.json' with { type: 'json' }
import type { Issuer } from '../federation/issuer/issuer.ts'
import type { IssuerKeys } from '../federation/issuer/issuer-keys.ts'
import type { Reachability } from '../inference/upstream/reachability.ts'
import type { UpstreamRegistry } from '../inference/upstream/targets.ts'
import type { Key } from '../keys/api-key.ts'
import type { Spending } from '../keys/spending.ts'
import { labelValuesMax, nanodollarsPerDollar } from '../limits.ts'
import type { AccessLog } from '../observe/access-log.ts'
import { standardError } from '../observe/line-sink.ts'
import { type Family, type FamilyName, families } from '../observe/metric-families.ts'
import type { Metrics } from '../observe/metrics.ts'
import { readOpenFiles } from '../observe/process-files.ts'
import { familyText, prometheusMediaType } from '../observe/prometheus-text.ts'
import type { Sample } from '../observe/series.ts'
import { readSpace } from '../runtime/disk-space.ts'
import type { SigningKeys } from '../tokens/signing-keys.ts'
import { type DatabaseServerStates, databaseServerSamples } from './database-server-samples.ts'
import type { FindingCounts } from './finding-counts.ts'
import { type QueueSamplesContext, queueSamples } from './queue-samples.ts'
import type { Readiness } from './readiness.ts'

/** What a scrape reads. */
export type MetricsContext = QueueSamplesContext & {
  metrics: Metrics
  registry: UpstreamRegistry & {
    readonly organizations: ReadonlyMap<string, Readonly<Organization>>
    readonly keys: ReadonlyMap<string, Key>
    readonly issuers: ReadonlyMap<string, Issuer>
  }
  database: Pick<Database, 'kind' | 'path' | 'readingMilliseconds'>
  accessLog: Pick<AccessLog, 'dropped'>
  spending: Spending
  signingKeys: Pick<SigningKeys, 'current'>
  issuerKeys: Pick<IssuerKeys, 'stateOf'>
  reachability: Reachability
  readiness: Readiness
  /** When the newest backup was made, in milliseconds; undefined without any. */
  backupSchedule: { newestAt: () => number | undefined }
  follow: { revision: () => number | undefined; liveNodes: () => number }
  grace: { isUsed: () => boolean; rows: () => number } | undefined
  databaseServers: DatabaseServerStates
  backupEveryMilliseconds: number | undefined
  /** Undefined where the database is on a server, and where nothing is written. */
  folders: Record<'data' | 'backup' | 'archive', string | undefined>
  signingKeyDays: number | undefined
  tlsState: (() => { expiresAt: number }) | undefined
  findingCounts: Pick<FindingCounts, 'read'>
  auditLog: {
    state: () => Record<'checkpointAt' | 'cosignedAt', number | undefined> &
      Record<'failure' | 'folderFailure', string | undefined>
  }
  retention: { rowsArchived: () => ReadonlyMap<string, number>; lastSuccessAt: () => number | undefined }
  now: () => number
}

type Samples = Partial<Record<FamilyName, Sample[]>>

/** The text of a scrape of everything, or of one organization, given by its id. */
export type MetricsReport = (organizationId?: string) => Promise<string>

/** Scrapes at the same time share one text. */
export function createMetricsReport(context: MetricsContext): MetricsReport {
  const inFlight = new Map<string | undefined, Promise<string>>()
  return (organizationId) => {
    const found = inFlight.get(organizationId)
    if (found !== undefined) return found
    const made = metricsText(context, organizationId).finally(() => inFlight.delete(organizationId))
    inFlight.set(organizationId, made)
    return made
  }
}

export function metricsResponse(text: string): Response {
  return new Response(text, { headers: { 'content-type': prometheusMediaType, 'cache-control': 'no-store' } })
}

/** All metrics, or only the series of one organization, given by its id. */
export async function metricsText(context: MetricsContext, organizationId?: string): Promise<string> {
  const samples: Samples = {
    ...context.metrics.read({
      organizations: context.registry.organizations,
      upstreams: new Set(context.registry.upstreamsInOrder.map(({ name }) => name)),
    }),
    ...issuerSamples(context, organizationId),
    ...keySamples(context),
    ...(organizationId === undefined ? await serverSamples(context) : {}),
  }
  const wording = { nameOf: createNaming(context), pace: createPace() }
  let text = ''
  for (const [name, family] of Object.entries<Family>(families)) {
    const found = samples[name as FamilyName] ?? []
    const isScoped = family.labels[0] === 'organization'
    if (organizationId === undefined) text += await familyText(family, found, wording)
    else if (isScoped)
      text += await familyText(
        family,
        found.filter(({ labels }) => labels[0] === organizationId),
        wording,
      )
  }
  return text
}

/** The name of an organization or key by its id; other labels and `other` stay. */
function createNaming({ registry }: MetricsContext): (label: string, value: string) => string {
  return (label, value) => {
    if (label === 'organization') return registry.organizations.get(value)?.name ?? value
    if (label === 'key') return registry.keys.get(value)?.name ?? value
    return value
  }
}

/** Of at most `labelValuesMax` issuers: those that failed most often, then bundles and pasted sets that expire soonest, then the oldest keys. */
function issuerSamples({ registry, issuerKeys, now }: MetricsContext, only: string | undefined): Samples {
  const states = [...registry.issuers.values()]
    .filter(({ deletedAt, organizationId }) => deletedAt === null && organizationId === (only ?? organizationId))
    .map((issuer) => ({ labels: [issuer.organizationId, issuer.name], ...issuerKeys.stateOf(issuer) }))
    .toSorted(
      (one, other) => other.failures - one.failures || expiryOf(one) - expiryOf(other) || ageOf(other) - ageOf(one),
    )
    .slice(0, labelValuesMax)
  const fetched = states.flatMap(({ labels, keySet }) => (keySet === undefined ? [] : [{ labels, ...keySet }]))
  return {
    issuerFetchFailures: states.map(({ labels, failuresTotal }) => ({ labels, value: failuresTotal })),
    issuerFetchFailuresInARow: states.map(({ labels, failures }) => ({ labels, value: failures })),
    issuerKeysUsable: states.map(({ labels, failures, keySet }) => ({
      labels,
      value: Number(failures === 0 || (keySet !== undefined && keySet.usableMilliseconds > 0)),
    })),
    issuerKeysAge: fetched.map(({ labels, ageMilliseconds }) => ({ labels, value: ageMilliseconds / 1_000 })),
    issuerKeysExpire: [
      ...fetched.map(({ labels, usableMilliseconds }) => ({ labels, value: (now() + usableMilliseconds) / 1_000 })),
      ...states.flatMap(({ labels, expiresAt }) =>
        expiresAt === undefined ? [] : [{ labels, value: expiresAt / 1_000 }],
      ),
    ],
  }
}

/** A time that is the same for all issuers without an expiry. */
function expiryOf({ expiresAt = Number.MAX_SAFE_INTEGER }: ReturnType<IssuerKeys['stateOf']>): number {
  return expiresAt
}

function ageOf({ keySet }: ReturnType<IssuerKeys['stateOf']>): number {
  return keySet?.ageMilliseconds ?? 0
}

/** Of the busiest keys that have a budget. */
function keySamples({ registry, metrics, spending, now }: MetricsContext): Samples {
  const limited = [...metrics.busiestKeys.ids()].flatMap((id) => {
    const { organizationId = '', deletedAt = null, limitNanodollars = null, limitReset } = registry.keys.get(id) ?? {}
    return deletedAt === null && limitNanodollars !== null
      ? [{ labels: [organizationId, id], limitNanodollars, spent: spending.of(id, now())[limitReset ?? 'ever'] }]
      : []
  })
  return {
    keyLimit: limited.map(({ labels, limitNanodollars }) => ({
      labels,
      value: limitNanodollars / nanodollarsPerDollar,
    })),
    keySpent: limited.map(({ labels, spent }) => ({ labels, value: spent / nanodollarsPerDollar })),
  }
}

async function serverSamples(context: MetricsContext): Promise<Samples> {
  const { registry, reachability, readiness, retention, database, accessLog, backupEveryMilliseconds } = context
  const { status } = await readiness.check()
  const backupAt = context.backupSchedule.newestAt()
  const { user, system } = process.cpuUsage()
  const one = (value: number, ...labels: string[]): Sample[] => [{ labels, value }]
  const revision = context.follow.revision()
  const files = await readOpenFiles()
  const audit = context.auditLog.state()
  const tlsExpiresAt = context.tlsState?.().expiresAt
  return {
    ...(revision !== undefined && { revision: one(revision), liveNodes: one(context.follow.liveNodes()) }),
    ...databaseServerSamples(context.databaseServers),
    ...(context.grace && {
      graceUsed: one(Number(context.grace.isUsed())),
      usageWaiting: one(context.grace.rows()),
    }),
    ...queueSamples(context),
    upstreamUp: registry.upstreamsInOrder.slice(0, labelValuesMax).flatMap((upstream) => {
      const isUp = reachability.of(upstream)
      return isUp === undefined ? [] : one(Number(isUp), upstream.name)
    }),
    logLinesDropped: [...one(standardError.dropped(), 'stderr'), ...one(accessLog.dropped(), 'access_log_file')],
    // The log of a database server is on its own machine.
    walBytes:
      database.kind === 'file' ? one(statSync(`${database.path}-wal`, { throwIfNoEntry: false })?.size ?? 0) : [],
    databaseRead: database.kind === 'file' ? one(database.readingMilliseconds() / 1_000) : [],
    diskFree: await diskSamples(context),
    archivedRows: [...retention.rowsArchived()].map(([kind, value]) => ({ labels: [kind], value })),
    retentionLastSuccess: [retention.lastSuccessAt()].flatMap((at) => (at === undefined ? [] : one(at / 1_000))),
    ...signingKeySamples(context),
    tlsExpires: tlsExpiresAt === undefined ? [] : one(tlsExpiresAt / 1_000),
    doctorFindings: [...context.findingCounts.read()].map(([level, value]) => ({ labels: [level], value })),
    backupLastSuccess: backupAt === undefined ? [] : one(backupAt / 1_000),
    backupInterval: backupEveryMilliseconds === undefined ? [] : one(backupEveryMilliseconds / 1_000),
    auditCheckpoint: audit.checkpointAt === undefined ? [] : one(audit.checkpointAt / 1_000),
    auditCosigned: audit.cosignedAt === undefined ? [] : one(audit.cosignedAt / 1_000),
    auditFailing: one(Number((audit.failure ?? audit.folderFailure) !== undefined)),
    ready: one(Number(status !== 'not_ready')),
    buildInfo: one(1, packageJson.version, process.versions.bun ?? ''),
    residentMemory: one(process.memoryUsage().rss),
    ...(files !== undefined && { openFiles: one(files.open), openFilesMax: one(files.most) }),
    cpu: one((user + system) / 1e6),
    startTime: one(Math.round(Date.now() / 1_000 - process.uptime())),
  }
}

function signingKeySamples({ signingKeys, signingKeyDays, now }: MetricsContext): Samples {
  try {
    const { activeAt } = signingKeys.current(now())
    const dueAt = signingKeyDays === undefined ? undefined : activeAt / 1_000 + signingKeyDays * 24 * 60 * 60
    return {
      signingKeyAge: [{ labels: [], value: Math.max(0, now() - activeAt) / 1_000 }],
      signingKeyRotationDue: dueAt === undefined ? [] : [{ labels: [], value: dueAt }],
    }
  } catch {
    // Every key is retired; `latchkey_ready` is 0 then.
    return {}
  }
}

/** A disk that does not respond has no sample. */
async function diskSamples({ folders }: MetricsContext): Promise<Sample[]> {
  const measured = Object.entries(folders).map(async ([disk, folder]): Promise<Sample[]> => {
    const space = folder === undefined ? undefined : await readSpace(folder).catch(() => undefined)
    return space === undefined ? [] : [{ labels: [disk], value: space.free }]
  })
  return (await Promise.all(measured)).flat()
}
