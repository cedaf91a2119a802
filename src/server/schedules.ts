// What a server does on timers: it rotates the signing key, makes backups, archives rows, signs checkpoints of the audit log, writes last
// uses, warns of issuer keys that expire, probes upstreams and lets the doctor examine everything.
import packageJson from '../../package.json' with { type: 'json' }
import type { RunOperation } from '../admin/operations.ts'
import { describeError } from '../fault.ts'
import { archiveCheckMilliseconds, backupCheckMilliseconds } from '../limits.ts'
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
    watchKeyExpiry(context),
    examineOnSchedule(context, runOperation),
    probeOnSchedule(context),
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

/** The shortest time between two probes of an upstream. */
const probeMilliseconds = 1_000

/** Probes upstreams, now and on a timer. Returns a function that stops the timer. A slow upstream does not delay the others. */
function probeOnSchedule({ probes }: Context): () => void {
  void probes.run()
  return every(probeMilliseconds, () => void probes.run())
}

/** The first examination waits as long as the others for a start to settle: it loads what administration needs. */
const examineMilliseconds = 5 * 60_000

/** Lets the doctor examine everything on a timer, for metrics. Returns a function that stops the timer. */
function examineOnSchedule({ findingCounts, log }: Context, runOperation: RunOperation): () => void {
  const examine = async () => {
    const { findings } = await runOperation('doctor.examine', {}, { kind: 'server' })
    findingCounts.note(findings)
  }
  const logFailure = (error: unknown) => log('error', 'examination_failed', { reason: describeError(error) })
  return every(examineMilliseconds, examine, logFailure)
}
