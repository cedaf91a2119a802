// Checks archives long after they were made: each file against its manifest and against the database, and folders for other archives.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Orm } from '../../db/file/open.ts'
import type { ArchiveKind } from '../../db/schema/archive-kinds.ts'
import type { Archive } from '../../db/schema/record-schema.ts'
import { listArchives } from '../../db/tables/archives.ts'
import { Fault } from '../fault.ts'
import { type } from '../values/shape.ts'
import { checkIsArchive, readArchiveFile, unreadable } from './archive-file.ts'
import { manifestFileOf, manifestOf, manifestShape } from './manifest.ts'

/** Reads the whole file of a verified archive. Returns what is wrong with it, or null. */
export async function verifyArchive(archive: Archive, folder: string, databasePath: string): Promise<string | null> {
  const { file, sha256, bytes, rowCount } = archive
  const path = join(folder, file)
  try {
    const found = await readArchiveFile(path, databasePath)
    if (found.sha256 !== sha256) throw unreadable(path, `its SHA-256 is ${found.sha256}, not ${sha256}`)
    if (found.lines !== rowCount) throw unreadable(path, `it has ${found.lines} rows, not ${rowCount}`)
    await checkManifest(archive, join(folder, manifestFileOf(file)), { sha256, bytes: bytes ?? 0, databasePath })
    return null
  } catch (error) {
    if (error instanceof Fault) return error.message
    throw error
  }
}

/** The schema may be older than this program's. */
async function checkManifest(
  archive: Archive,
  path: string,
  { databasePath, ...written }: { sha256: string; bytes: number; databasePath: string },
): Promise<void> {
  checkIsArchive(path, databasePath)
  const manifest = manifestShape(parse(path, await readFile(path, 'utf8')))
  if (manifest instanceof type.errors) throw unreadable(path, manifest.summary)
  const { schema: _schema, ...expected } = manifestOf(archive, written)
  for (const [name, value] of Object.entries(expected)) {
    const found = manifest[name as keyof typeof expected]
    if (JSON.stringify(found) !== JSON.stringify(value))
      throw unreadable(path, `${name} is ${JSON.stringify(found)}, not ${JSON.stringify(value)}`)
  }
}

function parse(path: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw unreadable(path, 'it is not valid JSON', cause)
  }
}

const rowsPerSlice = 200

/** Newest first, in slices: a server that archives every day has thousands after some years. */
export async function listAllArchives(orm: Orm, kind?: ArchiveKind): Promise<Archive[]> {
  const all: Archive[] = []
  for (;;) {
    const slice = await listArchives(orm, { kind, beforeId: all.at(-1)?.id, limit: rowsPerSlice })
    all.push(...slice)
    if (slice.length < rowsPerSlice) return all
  }
}

/** Lists the paths of archives in these folders that the database does not know, such as those of another installation. */
export async function findUnknownFiles(orm: Orm, folders: ReadonlySet<string>): Promise<string[]> {
  const known = new Set((await listAllArchives(orm)).map(({ file }) => file))
  const unknown: string[] = []
  for (const folder of folders)
    for (const name of await readdir(folder).catch(() => []))
      if (isArchiveName(name) && !known.has(name)) unknown.push(join(folder, name))
  return unknown.toSorted()
}

function isArchiveName(name: string): boolean {
  return /^(?:exchanges|usage)-.*\.ndjson\.gz$/.test(name)
}
