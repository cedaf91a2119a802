// The child process that makes a backup. It opens the files of the database, which the holder of the database must never do, and talks to the
// holder in lines of JSON. When the holder ends, its input ends, and the process removes what it has written.
import { createHash } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import type { Client } from '@libsql/core/api'
import { connect, letGo } from '../../db/file/connection.ts'
import { completeCopy, draftCopy } from '../../db/file/copy-file.ts'
import { createOrm } from '../../db/file/open.ts'
import { readSchemaVersion, readTableFacts } from '../../db/read/facts.ts'
import { listSigningKeys } from '../../db/tables/signing-keys.ts'
import { hasPrivateKey } from '../tokens/keyring.ts'
import { signingKeyState } from '../tokens/signing-keys.ts'
import { backupFormat, type Manifest, manifestLine } from './backup-file.ts'

/** The holder's first line. */
export type CopyJob = {
  /** Undefined where a database server has written its copy to `partial`. */
  database: string | undefined
  /** Where the backup is written, and its name once it is complete. */
  partial: string
  file: string
  /** What the copy must have at least: the number of the newest commit of a database server, 0 in a file. */
  newestCommit: number
}

/** The holder's second line: it holds checkpoints from now on. A third line, of any content, confirms that it did until `copied`. */
export type HeldState = Pick<
  Manifest,
  'created_at' | 'version' | 'installation' | 'master_key_fingerprint' | 'audit_checkpoint'
>

/** What this process writes, one per line. */
export type CopyMessage =
  | { drafted: true }
  | { progress: { done: number; total: number } }
  | { copied: true }
  | { done: Manifest; bytes: number }
  | { failed: string }

export async function runCopyProcess(): Promise<never> {
  process.umask(0o077)
  // A holder that was killed reads nothing more. The end of the input says so, and leaves time to remove the files.
  process.stdout.on('error', () => {})
  // The server goes first.
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {}
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  const nextLine = async () => (await lines.next()).value as string | undefined
  const text = await nextLine()
  if (text === undefined) process.exit(1)
  const job = JSON.parse(text) as CopyJob
  const orAbandon = (line: string | undefined) => line ?? abandon(job)
  const held = nextLine().then(orAbandon)
  const confirmed = held.then(nextLine).then(orAbandon)
  // There is no fourth line: the input ends with the holder.
  void confirmed.then(nextLine).then(orAbandon)
  try {
    if (job.database !== undefined) await draftCopy(job.database, job.partial, createReporter())
    await tell({ drafted: true })
    const about = JSON.parse(await held) as HeldState
    if (job.database !== undefined) await completeCopy(job.database, job.partial)
    await tell({ copied: true })
    await confirmed
    await tell(await complete(job, about))
  } catch (error) {
    remove(job)
    await tell({ failed: (error as Error).message })
    process.exit(1)
  }
  process.exit(0)
}

async function tell(message: CopyMessage): Promise<void> {
  await new Promise<void>((written) => process.stdout.write(`${JSON.stringify(message)}\n`, () => written()))
}

const reportEveryMilliseconds = 200

function createReporter(): (done: number, total: number) => void {
  let reportedAt = performance.now()
  return (done, total) => {
    if (performance.now() - reportedAt < reportEveryMilliseconds) return
    reportedAt = performance.now()
    void tell({ progress: { done, total } })
  }
}

/** Without a turn of the event loop in between, in which a file could still be created. */
function abandon(job: CopyJob): never {
  remove(job)
  process.exit(1)
}

function remove({ partial }: CopyJob): void {
  for (const end of ['', '-wal', '-journal']) rmSync(partial + end, { force: true })
}

async function complete({ partial, file, newestCommit }: CopyJob, about: HeldState): Promise<CopyMessage> {
  const found = await settle(partial, { at: Date.parse(about.created_at), newestCommit })
  // A connection with an exclusive lock leaves an empty journal.
  for (const end of ['-wal', '-journal']) await rm(partial + end, { force: true })
  const { bytes, sha256 } = await hashFile(partial)
  const manifest: Manifest = {
    latchkey_backup: backupFormat,
    created_at: about.created_at,
    version: about.version,
    schema: found.schema,
    installation: about.installation,
    database_bytes: bytes,
    database_sha256: sha256,
    tables: found.tables,
    signing_keys: found.signingKeys,
    master_key_fingerprint: about.master_key_fingerprint,
    audit_checkpoint: about.audit_checkpoint ?? null,
  }
  const line = manifestLine(manifest)
  await append(partial, line)
  if (existsSync(file)) throw new Error('another file has got this name meanwhile')
  await rename(partial, file)
  await flushFolder(dirname(file))
  return { done: manifest, bytes: bytes + Buffer.byteLength(line) }
}

/**
 * Moves the log into the copy, so that it is one file, and reads what the copy contains.
 * @throws Error when the copy is damaged, or older than it must be
 */
async function settle(
  path: string,
  { at, newestCommit }: { at: number; newestCommit: number },
): Promise<{ schema: number; tables: Manifest['tables']; signingKeys: string[] }> {
  const client: Client = connect(path)
  try {
    await client.execute('pragma locking_mode = exclusive')
    const { rows } = await client.execute('pragma journal_mode = delete')
    if (rows[0]?.[0] !== 'delete') throw new Error('The log of the copy cannot be moved into it')
    const { rows: found } = await client.execute('pragma quick_check(1)')
    if (found[0]?.[0] !== 'ok') throw new Error(`The database is damaged: ${String(found[0]?.[0])}`)
    const { rows: commits } = await client.execute('select coalesce(max(number), 0) from batches')
    if (Number(commits[0]?.[0]) < newestCommit) throw new Error('the server has copied an older state of the database')
    const signingKeys = (await listSigningKeys(createOrm(client)))
      .filter((row) => hasPrivateKey(row) && signingKeyState(row, at) !== 'retired')
      .map(({ id }) => id)
    return { schema: await readSchemaVersion(client), tables: await readTableFacts(client), signingKeys }
  } finally {
    client.close()
    letGo()
  }
}

async function hashFile(path: string): Promise<{ bytes: number; sha256: string }> {
  const file = await open(path, 'r')
  try {
    return await hashBytes(file.createReadStream({ highWaterMark: 1024 * 1024, autoClose: false }))
  } finally {
    await file.close()
  }
}

/** The size and the digest of a stream, in one pass. */
export async function hashBytes(stream: AsyncIterable<unknown>): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const piece of stream as AsyncIterable<Buffer>) {
    hash.update(piece)
    bytes += piece.length
  }
  return { bytes, sha256: hash.digest('hex') }
}

async function append(path: string, line: string): Promise<void> {
  const file = await open(path, 'a')
  try {
    await file.writeFile(line)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** A new file name is on disk once its folder is flushed. */
async function flushFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
