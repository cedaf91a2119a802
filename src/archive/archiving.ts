// The archive runs of one process: one at a time, by command or on schedule, with what the last ones did. It also shortens the database.
import { hostname } from 'node:os'
import type { Database } from '../../db/file/open.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import { type ArchiveKind, archiveKinds } from '../../db/schema/archive-kinds.ts'
import type { Archive } from '../../db/schema/record-schema.ts'
import type { Actor } from '../../db/tables/admin-changes.ts'
import { Fault } from '../fault.ts'
import { withArchiveLease } from './archive-lease.ts'
import type { ArchiveContext } from './archive-rows.ts'
import { createRest, type Rest } from './pace.ts'

export type ArchiveRequest = {
  /** Rows of a kind that are older than its time are archived, in milliseconds since 1970 UTC. */
  before: Partial<Record<ArchiveKind, number>>
  /** An existing folder. */
  folder: string
  /** Who asked for it. */
  by: Actor
}

export type Archiver = {
  /** @throws Fault `conflict` during another run, of another node too, `unavailable` when a file fails or the server stops */
  run: (
    request: ArchiveRequest,
    options: { isAlone: boolean; onProgress?: OnProgress | undefined },
  ) => Promise<Archive[]>
  /** Rows archived since the process started. */
  rowsArchived: () => ReadonlyMap<ArchiveKind, number>
  /** Ends the current run after its slice; the next one continues it. */
  stop: () => Promise<void>
}

/** `host` names this machine where several share a database. */
export function createArchiver(
  context: Omit<ArchiveContext, 'rest' | 'node'>,
  { host = hostname() }: { host?: string | undefined } = {},
): Archiver {
  const node = context.database.kind === 'server' ? host : null
  const rowsArchived = new Map<ArchiveKind, number>(archiveKinds.map((kind) => [kind, 0]))
  let running: Promise<unknown> | undefined
  let isStopping = false
  const checkRuns = () => {
    if (isStopping) throw new Fault('unavailable', 'The server is stopping; the next run continues with these archives')
  }

  async function run(
    { before, folder, by }: ArchiveRequest,
    writer: ArchiveContext['writer'],
    isAlone: boolean,
    onProgress: OnProgress,
  ) {
    // Most processes archive nothing.
    const { archiveRows } = await import('./archive-rows.ts')
    const rest = createRest(isAlone)
    // A command prints what it archived.
    const log = isAlone ? () => {} : context.log
    const archives: Archive[] = []
    for (const kind of archiveKinds) {
      const time = before[kind]
      if (time === undefined) continue
      const onArchived = (archive: Archive) => {
        archives.push(archive)
        rowsArchived.set(kind, (rowsArchived.get(kind) ?? 0) + archive.rowCount)
      }
      await archiveRows(
        { ...context, writer, node, rest, log },
        { kind, before: time, folder, by },
        { onProgress, onArchived },
      )
    }
    if (archives.length > 0) await shorten(context.database, rest, checkRuns)
    return archives
  }

  return {
    run: async (request, { isAlone, onProgress = () => {} }) => {
      checkRuns()
      if (running !== undefined)
        throw new Fault('conflict', 'Rows are being archived already; wait for that run to finish')
      const reportAndCheck: OnProgress = (done, total) => {
        checkRuns()
        onProgress(done, total)
      }
      const runWith = (writer: ArchiveContext['writer']) => run(request, writer, isAlone, reportAndCheck)
      const { writer } = context
      const result = node === null ? runWith(writer) : withArchiveLease(writer, node, runWith)
      running = result.catch(() => {})
      return result.finally(() => {
        running = undefined
      })
    },
    rowsArchived: () => rowsArchived,
    stop: async () => {
      isStopping = true
      await running
    },
  }
}

/** Free pages that stay for new rows, 4 MiB. */
const pagesKept = 1_000
const pagesAtOnceMin = 4
/** A page that is read from the disk takes up to half a millisecond. */
const pagesAtOnceMax = 64
const millisecondsAtOnce = 5

/** Gives free pages back to the file system. Moving a page takes longer if it must be read from the disk. */
async function shorten({ giveBackPages }: Database, rest: Rest, checkRuns: () => void): Promise<void> {
  for (let pages = pagesAtOnceMin; ; ) {
    checkRuns()
    const startedAt = performance.now()
    const free = await giveBackPages(pages)
    const milliseconds = performance.now() - startedAt
    if (free <= pagesKept) return
    const fitting = Math.round((pages * millisecondsAtOnce) / Math.max(milliseconds, 0.1))
    pages = Math.min(Math.max(Math.min(fitting, 2 * pages), pagesAtOnceMin), pagesAtOnceMax)
    await rest()
  }
}
