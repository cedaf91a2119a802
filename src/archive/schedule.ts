// Archives old rows once a day in a server, in a quiet moment, and remembers how that went.
import type { ArchiveKind } from '../../db/schema/archive-kinds.ts'
import { describeError, Fault } from '../fault.ts'
import type { Log } from '../observe/log.ts'
import type { RunningWork } from '../scheduling/running-work.ts'
import type { ArchiveContext } from './archive-rows.ts'
import { type Archiver, createArchiver } from './archiving.ts'
import { dueTimes, type Retention } from './retention.ts'

export type RetentionSchedule = {
  /** Call it often. Starts a run if one is due, and resolves when it ends. Never rejects: the log has the failure. */
  runWhenDue: () => Promise<void>
  /** Whether the last run failed. */
  isFailing: () => boolean
  /** Milliseconds since 1970 UTC; undefined until the first run of this process. */
  lastSuccessAt: () => number | undefined
  rowsArchived: () => ReadonlyMap<ArchiveKind, number>
}

export type ScheduleContext = {
  archiving: Pick<Archiver, 'run' | 'rowsArchived'>
  settings: Retention
  work: Pick<RunningWork, 'watch'>
  now: () => number
  monotonic: () => number
  /** Milliseconds since the last commit. */
  quietFor: () => number
  log: Log
}

const dayMilliseconds = 24 * 60 * 60 * 1_000
const retryMilliseconds = 60 * 60 * 1_000
const quietMilliseconds = 1_000
/** A server that is never quiet archives nevertheless. */
const patienceMilliseconds = 60 * 60 * 1_000

/** Everything that archives rows in a process. `quietFor` gives the milliseconds since the last commit. */
export function createRetention(
  settings: Retention,
  context: Omit<ArchiveContext, 'rest' | 'node'> & Pick<ScheduleContext, 'monotonic' | 'work'>,
  quietFor: () => number,
): { archiving: Archiver; retention: RetentionSchedule } {
  const archiving = createArchiver(context)
  return { archiving, retention: createRetentionSchedule({ ...context, archiving, settings, quietFor }) }
}

export function createRetentionSchedule(context: ScheduleContext): RetentionSchedule {
  const { archiving, settings, work, now, monotonic, quietFor, log } = context
  const { days, folder } = settings
  const isOn = folder !== undefined && Object.keys(days).length > 0
  let dueAt = monotonic()
  let isRunning = false
  let isFailing = false
  let lastSuccessAt: number | undefined

  async function run(to: string): Promise<void> {
    try {
      const request = { before: dueTimes(settings, now()), folder: to, by: { kind: 'server' } as const }
      await work.watch('archive.run', (onProgress) => archiving.run(request, { isAlone: false, onProgress }))
      lastSuccessAt = now()
      isFailing = false
    } catch (error) {
      const isRunElsewhere = error instanceof Fault && error.reason === 'archive_lease_held'
      isFailing = !isRunElsewhere
      if (isFailing) log('error', 'archive_failed', { reason: describeError(error) })
      dueAt = monotonic() + retryMilliseconds
      return
    }
    dueAt = monotonic() + dayMilliseconds
  }

  return {
    runWhenDue: async () => {
      const waited = monotonic() - dueAt
      const isQuiet = quietFor() >= quietMilliseconds || waited >= patienceMilliseconds
      if (!isOn || isRunning || waited < 0 || !isQuiet) return
      isRunning = true
      await run(folder)
      isRunning = false
    },
    isFailing: () => isFailing,
    lastSuccessAt: () => lastSuccessAt,
    rowsArchived: archiving.rowsArchived,
  }
}
