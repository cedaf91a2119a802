// When the server itself needs attention: disk, backups, master key, certificate, schema. Rules only, for those who administer the whole installation.

import type { Weakness } from '../../../db/remote/server-client.ts'
import type { ListedNode } from '../../../db/tables/nodes.ts'
import { shellWord } from '../../runtime/file-access.ts'
import type { Validity } from '../../values/certificates.ts'
import { durationText, type Finding, finding } from './findings.ts'
import { type GraceFacts, judgeGrace } from './grace-rules.ts'
import { judgeExpiry } from './issuer-rules.ts'
import { judgeNodes } from './node-rules.ts'

export type ServerFacts = {
  isServing: boolean
  /** Those of a server database. */
  nodes: readonly ListedNode[]
  /** What makes a server database weaker than it should be. */
  databaseWeaknesses: readonly Weakness[]
  grace: GraceFacts | undefined
  /** Undefined where the system does not say, and for a server database. Bytes. */
  disk: { folder: string; free: number; total: number; database: number } | undefined
  /** Undefined for a server database. */
  backup: BackupFacts | undefined
  /** Whether the last scheduled archive run failed. */
  isArchiveFailing: boolean
  /** Why the audit log could not be signed, and why it could not be published. */
  auditLog: {
    failure: string | undefined
    folderFailure: string | undefined
    /** When everything was last covered and signed, or the server began; undefined where no server keeps the log. */
    completeAt: number | undefined
    /** When the newest checkpoint that a witness has signed was signed; undefined without a witness. */
    cosignedAt: number | undefined
  }
  /** Undefined where the key is a value. `mode` is undefined for a file that is missing or out of reach. */
  masterKeyFile: { path: string; mode: number | undefined } | undefined
  /** The pair in use, and why newer files could not be used. */
  tls: (Validity & { failure: string | undefined }) | undefined
  schema: number
}

/** Times in milliseconds; `free` on the disk of the backups in bytes. */
export type BackupFacts = {
  folder: string | undefined
  everyMilliseconds: number
  newestAt: number | undefined
  failure: string | undefined
  free: number | undefined
}

type FindingInput = Omit<Parameters<typeof finding>[0], 'area'>

export function judgeServer(facts: ServerFacts, now: number): Finding[] {
  const found: [area: Finding['area'], about: FindingInput | undefined][] = [
    ['server', facts.isServing ? undefined : notServing],
    ['disk', judgeDisk(facts)],
    ['backup', facts.backup === undefined ? backupUnknown : judgeBackup(facts.backup, now)],
    ['backup', facts.backup && judgeBackupDisk(facts.backup, facts.disk)],
    ['archive', facts.isArchiveFailing ? archiveFailing : undefined],
    ['audit_log', judgeAuditLog(facts)],
    ['audit_log', judgeCheckpoint(facts, now)],
    ['audit_log', judgeCosignature(facts, now)],
    ['master_key', judgeMasterKeyFile(facts)],
    ['tls', judgeTls(facts, now)],
  ]
  const ofServer = found.flatMap(([area, about]) => (about === undefined ? [] : [finding({ area, ...about })]))
  return [
    ...ofServer,
    ...judgeGrace(facts.grace),
    ...facts.databaseWeaknesses.map(toDatabaseFinding),
    ...judgeNodes(facts.nodes),
  ]
}

function toDatabaseFinding({ level, what, action = readManual }: Weakness): Finding {
  return finding({
    level,
    area: 'nodes',
    code: 'database_weak',
    message: `The database server or cluster is weaker than it should be: ${what}`,
    action,
  })
}

const readManual = 'latchkey help availability for a cluster, latchkey help cluster for a libSQL server'

const notServing: FindingInput = {
  level: 'warning',
  code: 'server_stopped',
  message: 'No server runs on this database',
  action: 'latchkey serve, or start the service',
}

const backupUnknown: FindingInput = {
  level: 'note',
  code: 'backup_unknown',
  message: 'This node makes no backups of the database server: nothing here shows whether others are made',
  action: 'Make sure that they are made and can be restored: latchkey help cluster, latchkey help availability',
}

const archiveFailing: FindingInput = {
  level: 'error',
  code: 'archive_failed',
  message: 'The last scheduled archive run failed, so the database keeps growing',
  action: 'Read the log at archive_failed, then run: latchkey archive',
}

const dayMilliseconds = 24 * 60 * 60 * 1_000

/** A witness that comes once a week by USB is no finding. */
const cosignatureMillisecondsMax = 8 * dayMilliseconds

/** A checkpoint is due every minute, and the first one of a large database takes a few. */
const checkpointMillisecondsMax = 10 * 60_000

function judgeAuditLog({ auditLog: { failure, folderFailure } }: ServerFacts): FindingInput | undefined {
  if (failure !== undefined) {
    const message = `The audit log could not be signed: ${failure}`
    const action = 'Mend the cause: new rows have no proof until then'
    return { level: 'error', code: 'audit_log_failed', message, action }
  }
  if (folderFailure === undefined) return undefined
  const message = `The audit log could not be published: ${folderFailure}`
  const action = 'Let the user of the server write to LATCHKEY_AUDIT_DIR; the next checkpoint catches up'
  return { level: 'warning', code: 'audit_log_not_published', message, action }
}

function judgeCheckpoint({ auditLog: { failure, completeAt } }: ServerFacts, now: number): FindingInput | undefined {
  if (failure !== undefined || completeAt === undefined || now - completeAt <= checkpointMillisecondsMax)
    return undefined
  const minutes = Math.floor((now - completeAt) / 60_000)
  const message = `The audit log has had no checkpoint for ${minutes} minutes: nothing proves the rows since`
  const action = 'Run: latchkey audit checkpoint; if it does not end, the database is slow or the server is overloaded'
  return { level: 'warning', code: 'audit_checkpoint_old', message, action }
}

function judgeCosignature({ auditLog: { cosignedAt } }: ServerFacts, now: number): FindingInput | undefined {
  if (cosignedAt === undefined || now - cosignedAt <= cosignatureMillisecondsMax) return undefined
  const days = Math.floor((now - cosignedAt) / dayMilliseconds)
  const message = `The newest checkpoint that a witness has signed is ${days} days old: what came later is held by this machine alone`
  const action = 'Bring the folder to a witness, and its signature back: latchkey help audit'
  return { level: 'warning', code: 'audit_cosignature_old', message, action }
}

const [megabyte, gigabyte] = [1e6, 1e9]

/** Below the first, commits may fail within minutes. */
const freeBytesMin = 128 * megabyte
/** Below the second, a migration or a backup on this disk may fail. */
const freeBytesEnough = gigabyte

function judgeDisk({ disk }: ServerFacts): FindingInput | undefined {
  if (disk === undefined || disk.free >= Math.max(freeBytesEnough, disk.database)) return undefined
  const level = disk.free < freeBytesMin ? 'error' : 'warning'
  const share = Math.round((100 * disk.free) / disk.total)
  const message = `The disk of ${JSON.stringify(disk.folder)} has ${bytesText(disk.free)} free (${share} %)`
  return { level, code: 'disk_nearly_full', message, action: 'Free some space: with a full disk, exchanges fail' }
}

function judgeBackup(
  { folder, everyMilliseconds, newestAt, failure }: BackupFacts,
  now: number,
): FindingInput | undefined {
  if (folder === undefined) {
    if (newestAt !== undefined) return undefined
    const message = 'Backups are not scheduled'
    return { level: 'note', code: 'backup_not_scheduled', message, action: 'Set LATCHKEY_BACKUP_DIR' }
  }
  const where = JSON.stringify(folder)
  const action = 'Read the log at backup_failed, then run: latchkey backup'
  if (failure !== undefined)
    return { level: 'error', code: 'backup_failed', message: `The last scheduled backup failed: ${failure}`, action }
  if (newestAt === undefined)
    return { level: 'warning', code: 'backup_missing', message: `There is no backup in ${where}`, action }
  const age = now - newestAt
  if (age <= 2 * everyMilliseconds) return undefined
  const message = `The newest backup in ${where} is ${durationText(age / 1_000)} old`
  return { level: 'warning', code: 'backup_old', message, action }
}

function judgeBackupDisk({ folder, free }: BackupFacts, disk: ServerFacts['disk']): FindingInput | undefined {
  if (folder === undefined || free === undefined || disk === undefined || free > disk.database) return undefined
  const message = `The disk of the backups in ${JSON.stringify(folder)} has ${bytesText(free)} free, less than the database takes (${bytesText(disk.database)})`
  const action = 'Free some space, use another disk, or lower LATCHKEY_BACKUP_KEEP'
  return { level: 'warning', code: 'backup_disk_nearly_full', message, action }
}

function judgeMasterKeyFile({ masterKeyFile: file }: ServerFacts): FindingInput | undefined {
  if (file === undefined) return undefined
  const path = JSON.stringify(file.path)
  if (file.mode === undefined) {
    const message = `The master key file ${path} is missing or out of reach, so the next start fails`
    return {
      level: 'error',
      code: 'master_key_missing',
      message,
      action: 'Restore it, or see: latchkey help disaster',
    }
  }
  if ((file.mode & 0o077) === 0) return undefined
  const mode = (file.mode & 0o777).toString(8).padStart(4, '0')
  const message = `Other users can read the master key ${path} (mode ${mode})`
  return { level: 'error', code: 'master_key_mode', message, action: `chmod 600 ${shellWord(file.path)}` }
}

function judgeTls({ tls }: ServerFacts, now: number): FindingInput | undefined {
  if (tls === undefined) return undefined
  if (tls.failure !== undefined) {
    const message = `The TLS files cannot be used, and the server keeps the old pair: ${tls.failure}`
    return {
      level: 'error',
      code: 'tls_files_unusable',
      message,
      action: 'Repair the files; they are read every minute',
    }
  }
  const expiry = judgeExpiry(tls, now)
  if (expiry === undefined) return undefined
  const message = `The TLS certificate ${expiry.says}`
  return { level: expiry.level, code: 'tls_expires', message, action: 'Replace the files of LATCHKEY_TLS_CERT_FILE' }
}

/** For the command, whose program can be newer than the running server. */
export function judgeSchema(found: number, latest: number): Finding[] {
  if (found === latest) return []
  const about: FindingInput =
    found < latest
      ? {
          level: 'note',
          code: 'schema_older',
          message: `The database has schema version ${found}, and this program has ${latest}: the next start migrates it`,
          action: 'Make a backup, then restart the server',
        }
      : {
          level: 'error',
          code: 'schema_newer',
          message: `The database has schema version ${found}, and this program supports up to ${latest}`,
          action: 'Install the newer program again',
        }
  return [finding({ area: 'database', ...about })]
}

function bytesText(bytes: number): string {
  return bytes < gigabyte ? `${Math.round(bytes / megabyte)} MB` : `${(bytes / gigabyte).toFixed(1)} GB`
}
