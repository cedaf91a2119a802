// What is counted while requests are served. The rows of audit and ledger know nearly everything, so they are counted as they are committed.
import { alertTypes } from '../../db/schema/alert-schema.ts'
import type { AuditRow, UsageRow } from '../../db/schema/record-schema.ts'
import type { CommitOutcome, Writer } from '../../db/write/write.ts'
import type { Fault } from '../fault.ts'
import { labelValuesMax, nanodollarsPerDollar } from '../limits.ts'
import { type FamilyName, families } from './metric-families.ts'
import {
  type BusiestIds,
  type Counter,
  createBusiest,
  createCounter,
  createHistogram,
  createLabelBound,
  type Histogram,
  type LabelBound,
  type Sample,
} from './series.ts'

export type Metrics = {
  countExchange: (row: Pick<AuditRow, 'organizationId' | 'outcome' | 'reason' | 'grant'>, milliseconds: number) => void
  countInference: (row: UsageRow) => void
  /** `status` of the response to the fault. */
  countFault: (fault: Fault, status: number) => void
  countFailover: (upstream: string) => void
  countQueueWait: (upstream: string, queueClass: string, milliseconds: number) => void
  countCommit: (outcome: CommitOutcome) => void
  countBackupFailure: () => void
  countAlert: (type: string) => void
  countDelivery: (outcome: string) => void
  countRefresh: (milliseconds: number) => void
  /** The keys with series; the others are counted together as `other`. */
  busiestKeys: Pick<BusiestIds, 'ids' | 'forget'>
  /**
   * The samples of everything that is counted, without those of organizations and upstreams that are gone. Ranks the
   * keys again, at most once an hour.
   */
  read: (live: LiveRows) => Partial<Record<FamilyName, Sample[]>>
}

/** The ids of the organizations, and the names of the upstreams in use. */
export type LiveRows = { organizations: Pick<ReadonlySet<string>, 'has'>; upstreams: Pick<ReadonlySet<string>, 'has'> }

const rankMilliseconds = 60 * 60 * 1_000

/** Requests and commits are counted this many at a time: one alone, between other work, takes several times as long. */
const waitingMax = 256

/** The series of what is counted, and the bounds of their labels. */
type Series = ReturnType<typeof createSeries>

function createSeries() {
  return {
    counters: {
      exchanges: createCounter(families.exchanges),
      inferenceRequests: createCounter(families.inferenceRequests),
      tokens: createCounter(families.tokens),
      missingUsage: createCounter(families.missingUsage),
      cost: createCounter(families.cost),
      refusals: createCounter(families.refusals),
      failures: createCounter(families.failures),
      upstreamFailovers: createCounter(families.upstreamFailovers),
      commitFailures: createCounter(families.commitFailures),
      backupFailures: createCounter(families.backupFailures),
      alerts: createCounter(families.alerts),
      webhookDeliveries: createCounter(families.webhookDeliveries),
    },
    histograms: {
      exchangeDuration: createHistogram(families.exchangeDuration),
      inferenceDuration: createHistogram(families.inferenceDuration),
      inferenceFirstByte: createHistogram(families.inferenceFirstByte),
      queueWait: createHistogram(families.queueWait),
      refreshDuration: createHistogram(families.refreshDuration),
      commitDuration: createHistogram(families.commitDuration),
      commitRows: createHistogram(families.commitRows),
    },
    organization: createLabelBound(labelValuesMax),
    /** By organization, so that one cannot use up the values of all. */
    models: new Map<string, LabelBound>(),
    upstream: createLabelBound(labelValuesMax),
    reason: createLabelBound(labelValuesMax),
    keys: createBusiest(labelValuesMax),
  }
}

export function createMetrics(monotonic: () => number): Metrics {
  const series = createSeries()
  const { counters, histograms, organization, upstream, reason, keys } = series
  counters.commitFailures.add(0)
  counters.backupFailures.add(0)
  for (const type of alertTypes) counters.alerts.add(0, type)
  for (const outcome of ['delivered', 'failed', 'given_up']) counters.webhookDeliveries.add(0, outcome)
  /** A number is the milliseconds of a refresh. */
  const waiting: (UsageRow | CommitOutcome | number)[] = []
  const countWaiting = () => {
    for (const each of waiting.splice(0))
      if (typeof each === 'number') series.histograms.refreshDuration.observe(each / 1_000)
      else if ('isCommitted' in each) countCommit(series, each)
      else countInference(series, each)
  }
  const countLater = (each: UsageRow | CommitOutcome | number) => {
    if (waiting.push(each) === waitingMax) countWaiting()
  }
  let rankedAt = monotonic()
  return {
    countExchange: (row, milliseconds) => {
      const by = row.organizationId === null ? '' : organization.label(row.organizationId)
      counters.exchanges.add(1, by, row.outcome, row.reason ?? '', row.grant ?? '')
      histograms.exchangeDuration.observe(milliseconds / 1_000, by, row.outcome)
    },
    countInference: countLater,
    countFault: (fault, status) => {
      const counter = status < 500 ? counters.refusals : counters.failures
      counter.add(1, reason.label(fault.reason ?? fault.code))
    },
    countFailover: (name) => counters.upstreamFailovers.add(1, upstream.label(name)),
    countQueueWait: (name, queueClass, milliseconds) =>
      histograms.queueWait.observe(milliseconds / 1_000, upstream.label(name), queueClass),
    countCommit: countLater,
    countBackupFailure: () => counters.backupFailures.add(1),
    countAlert: (type) => counters.alerts.add(1, type),
    countDelivery: (outcome) => counters.webhookDeliveries.add(1, outcome),
    countRefresh: countLater,
    busiestKeys: {
      ids: () => {
        countWaiting()
        return keys.ids()
      },
      forget: keys.forget,
    },
    read: (live) => {
      countWaiting()
      forgetGone(series, live)
      if (monotonic() - rankedAt >= rankMilliseconds) {
        rankedAt = monotonic()
        rankKeys(series)
      }
      const all = Object.entries({ ...counters, ...histograms })
      return Object.fromEntries(all.map(([name, each]) => [name, each.samples()]))
    },
  }
}

function countCommit({ counters, histograms }: Series, { isCommitted, rows, milliseconds }: CommitOutcome): void {
  if (!isCommitted) {
    counters.commitFailures.add(1)
    return
  }
  histograms.commitDuration.observe(milliseconds / 1_000)
  histograms.commitRows.observe(rows)
}

function countInference(series: Series, row: UsageRow): void {
  const { counters, histograms, organization, upstream, keys } = series
  const by = organization.label(row.organizationId)
  const { endpoint, status, firstByteMilliseconds } = row
  // Callers choose the names of models: only one that an upstream has served gets a series.
  const named = modelsOf(series, by).label(row.model ?? '', status < 400)
  const served = row.upstream === null ? '' : upstream.label(row.upstream)
  counters.inferenceRequests.add(1, by, endpoint, named, served, `${Math.floor(status / 100)}xx`)
  histograms.inferenceDuration.observe(row.durationMilliseconds / 1_000, by, endpoint)
  if (firstByteMilliseconds !== null) histograms.inferenceFirstByte.observe(firstByteMilliseconds / 1_000, by, endpoint)
  const instead = row.estimated ? 'estimate' : 'nothing'
  if (status < 400 && (row.estimated || row.usageSource === 'none'))
    counters.missingUsage.add(1, by, endpoint, served, instead)
  const key = keys.label(row.keyId)
  if (row.promptTokens !== null) counters.tokens.add(row.promptTokens, by, 'prompt', named, key)
  if (row.completionTokens !== null) counters.tokens.add(row.completionTokens, by, 'completion', named, key)
  if (row.cachedTokens !== null) counters.tokens.add(row.cachedTokens, by, 'cached', named, key)
  if (row.reasoningTokens !== null) counters.tokens.add(row.reasoningTokens, by, 'reasoning', named, key)
  if (row.costNanodollars !== null) counters.cost.add(row.costNanodollars / nanodollarsPerDollar, by, key)
}

function modelsOf({ models }: Series, organization: string): LabelBound {
  const known = models.get(organization)
  if (known !== undefined) return known
  const made = createLabelBound(labelValuesMax)
  models.set(organization, made)
  return made
}

function forgetGone({ counters, histograms, organization, models, upstream }: Series, live: LiveRows): void {
  const goneOrganizations = organization.keepOnly((id) => live.organizations.has(id))
  const goneUpstreams = upstream.keepOnly((name) => live.upstreams.has(name))
  for (const id of goneOrganizations) models.delete(id)
  const all: Record<string, Counter | Histogram> = { ...counters, ...histograms }
  for (const [name, { drop }] of Object.entries(all)) {
    const { labels } = families[name as FamilyName]
    if (labels[0] === 'organization' && goneOrganizations.size > 0) drop(0, goneOrganizations)
    if (labels.includes('upstream') && goneUpstreams.size > 0) drop(labels.indexOf('upstream'), goneUpstreams)
  }
}

function rankKeys({ keys, counters }: Series): void {
  const dropped = keys.rank()
  counters.tokens.drop(families.tokens.labels.indexOf('key'), dropped)
  counters.cost.drop(families.cost.labels.indexOf('key'), dropped)
}

/** A writer whose audit and usage rows are counted. An exchange whose record could not be committed counts as refused. */
export function countRows(writer: Writer, metrics: Metrics, now: () => number): Writer {
  return {
    ...writer,
    appendAudit: async (row) => {
      try {
        await writer.appendAudit(row)
      } catch (error) {
        metrics.countExchange({ ...row, outcome: 'refused', reason: 'unrecorded' }, Math.max(0, now() - row.at))
        throw error
      }
      metrics.countExchange(row, Math.max(0, now() - row.at))
    },
    appendUsage: (row) => {
      metrics.countInference(row)
      return writer.appendUsage(row)
    },
  }
}
