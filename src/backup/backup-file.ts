// The format of a backup: a SQLite database, and after its last page the manifest as one line of JSON. Any SQLite tool
// opens it, `tail -n 1` prints the manifest, and writing it needs the space of one copy.
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { Fault } from '../fault.ts'
import { type } from '../values/shape.ts'

const count = type('number.integer >= 0')
const manifestShape = type({
  latchkey_backup: 'number.integer >= 1',
  created_at: 'string.date.iso',
  version: 'string',
  schema: count,
  installation: 'string',
  database_bytes: 'number.integer >= 512',
  database_sha256: /^[0-9a-f]{64}$/,
  tables: { '[string]': { rows: count, highest: type('number.integer').or('null') } },
  signing_keys: 'string[]',
  master_key_fingerprint: 'string | null',
  /** The newest checkpoint of the audit log, as it was signed. */
  'audit_checkpoint?': 'string | null',
})
export type Manifest = typeof manifestShape.infer

/** The version of this format. */
export const backupFormat = 1
/** A manifest takes 2 KB. */
const manifestBytesMax = 64 * 1024
const databaseMark = 'SQLite format 3\0'

export function manifestLine(manifest: Manifest): string {
  return `\n${JSON.stringify(manifest)}\n`
}

/**
 * Reads the manifest, without checking the database before it.
 * @throws Fault `invalid` that says why the file is not a backup
 */
export async function readManifest(path: string): Promise<Manifest> {
  const file = await openBackup(path)
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw notBackup(path, 'it is not a regular file')
    if ((await readAt(file, 0, databaseMark.length)).toString('latin1') !== databaseMark)
      throw notBackup(path, 'it does not begin as a SQLite database')
    const from = Math.max(0, stat.size - manifestBytesMax)
    const end = (await readAt(file, from, stat.size - from)).toString('utf8')
    const line = /\n(\{[^\n]*\})\n$/.exec(end)?.[1]
    if (line === undefined) throw notBackup(path, 'it does not end in a manifest; it is cut off, or another database')
    return checkManifest(path, line, stat.size)
  } finally {
    await file.close()
  }
}

function checkManifest(path: string, line: string, size: number): Manifest {
  const given = parse(line)
  const manifest = manifestShape(given)
  const format = (given as { latchkey_backup?: unknown } | undefined)?.latchkey_backup
  if (typeof format === 'number' && format > backupFormat)
    throw new Fault('invalid', `${JSON.stringify(path)} was made by a newer program; use that one to restore it`)
  if (manifest instanceof type.errors) throw notBackup(path, 'its manifest is not valid')
  const expected = manifest.database_bytes + Buffer.byteLength(line) + 2
  if (expected === size) return manifest
  throw notBackup(path, `it has ${size} bytes where its manifest says ${expected}; it was cut off or changed`)
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

async function openBackup(path: string): Promise<FileHandle> {
  try {
    // The open of a pipe would wait for a writer.
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'it does not exist' : message
    throw new Fault('invalid', `The backup ${JSON.stringify(path)} cannot be read: ${why}`, { cause })
  }
}

async function readAt(file: FileHandle, at: number, bytes: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, at)
  return buffer.subarray(0, bytesRead)
}

function notBackup(path: string, why: string): Fault {
  return new Fault('invalid', `${JSON.stringify(path)} is not a complete backup: ${why}`)
}
