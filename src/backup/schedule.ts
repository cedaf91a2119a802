// Makes backups on schedule and removes old ones. What is due follows from the files in the folder, so it survives a restart.
import { rm } from 'node:fs/promises'
import type { OnProgress } from '../../db/read/slices.ts'
import { describeError } from '../fault.ts'
import { backupRetryMilliseconds } from '../limits.ts'
import type { Log } from '../observe/log.ts'
import type { RunningWork } from '../scheduling/running-work.ts'
import type { BackupPlan } from '../settings/config.ts'
import { listBackups } from './backup-names.ts'
import type { Backup, Backups } from './backups.ts'

export type BackupSchedule = {
  /** Makes a backup if one is due. Never rejects. */
  check: () => Promise<void>
  /** Reads the folder where no check has done so, as in a command. Never rejects. */
  look: () => Promise<void>
  /** Whether the last scheduled backup failed. */
  isFailing: () => boolean
  /** As of the last check or look, which reads the folder: it may be on a disk that does not respond. Milliseconds; undefined without a backup. */
  newestAt: () => number | undefined
}

type Parts = {
  plan: BackupPlan | undefined
  backups: Backups
  work: Pick<RunningWork, 'watch'>
  now: () => number
  log: Log
}

export function createBackupSchedule({ plan, backups, work, now, log }: Parts): BackupSchedule {
  let failedAt: number | undefined
  let isChecking = false
  let newestInFolder: number | undefined

  async function readFolder(folder: string): Promise<void> {
    const found = await listBackups(folder, backups.installation(), now())
    // A backup from the future was made while the clock was wrong, and says nothing.
    newestInFolder = found.find(({ createdAt }) => createdAt <= now())?.createdAt
  }

  async function makeWhenDue({ folder, everyMilliseconds, keep }: BackupPlan): Promise<void> {
    try {
      await readFolder(folder)
      if (newestInFolder !== undefined && now() - newestInFolder < everyMilliseconds) return
      const create = (onProgress: OnProgress) => backups.create(`${folder}/`, onProgress)
      logBackup(log, await work.watch('backup.create', create))
      failedAt = undefined
    } catch (error) {
      log('error', 'backup_failed', { to: folder, reason: describeError(error) })
      failedAt = now()
      return
    }
    await removeOld({ folder, keep })
  }

  async function removeOld({ folder, keep }: Pick<BackupPlan, 'folder' | 'keep'>): Promise<void> {
    for (const { path } of (await listBackups(folder, backups.installation(), now())).slice(keep)) {
      try {
        // Removing a large file takes a tenth of a second, which must not hold the event loop.
        await rm(path)
        log('info', 'backup_removed', { file: path })
      } catch (error) {
        log('warn', 'backup_not_removed', { file: path, reason: describeError(error) })
      }
    }
  }

  return {
    check: async () => {
      const wait = Math.min(backupRetryMilliseconds, plan?.everyMilliseconds ?? 0)
      const isWaiting = failedAt !== undefined && Math.abs(now() - failedAt) < wait
      if (plan === undefined || isChecking || isWaiting || backups.state().isRunning) return
      isChecking = true
      await makeWhenDue(plan)
      isChecking = false
    },
    look: async () => {
      if (plan !== undefined && newestInFolder === undefined) await readFolder(plan.folder).catch(() => {})
    },
    isFailing: () => failedAt !== undefined,
    newestAt: () => {
      const last = backups.state().lastSuccess?.at
      return last === undefined ? newestInFolder : Math.max(last, newestInFolder ?? last)
    },
  }
}

/** `by` are the users who asked for it; without them, it was due. */
export function logBackup(log: Log, { file, bytes, milliseconds }: Backup, by: object = {}): void {
  log('info', 'backup_created', { file, bytes, milliseconds, ...by })
}
