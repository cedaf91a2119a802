// What a server does on timers: it rotates the signing key, makes backups, archives rows, signs checkpoints of the audit log, writes last
// uses, adds up requests, warns of issuer keys that expire, probes upstreams and lets the doctor examine everything.
import { addServedTotals } from '../../db/tables/served-totals.ts'
import packageJson from '../../package.json' with { type: 'json' }
import type { RunOperation } from '../admin/operations.ts'
import { describeError } from '../fault.ts'
import { archiveCheckMilliseconds, backupCheckMilliseconds } from '../limits.ts'
import { noteFindings } from '../monitoring/alerts/finding-alerts.ts'
import { every } from '../scheduling/every.ts'
import type { Context } from './context.ts'
import { watchKeyExpiry } from './key-expiry-log.ts'
import { rotateOnSchedule } from './rotation.ts'

const lastUseMilliseconds = 60_000

/**
 * Starts all schedules; the signing key is rotated first if it is due. Returns a function that stops the timers and asks
 * a running backup and archive run to stop. `closeContext` waits for both.
 */
export async function startSchedules(context: Context, runOperation: RunOperation): Promise<() => void> {
  const stops = [
    await rotateOnSchedule(context, runOperation),
    backUpOnSchedule(context),
    archiveOnSchedule(context),
    writeLastUses(context),
    addUpOnSchedule(context),
    renewOnSchedule(context),
    watchKeyExpiry(context),
    examineOnSchedule(context),
    deliverOnSchedule(context),
    probeOnSchedule(context),
    watchDatabase(context),
  ]
  // Its last checkpoint is in `closeContext`.
  context.auditLog.begin(packageJson.version)
  return () => {
    for (const stop of stops) stop()
  }
}

/** Makes the backups that are due, now and on a timer. Returns a function that stops the timer and a running backup. */
function backUpOnSchedule({ config, backups, backupSchedule }: Context): () => void {
  if (config.backup === undefined) return () => void backups.stop()
  void backupSchedule.check()
  const stop = every(backupCheckMilliseconds, backupSchedule.check)
  return () => {
    stop()
    void backups.stop()
  }
}

/** Archives old rows when it is due. Returns a function that stops the timer and ends a run. */
function archiveOnSchedule({ retention, archiving }: Context): () => void {
  const stop = every(archiveCheckMilliseconds, retention.runWhenDue)
  return () => {
    stop()
    void archiving.stop()
  }
}

/** Writes what was used once a minute. Returns a function that stops the timer; the last write is in `closeContext`. */
function writeLastUses({ lastUses, page, log }: Context): () => void {
  const logFailure = (error: unknown) => log('error', 'last_uses_not_written', { reason: describeError(error) })
  return every(lastUseMilliseconds, () => Promise.all([lastUses.flush(), page?.sessions.flush()]), logFailure)
}

const addUpMilliseconds = 60_000

/** Adds new requests to the totals by inference server and preset. Returns a function that stops the timer and ends a run. */
function addUpOnSchedule({ database: { orm, reader }, writer: { write }, log }: Context): () => void {
  let isStopped = false
  const logFailure = (error: unknown) => {
    if (!isStopped) log('error', 'requests_not_added_up', { reason: describeError(error) })
  }
  const work = { orm, reader, write, isStopped: () => isStopped }
  const stop = every(addUpMilliseconds, () => addServedTotals(work), logFailure)
  return () => {
    isStopped = true
    stop()
  }
}

/** Logs once what makes a server database weak, and looks at its servers on a timer. Returns a function that stops the timer. */
function watchDatabase({ database, databaseServers, log }: Context): () => void {
  void database.shared?.weaknesses().then((found) => {
    for (const { level, what } of found) log(level === 'error' ? 'error' : 'warn', 'database_weak', { reason: what })
  })
  return databaseServers.begin()
}

/** The shortest time between two probes of an upstream. */
const probeMilliseconds = 1_000

/** Probes upstreams, now and on a timer. Returns a function that stops the timer. A slow upstream does not delay the others. */
function probeOnSchedule({ probes }: Context): () => void {
  void probes.run()
  return every(probeMilliseconds, () => void probes.run())
}

const renewalMilliseconds = 60_000

/** Asks issuers again who people with a session are. Returns a function that stops the timer. */
function renewOnSchedule(context: Context): () => void {
  const { page, log } = context
  if (page === undefined) return () => {}
  const logFailure = (error: unknown) => log('error', 'sessions_not_renewed', { reason: describeError(error) })
  return every(
    renewalMilliseconds,
    async () => {
      // Most servers sign nobody in, and need no library for it.
      if (context.refreshTokens.size === 0) return
      const { renewSessions } = await import('../admin/sign-in/renewal.ts')
      await renewSessions({ ...context, page })
    },
    logFailure,
  )
}

/** The first examination waits as long as the others for a start to settle: it loads what administration needs. */
const examineMilliseconds = 5 * 60_000

/** Lets the doctor examine everything on a timer, for metrics and alerts. Returns a function that stops the timer. */
function examineOnSchedule(context: Context): () => void {
  const logFailure = (error: unknown) => context.log('error', 'examination_failed', { reason: describeError(error) })
  return every(examineMilliseconds, () => examineNow(context), logFailure)
}

/** Counts the findings, and alerts of those that are new or gone. */
export async function examineNow(context: Context): Promise<void> {
  const { examineAll } = await import('../admin/doctor/doctor.ts')
  const findings = await examineAll(context)
  context.findingCounts.note(findings)
  // Of several nodes, each sees its own disk and its own upstreams.
  const goneMilliseconds = context.database.shared === undefined ? 0 : 3 * examineMilliseconds
  await noteFindings({ ...context, goneMilliseconds }, findings)
}

const [deliverMilliseconds, cleanMilliseconds] = [5_000, 60 * 60_000]

/**
 * Looks at all budgets once, since alerts of what was spent before a crash may be missing, and sends what is due on a timer. Returns a
 * function that stops both timers; `stop` of the server waits for what is on its way.
 */
function deliverOnSchedule({ alerts, budgetAlerts, outbox, budgets, follow, database, now, log }: Context): () => void {
  const logFailure = (error: unknown) => log('error', 'alerts_not_delivered', { reason: describeError(error) })
  void budgetAlerts.lookAtAll(now())
  const releasing = database.shared === undefined ? outbox.release() : Promise.resolve()
  void releasing.then(outbox.deliver).catch(logFailure)
  const deliver = async () => {
    // On a server database, budgets count what was used with the next request, which may be long in coming.
    if (database.shared !== undefined && budgets.all().length > 0) await follow.fresh()
    await Promise.all([alerts.retry(), outbox.deliver()])
  }
  const stops = [
    // A webhook that is slow holds up no other.
    every(deliverMilliseconds, () => void deliver().catch(logFailure)),
    every(cleanMilliseconds, outbox.clean, logFailure),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}
