// What admin operations can need: the database that this process holds, what it keeps in memory, and what comes with each run. Each
// operation and helper declares its part (`Needs`). Only `server/`, which builds the context, has it whole.
import type { Database, Orm } from '../../../db/file/open.ts'
import type { OnProgress } from '../../../db/read/slices.ts'
import type { Role } from '../../../db/schema/value-names.ts'
import type { Actor } from '../../../db/tables/admin-changes.ts'
import type { Basis } from '../../../db/write/change-queue.ts'
import type { Writer } from '../../../db/write/write.ts'
import type { Archiver } from '../../archive/archiving.ts'
import type { RetentionSchedule } from '../../archive/schedule.ts'
import type { AuditLog } from '../../audit-log/audit-log.ts'
import type { Backups } from '../../backup/backups.ts'
import type { BackupSchedule } from '../../backup/schedule.ts'
import { Fault } from '../../fault.ts'
import type { ClockDifferences } from '../../federation/issuer/clock-difference.ts'
import type { Outbound } from '../../federation/issuer/guarded-fetch.ts'
import type { IssuerKeys } from '../../federation/issuer/issuer-keys.ts'
import type { Circuits } from '../../inference/queue/circuit.ts'
import type { Dispatch } from '../../inference/queue/dispatch.ts'
import type { Probes } from '../../inference/queue/probe.ts'
import type { Refusals } from '../../inference/refusals.ts'
import type { Reachability } from '../../inference/upstream/reachability.ts'
import type { Upstream } from '../../inference/upstream/targets.ts'
import type { Spending } from '../../keys/spending.ts'
import type { Alerts } from '../../monitoring/alerts/alerts.ts'
import type { Readiness } from '../../monitoring/readiness.ts'
import type { Follow } from '../../nodes/follow.ts'
import type { Log } from '../../observe/log.ts'
import type { Page } from '../../page/page.ts'
import type { Presets } from '../../presets/versions.ts'
import type { Registry } from '../../registry/registry.ts'
import type { ExclusiveRun } from '../../scheduling/mutex.ts'
import type { RunInQueue } from '../../scheduling/queues.ts'
import type { RunningWork } from '../../scheduling/running-work.ts'
import type { Config, SettingTexts } from '../../settings/config.ts'
import type { Reload, SettingsInEffect } from '../../settings/effective-settings.ts'
import type { Budgets } from '../../spending/budgets.ts'
import type { SigningKeys } from '../../tokens/signing-keys.ts'
import type { Validity } from '../../values/certificates.ts'
import type { ExchangeCounts } from './exchange-counts.ts'
import type { LastUses } from './last-uses.ts'
import type { SlowReports } from './slow-reports.ts'

/** All that operations need of the process, and nothing else. */
export type AdminContext = {
  /** As of the start. What a reload changes is read from `inEffect`. */
  config: Config
  inEffect: SettingsInEffect
  database: Database
  orm: Orm
  /** For reads that may take long: nothing else waits for them (db/file/open.ts). */
  reader: Orm
  writer: Writer
  registry: Registry
  /** Keeps memory equal to a database that other nodes change. */
  follow: Follow
  issuerKeys: IssuerKeys
  outbound: Outbound
  spending: Spending
  budgets: Budgets
  presets: Presets
  lastUses: LastUses
  exchangeCounts: ExchangeCounts
  slowReports: SlowReports
  backups: Backups
  backupSchedule: BackupSchedule
  archiving: Archiver
  auditLog: AuditLog
  work: RunningWork
  retention: RetentionSchedule
  /** Changes of the database run one after the other. */
  runExclusive: ExclusiveRun
  /** Reads that take long: back-tests by the id of the organization, proofs from `archives`. */
  queueReads: RunInQueue
  /** Only in a process that serves. */
  signingKeys?: SigningKeys
  readiness?: Readiness
  reachability?: Reachability
  dispatch?: Pick<Dispatch, 'at' | 'keys' | 'tokensPerSecond'>
  circuits?: Pick<Circuits<Upstream>, 'list'>
  probes?: Pick<Probes, 'of'>
  refusals?: Pick<Refusals, 'list' | 'since'>
  alerts?: Pick<Alerts, 'settle'>
  clockDifferences?: ClockDifferences
  /** Only in a process that serves the admin page. */
  page?: Page | undefined
  /** Only in a process that serves and can read its settings again. */
  reload?: Reload | undefined
  /** The address of the service, and its settings in effect as texts. Only in a process that serves. */
  baseUrl?: string
  settingTexts?: (() => SettingTexts | undefined) | undefined
  /** The TLS pair in use, and why newer files cannot be used. Only in a process that serves with TLS. */
  tlsState?: (() => Validity & { failure: string | undefined }) | undefined
  /** Milliseconds since 1970, UTC. Operators may set this clock back. */
  now: () => number
  /** Milliseconds that never decrease, for durations within this process. */
  monotonic: () => number
  log: Log
}

/** What comes with one run of an operation. */
export type OperationRun = {
  actor: Actor
  /** Of the key or session that calls. Commands and callers of the local socket may do everything, as an admin may. */
  role: Role
  /** The name of the operation, which the record of its changes carries. */
  operation: string
  /** The newest admin change when the operation began, where other nodes make changes too. */
  basis?: Basis | undefined
  /** Reports call it as they go on. What it throws ends the report. */
  onProgress?: OnProgress | undefined
  /** Adds a text to the `warnings` of the response. */
  warn?: ((text: string) => void) | undefined
}

/** The named members of the context and the run: what one operation or helper needs. */
export type Needs<Name extends keyof AdminContext | keyof OperationRun> = Pick<AdminContext & OperationRun, Name>

/** Whether `init` has finished on this database. */
export function isInitialized({ registry }: Needs<'registry'>): boolean {
  return registry.organizations.size > 0
}

export function notInitialized({ databasePath }: Config): Fault {
  return new Fault(
    'configuration',
    `The database ${JSON.stringify(databasePath)} is not initialized; run: latchkey init`,
  )
}
