// Admin operations on backups: make one now, and show how the last ones went. Over HTTP, nobody chooses a path of the server: a backup goes to
// the folder of the settings.
import { isAbsolute } from 'node:path'
import { actorColumns } from '../../db/tables/admin-changes.ts'
import { logBackup } from '../backup/schedule.ts'
import { describeError, Fault } from '../fault.ts'
import type { Log } from '../observe/log.ts'
import { type } from '../values/shape.ts'
import type { Needs } from './operation/context.ts'
import { operation } from './operation/operation.ts'
import { timeOf } from './operation/references.ts'

const createInput = type({ '+': 'reject', 'to?': 'string > 0' })
const showInput = type({ '+': 'reject' })

export const createdBackupResponse = type({
  file: 'string',
  bytes: 'number',
  duration_milliseconds: 'number',
  manifest: 'object',
}).configure({ title: 'Backup' })

export const backupOperations = {
  'backup.create': operation(createInput, create),
  'backup.show': operation(showInput, showBackup),
}

/**
 * Without `to`, in the folder of the settings.
 * @throws Fault `invalid` without a folder, or for a relative path, which this process would resolve elsewhere; otherwise as `Backups.create`
 */
async function create(
  context: Needs<'backups' | 'config' | 'signingKeys' | 'log' | 'actor' | 'onProgress'>,
  input: typeof createInput.infer,
) {
  const { actor, backups, config, onProgress } = context
  const { to = config.backup && `${config.backup.folder}/` } = input
  if (to === undefined) throw new Fault('invalid', 'There is no folder for backups: set LATCHKEY_BACKUP_DIR')
  if (!isAbsolute(to)) throw new Fault('invalid', `to must be an absolute path (was ${JSON.stringify(to)})`)
  const log: Log = context.signingKeys === undefined ? () => {} : context.log
  try {
    const backup = await backups.create(to, onProgress)
    const { osUser, sudoUser } = actorColumns(actor)
    logBackup(log, backup, { os_user: osUser, sudo_user: sudoUser })
    const { file, bytes, milliseconds, manifest } = backup
    return { file, bytes, duration_milliseconds: milliseconds, manifest }
  } catch (error) {
    log('error', 'backup_failed', { to, reason: describeError(error) })
    throw error
  }
}

export type BackupContext = Needs<'config' | 'backups' | 'backupSchedule'>

/** `newest_at` is the newest backup in the folder of the settings, or a newer one that this process made elsewhere. */
export async function showBackup({ config, backups, backupSchedule }: BackupContext) {
  const { isRunning, lastSuccess, lastFailure } = backups.state()
  const { folder, everyMilliseconds, keep } = config.backup ?? {}
  return {
    folder: folder ?? null,
    every_seconds: everyMilliseconds === undefined ? null : everyMilliseconds / 1_000,
    keep: keep ?? null,
    running: isRunning,
    failing: backupSchedule.isFailing(),
    newest_at: timeOf(backupSchedule.newestAt() ?? null),
    last_file: lastSuccess?.file ?? null,
    last_failure_at: timeOf(lastFailure?.at ?? null),
    last_failure: lastFailure?.reason ?? null,
  }
}
