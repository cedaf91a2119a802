// Moves old rows into files, from top to bottom: plan, write, read back and compare, remove. A row leaves the database only when it is in a
// verified file, and whatever stops this between two steps, the next run continues there.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Database, Orm } from '../../db/file/open.ts'
import { planArchive } from '../../db/read/due-rows.ts'
import { type OnProgress, readInSlices } from '../../db/read/slices.ts'
import type { ArchiveKind } from '../../db/schema/archive-kinds.ts'
import type { Archive } from '../../db/schema/record-schema.ts'
import { type Actor, actorColumns, recordChanges } from '../../db/tables/admin-changes.ts'
import {
  findArchive,
  insertArchive,
  listUnfinishedArchives,
  markFinished,
  markVerified,
  moveUnverified,
  type PlannedArchive,
  removeArchivedRows,
} from '../../db/tables/archives.ts'
import { removeArchivedSalts } from '../../db/tables/audit-log.ts'
import { addServedTotals } from '../../db/tables/served-totals.ts'
import type { Statement } from '../../db/write/rows.ts'
import type { Writer } from '../../db/write/write.ts'
import { Fault } from '../fault.ts'
import type { Log } from '../observe/log.ts'
import {
  findArchivedLine,
  readArchiveFile,
  unreadable,
  type Written,
  writeArchiveFile,
  writeTextFile,
} from './archive-file.ts'
import { manifestFileOf, manifestOf } from './manifest.ts'
import type { Rest } from './pace.ts'
import { saltedLines, saltMember } from './salted-lines.ts'

export type ArchiveContext = {
  database: Database
  /** This machine, where several share a database. */
  node: string | null
  orm: Orm
  reader: Orm
  writer: Pick<Writer, 'write'>
  /** Waits while others work. Call it after each commit. */
  rest: Rest
  /** Milliseconds since 1970, UTC. */
  now: () => number
  log: Log
  rowsPerFileMax?: number
}

/** Where a run writes, and who started it. */
type Run = { folder: string; by: Actor }

export type DueRows = Run & { kind: ArchiveKind /** Milliseconds since 1970 UTC. */; before: number }

/** Rows of one commit that removes rows: about a millisecond, since it runs on the connection that serves. */
const rowsRemovedMax = 250

/** A million rows take about 100 MB compressed, and a run that is interrupted repeats at most one file. */
const rowsPerFileDefault = 1_000_000

/**
 * Archives every row of a kind that is older than `before`, after what an earlier run left unfinished. `onProgress` is called with rows;
 * what it throws ends the run. `onArchived` is called with each archive whose rows have left the database.
 * @throws Fault `unavailable` when a file cannot be written, or does not hold what was written
 */
export async function archiveRows(
  context: ArchiveContext,
  { kind, before, folder, by }: DueRows,
  { onProgress, onArchived }: { onProgress: OnProgress; onArchived: (archive: Archive) => void },
): Promise<void> {
  const { orm, reader, now, rowsPerFileMax: rowsMax = rowsPerFileDefault } = context
  for (const archive of await listUnfinishedArchives(orm, kind))
    onArchived(await finish(context, archive, { folder, by }, onProgress))
  let planned: PlannedArchive | undefined
  do {
    planned = await planArchive(reader, { kind, before, now: now(), rowsMax })
    if (planned !== undefined)
      onArchived(await finish(context, await begin(context, planned, { folder, by }), { folder, by }, onProgress))
    // One with fewer rows was the last.
  } while (planned !== undefined && planned.rowCount >= rowsMax)
}

/** Its name is taken before the file exists, so that no other archive can hold the same rows. */
async function begin(
  { orm, writer, node, now }: ArchiveContext,
  planned: PlannedArchive,
  { folder, by }: Run,
): Promise<Archive> {
  const file = newFileName(planned)
  const insert = insertArchive(orm, planned, { folder, file, node, createdAt: now() })
  await writer.write([insert, ...recordArchive({ by, at: now(), file, before: undefined })])
  return find(orm, file)
}

function newFileName({ kind, firstAt, lastAt }: PlannedArchive): string {
  const day = (time: number) => new Date(time).toISOString().slice(0, 10)
  // The random part keeps a database that was restored from overwriting the files of its later self.
  return `${kind}-${day(firstAt)}-${day(lastAt)}-${crypto.randomUUID().slice(0, 8)}.ndjson.gz`
}

type ArchiveRecord = { by: Actor; at: number; file: string; before: Archive | undefined }

/** Who began an archive, and whose run removed its rows: the two can differ. */
function recordArchive({ by, at, file, before }: ArchiveRecord): Iterable<Statement> {
  const targets = new Map([[file, before]])
  return recordChanges({ at, ...actorColumns(by), operation: 'archive.run', kind: 'archive', targets })
}

async function find(orm: Orm, file: string): Promise<Archive> {
  const found = await findArchive(orm, file)
  if (found === undefined) throw new Error(`The archive ${file} is not in the database`)
  return found
}

async function finish(
  context: ArchiveContext,
  archive: Archive,
  { folder, by }: Run,
  onProgress: OnProgress,
): Promise<Archive> {
  const { orm, writer, now, log } = context
  const startedAt = performance.now()
  const phase = (index: number): OnProgress => reportPhase(archive, index, onProgress)
  let { file } = archive
  if (archive.state === 'writing') file = await write(context, archive, { folder, by }, phase)
  else await checkAgain(archive, context)
  const verified = await find(orm, file)
  // Requests leave the ledger once all totals include them. Progress throws when a server stops.
  const add = (statements: Statement[]) => writer.write(statements).then(() => phase(2)(0, verified.rowCount))
  if (verified.kind === 'usage') await addServedTotals({ ...context, write: add, isStopped: () => false }, 1)
  const rows = { from: verified.firstRowId, until: verified.lastRowId + 1 }
  const remove = (slice: { from: number; until: number }) => writer.write(removeArchivedRows(orm, verified, slice))
  for await (const _ of readInSlices(rows, remove, phase(2), { rowsMax: rowsRemovedMax })) await context.rest()
  await removeSalts(context, verified)
  const record = recordArchive({ by, at: now(), file: verified.file, before: verified })
  await writer.write([markFinished(orm, verified, now()), ...record])
  const { kind, rowCount, firstAt, lastAt, bytes } = verified
  log('info', 'rows_archived', {
    kind,
    rows: rowCount,
    from: new Date(firstAt).toISOString(),
    to: new Date(lastAt).toISOString(),
    file: join(verified.folder, verified.file),
    bytes,
    milliseconds: Math.round(performance.now() - startedAt),
  })
  return find(orm, file)
}

/** The salts of archived exchanges are in the archive: they go with it. Archives that older programs wrote have none, so these salts stay. */
async function removeSalts({ reader, writer, rest, database }: ArchiveContext, archive: Archive): Promise<void> {
  if (archive.kind !== 'exchanges') return
  const path = join(archive.folder, archive.file)
  if ((await findArchivedLine(path, database.path, `"${saltMember}":`)) === undefined) return
  for await (const statement of removeArchivedSalts(reader, archive)) {
    await writer.write([statement])
    await rest()
  }
}

/** Writes the file and its manifest, reads the file back, and compares it with the rows. Returns the name of the file. */
async function write(
  context: ArchiveContext,
  begun: Archive,
  { folder, by }: Run,
  phase: (index: number) => OnProgress,
): Promise<string> {
  const { reader, writer } = context
  const archive = await moveHere(context, begun, { folder, by })
  const lines = saltedLines(reader, archive, phase(0))
  const written = await writeArchiveFile(folder, archive.file, textOf(lines))
  const manifest = `${JSON.stringify(manifestOf(archive, written), null, 2)}\n`
  await writeTextFile(folder, manifestFileOf(archive.file), manifest)
  await compare(context, archive, written, phase(1))
  await writer.write([markVerified(context.orm, archive, written)])
  return archive.file
}

/** Moves an unverified archive of another folder or node to this one, where it is written from the start. */
async function moveHere(context: ArchiveContext, archive: Archive, { folder, by }: Run): Promise<Archive> {
  const { orm, writer, node, now } = context
  if (archive.folder === folder && archive.node === node) return archive
  // Another node that believes that it still archives may write the old file, even in this folder.
  const isElsewhere = isOfAnotherNode(archive, node)
  const file = isElsewhere ? newFileName(archive) : archive.file
  if (!isElsewhere)
    for (const old of [archive.file, manifestFileOf(archive.file)])
      await rm(join(archive.folder, old), { force: true }).catch(() => {})
  const record = recordArchive({ by, at: now(), file, before: archive })
  await writer.write([moveUnverified(orm, archive, { folder, file, node }), ...(isElsewhere ? record : [])])
  return find(orm, file)
}

/** Archives of a database file, and those of programs that did not note it, have no node. */
function isOfAnotherNode(archive: Archive, node: string | null): boolean {
  return archive.node !== null && archive.node !== node
}

async function* textOf(lines: AsyncIterable<{ text: string }>): AsyncGenerator<string> {
  for await (const { text } of lines) yield text
}

/** The rows are read a second time, so that nothing that happened to the first text stays unseen. */
async function compare(
  { reader, database }: ArchiveContext,
  archive: Archive,
  written: Written,
  onProgress: OnProgress,
): Promise<void> {
  const path = join(archive.folder, archive.file)
  const hash = createHash('sha256')
  let rows = 0
  for await (const { text, lines } of saltedLines(reader, archive, onProgress)) {
    hash.update(text)
    rows += lines
  }
  const found = await readArchiveFile(path, database.path)
  const isSame =
    found.sha256 === written.sha256 &&
    found.contentSha256 === hash.digest('hex') &&
    found.lines === rows &&
    rows === archive.rowCount
  if (!isSame) throw unreadable(path, `it does not hold the ${archive.rowCount} rows that were written`)
}

/** A run that was interrupted left a verified file, and some of its rows may be gone: without the file, the others stay. */
async function checkAgain(archive: Archive, { node, database }: ArchiveContext): Promise<void> {
  const path = join(archive.folder, archive.file)
  if (isOfAnotherNode(archive, node) && !existsSync(path))
    throw new Fault(
      'unavailable',
      `The unfinished archive ${JSON.stringify(path)} is on the node ${archive.node}: archive there, or copy the file here`,
    )
  const { sha256 } = await readArchiveFile(path, database.path)
  if (sha256 !== archive.sha256) throw unreadable(path, 'its SHA-256 is not the one of the file that was written')
}

const phases = 3

/** Writing, comparing and removing each count a third of the rows. */
function reportPhase({ firstRowId, lastRowId, rowCount }: Archive, index: number, onProgress: OnProgress): OnProgress {
  const ids = lastRowId + 1 - firstRowId
  return (done) => onProgress(Math.floor((rowCount * (index + done / ids)) / phases), rowCount)
}
