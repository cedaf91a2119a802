// Rows of usage that wait on the disk of this machine while the database takes no commits: one line of JSON for each commit. It knows neither
// when rows wait nor how they are committed.
import { copyFile, open, readFile, rename, truncate, writeFile } from 'node:fs/promises'
import { getTableColumns } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { type StoredResponse, storedResponses, type UsageRow, usage } from '../schema/record-schema.ts'

/** Rows that are committed together or not at all. */
export type UsageCommit = { usage: UsageRow[]; storedResponses: StoredResponse[] }

/** `id`: of the commit, under which it may have been sent. `after`: the newest usage row of the database before it was. */
export type WaitingCommit = UsageCommit & { id: string; installation: string; after: number }

export type WaitingFile = {
  path: string
  /** What an earlier process left. */
  found: WaitingCommit[]
  /** Lines that are no commits: damaged, or of another program. They are in `path` with `.damaged` at its end. */
  damaged: number
  bytes: () => number
  /** Resolves when the commit is on the disk. Those of the same turn share a write. */
  append: (commit: WaitingCommit) => Promise<void>
  /** Empties the file, unless something waits when the writes before have ended. */
  clearUnless: (isNeeded: () => boolean) => Promise<void>
  close: () => Promise<void>
}

/** What a machine keeps at most: some 60,000 requests. */
export const waitingBytesMax = 64 * 1024 * 1024

/** Opens the file, for its owner alone, and reads it. @throws the error of the file system */
export async function openWaitingFile(path: string): Promise<WaitingFile> {
  const { found, damaged, text } = await readWaiting(path)
  // Nobody got a response whose rows are in a line that does not end.
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  let bytes = Buffer.byteLength(whole)
  if (damaged > 0) {
    await copyFile(path, `${path}.damaged`)
    bytes = await replaceLines(path, found)
  } else if (whole.length < text.length) await truncate(path, bytes)
  const file = await open(path, 'a', 0o600)
  let queue: { line: string; done: () => void; failed: (error: unknown) => void }[] = []
  let isQueued = false
  let last: Promise<unknown> = Promise.resolve()

  async function write(): Promise<void> {
    isQueued = false
    const group = queue
    queue = []
    const text = group.map(({ line }) => line).join('')
    try {
      await file.appendFile(text)
      await file.datasync()
      bytes += Buffer.byteLength(text)
      for (const { done } of group) done()
    } catch (error) {
      // A part of it may be there, without its end: the next line must not continue it.
      await file.truncate(bytes).catch(() => {})
      for (const { failed } of group) failed(error)
    }
  }

  return {
    path,
    found,
    damaged,
    bytes: () => bytes,
    append: (commit) =>
      new Promise((done, failed) => {
        queue.push({ line: lineOf(commit), done, failed })
        if (isQueued) return
        isQueued = true
        last = last.then(write)
      }),
    clearUnless: (isNeeded) => {
      const cleared = last.then(async () => {
        if (bytes === 0 || isNeeded()) return
        await file.truncate(0)
        bytes = 0
      })
      last = cleared.catch(() => {})
      return cleared
    },
    close: async () => {
      await last
      await file.close()
    },
  }
}

function lineOf(commit: WaitingCommit): string {
  return `${JSON.stringify(commit)}\n`
}

/** Leaves only these commits in the file. Returns its bytes. */
async function replaceLines(path: string, commits: readonly WaitingCommit[]): Promise<number> {
  const text = commits.map(lineOf).join('')
  await writeFile(`${path}.new`, text, { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
  return Buffer.byteLength(text)
}

/** Reads the file without changing it. A file that does not exist has no commits. */
export async function readWaiting(path: string): Promise<Pick<WaitingFile, 'found' | 'damaged'> & { text: string }> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const commits = text.split('\n').slice(0, -1).map(parseLine)
  const found = commits.filter((commit) => commit !== undefined)
  return { found, damaged: commits.length - found.length, text }
}

function parseLine(line: string): WaitingCommit | undefined {
  try {
    const parsed = JSON.parse(line) as WaitingCommit
    const { id, installation, after } = parsed
    if (typeof id !== 'string' || typeof installation !== 'string' || !Number.isSafeInteger(after)) return undefined
    const ofUsage = rowsIn<UsageRow>(usage, parsed.usage)
    const stored = rowsIn<StoredResponse>(storedResponses, parsed.storedResponses)
    if (ofUsage === undefined || stored === undefined || ofUsage.length + stored.length === 0) return undefined
    return { id, installation, after, usage: ofUsage, storedResponses: stored }
  } catch {
    return undefined
  }
}

/**
 * The rows, if each has a plain value for each column of the table, and nothing else; undefined otherwise. An older program, whose rows wait
 * while this one is installed, did not know the newest columns: they are null.
 */
function rowsIn<Row>(table: SQLiteTable, rows: unknown): Row[] | undefined {
  const columns = Object.entries(getTableColumns(table)).filter(([field]) => field !== 'id')
  const nulls = Object.fromEntries(columns.flatMap(([field, { notNull }]) => (notNull ? [] : [[field, null]])))
  const isRow = (row: Record<string, unknown>) =>
    Object.keys(row).length === columns.length && columns.every(([field]) => isPlain(row[field]))
  if (!Array.isArray(rows) || !rows.every((row) => typeof row === 'object' && row !== null)) return undefined
  const whole = rows.map((row: object) => ({ ...nulls, ...row }))
  return whole.every(isRow) ? (whole as Row[]) : undefined
}

function isPlain(value: unknown): boolean {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}
