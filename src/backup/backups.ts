// Makes backups of the database that this process holds, one at a time, and remembers how they went. The copy is made in a child process.
import { existsSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Database } from '../../db/file/open.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import { listSigningKeys } from '../../db/tables/signing-keys.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { describeError, Fault } from '../fault.ts'
import { explainUnreachable } from '../nodes/database-unreachable.ts'
import type { Metrics } from '../observe/metrics.ts'
import { describeDenial, describeFolderDenial, statIfReachable } from '../runtime/file-access.ts'
import { findFittingKey } from '../tokens/keyring.ts'
import type { MasterKeySource } from '../tokens/master-key.ts'
import { masterKeyFingerprint } from '../tokens/master-key-file.ts'
import type { Manifest } from './backup-file.ts'
import { backupName, listPartials, partialPath } from './backup-names.ts'
import type { HeldState } from './copy-process.ts'
import { checkSpace } from './space.ts'

export type Backup = { file: string; bytes: number; milliseconds: number; manifest: Manifest }

/** Times in milliseconds since 1970, UTC. `last*` are of this process. */
export type BackupState = {
  isRunning: boolean
  lastSuccess: { at: number; file: string; bytes: number } | undefined
  lastFailure: { at: number; reason: string } | undefined
}

export type Backups = {
  /**
   * Writes a backup to a new file, or under a new name to an existing folder. It contains everything that was acknowledged before the call.
   * @throws Fault `conflict` while another backup runs or when the file exists; `unavailable` when it cannot be written
   */
  create: (to: string, onProgress?: OnProgress) => Promise<Backup>
  state: () => BackupState
  /** `latchkey-1a2b3c4d`, with which the names of backups begin. */
  installation: () => string
  /** Aborts a running backup. Call it before the database is closed. */
  stop: () => Promise<void>
}

type Parts = {
  database: Pick<Database, 'kind' | 'path' | 'orm' | 'client' | 'shared' | 'holdCheckpoints'>
  /** `latchkey-1a2b3c4d`. */
  installation: () => string
  masterKey: MasterKeySource
  metrics: Pick<Metrics, 'countBackupFailure'>
  /** Signs a checkpoint of the audit log; null without one. */
  signCheckpoint: () => Promise<string | null>
  now: () => number
}

export function createBackups(parts: Parts): Backups {
  const { installation, metrics, now } = parts
  let running: { abort: AbortController; ended: Promise<unknown> } | undefined
  let lastSuccess: BackupState['lastSuccess']
  let lastFailure: BackupState['lastFailure']

  async function make(file: string, signal: AbortSignal, onProgress?: OnProgress): Promise<Backup> {
    const startedAt = performance.now()
    const { manifest, bytes } = await writeBackup(parts, { file, installation: installation(), signal, onProgress })
    return { file, bytes, milliseconds: Math.round(performance.now() - startedAt), manifest }
  }

  return {
    create: async (to, onProgress) => {
      if (parts.database.kind === 'server' && parts.database.shared?.readCopy === undefined)
        throw new Fault(
          'conflict',
          'This database server makes no copies while it runs; take snapshots of it, see: latchkey help cluster',
        )
      if (running !== undefined)
        throw new Fault('conflict', 'Another backup is running; wait until it has ended, then try again')
      const file = fileFor(to, installation(), now())
      if (sqliteEnds.some((end) => file === parts.database.path + end))
        throw new Fault('conflict', `SQLite uses the name ${JSON.stringify(file)} itself; choose another name`)
      const abort = new AbortController()
      const making = make(file, abort.signal, onProgress)
      running = { abort, ended: making.catch(() => {}) }
      try {
        const backup = await making
        lastSuccess = { at: Date.parse(backup.manifest.created_at), file, bytes: backup.bytes }
        return backup
      } catch (error) {
        lastFailure = { at: now(), reason: describeError(error) }
        metrics.countBackupFailure()
        throw error
      } finally {
        running = undefined
      }
    },
    state: () => ({ isRunning: running !== undefined, lastSuccess, lastFailure }),
    installation,
    stop: async () => {
      running?.abort.abort(new Fault('unavailable', 'The backup was stopped, because the server stops'))
      await running?.ended
    },
  }
}

type BackupJob = { file: string; installation: string; signal: AbortSignal; onProgress: OnProgress | undefined }

async function writeBackup(
  { database, masterKey, signCheckpoint, now }: Parts,
  { file, installation, signal, onProgress }: BackupJob,
): Promise<{ manifest: Manifest; bytes: number }> {
  const [{ startCopy }, { fetchCopy }] = await Promise.all([import('./copy.ts'), import('./fetch-copy.ts')])
  const folder = dirname(file)
  // One backup at a time: such a file was left behind.
  const beginning = basename(file).startsWith(installation) ? installation : `${basename(file)}.`
  for (const path of listPartials(folder, beginning)) await rm(path, { force: true })
  await checkSpace(folder, await databaseBytes(database))
  const hex = await findFittingKey(masterKey, await listSigningKeys(database.orm))
  const auditCheckpoint = await signCheckpoint()
  const partial = partialPath(file)
  const describe = (): HeldState => ({
    created_at: new Date(now()).toISOString(),
    version: packageJson.version,
    installation,
    master_key_fingerprint: hex === undefined ? null : masterKeyFingerprint(hex),
    audit_checkpoint: auditCheckpoint,
  })
  try {
    const own = database.shared === undefined ? database.path : undefined
    // What is copied afterward is at least as new.
    const described = describe()
    const newestCommit = database.shared === undefined ? 0 : await fetchCopy(database, { partial, signal })
    const job = { database: own, partial, file, newestCommit }
    return await startCopy(database, job, own === undefined ? () => described : describe, { signal, onProgress })
  } catch (error) {
    for (const end of ['', '-wal', '-journal']) await rm(partial + end, { force: true })
    if (error instanceof Fault) throw error
    const unreachable = explainUnreachable(error)
    if (unreachable instanceof Fault) throw unreachable
    const why = (error as Error).message
    throw new Fault('unavailable', `The backup ${JSON.stringify(file)} could not be written: ${why}`, { cause: error })
  }
}

async function databaseBytes({ shared, client, path }: Pick<Database, 'shared' | 'client' | 'path'>): Promise<number> {
  if (shared === undefined)
    return ['', '-wal'].reduce((sum, end) => sum + (statSync(path + end, { throwIfNoEntry: false })?.size ?? 0), 0)
  const { rows } = await client.execute(
    'select page_count * page_size as bytes from pragma_page_count, pragma_page_size',
  )
  return Number(rows[0]?.bytes)
}

/** SQLite would remove such a file as its own left-over. */
const sqliteEnds = ['-wal', '-journal', '-shm']

/** File systems take names of 255 bytes; the name of an unfinished backup is longer than that of the backup. */
const nameBytesMax = 200
const pathBytesMax = 3_900

/** @throws Fault when a backup cannot be written there */
function fileFor(to: string, installation: string, at: number): string {
  if (Buffer.byteLength(to) > pathBytesMax || Buffer.byteLength(basename(to)) > nameBytesMax)
    throw new Fault('invalid', 'The path of the backup is too long; use a shorter one')
  const isFolder = to.endsWith('/') || statIfReachable(to)?.isDirectory() === true
  const file = isFolder ? join(to, backupName(installation, at)) : to
  const folder = dirname(file)
  const obstacle = describeFolderDenial(folder)
  if (obstacle !== undefined)
    throw new Fault('unavailable', `The backup cannot be written to the folder ${JSON.stringify(folder)}: ${obstacle}`)
  const denial = describeDenial(file, { toWrite: true })
  if (denial !== undefined) throw new Fault('unavailable', `The backup cannot be written: ${denial}`)
  if (existsSync(file))
    throw new Fault('conflict', `${JSON.stringify(file)} exists already; choose another name, or name a folder`)
  return file
}
