// Commits rows of usage, or keeps them on the disk of this machine until the database takes them. Each is committed once: its id is unique for
// an hour, and after that a commit fails whose requests the database has.
import { appendFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { LibsqlError } from '@libsql/core/api'
import type { UsageRow } from '../schema/record-schema.ts'
import type { BoundStatement } from '../write/rows.ts'
import { newBatchId, type Patience } from './commit-once.ts'
import { isStale } from './refresh.ts'
import { isUnknownOutcome, isUnreachable } from './server-errors.ts'
import { openWaitingFile, type UsageCommit, type WaitingCommit, waitingBytesMax } from './waiting-file.ts'

/** Commits statements as the writer does. */
export type SendUsage = (statements: BoundStatement[], rows: number, patience: Patience) => Promise<void>

export type WaitingUsage = {
  /** Resolves when the rows are committed, or on the disk. @throws the error of the database that refuses them, or of the disk */
  commit: (rows: UsageCommit) => Promise<void>
  /** Commits what waits, as long as the database takes it. */
  apply: () => Promise<void>
  /** How many rows wait. */
  rows: () => number
  /** Whether there is room for the rows of further requests. */
  hasRoom: () => boolean
  close: () => Promise<void>
}

export type WaitingUsageOptions = {
  path: string
  send: SendUsage
  statementsFor: (rows: UsageCommit) => BoundStatement[]
  /** The database, and the newest row of usage that is known of it. */
  known: () => { installation: string; usageId: number }
  /** Called when the first row waits, and when none does any longer. */
  onWaiting: (isWaiting: boolean, rows: number) => void
  /** Called for rows that are never committed. They are in the file that is named. */
  onRefused: (why: string, file: string) => void
  /** How long a commit may take before its rows wait. */
  patienceMilliseconds?: number
  bytesMax?: number
}

const patienceMillisecondsDefault = 1_500

type WaitingEntry = WaitingCommit & { isSending: boolean }

/** @throws the error of the file system */
export async function openWaitingUsage(options: WaitingUsageOptions): Promise<WaitingUsage> {
  const { send, statementsFor, known, bytesMax = waitingBytesMax } = options
  const { patienceMilliseconds = patienceMillisecondsDefault, onWaiting } = options
  const file = await openWaitingFile(options.path)
  if (file.damaged > 0) options.onRefused(`${file.damaged} lines are damaged`, `${file.path}.damaged`)
  let waiting: WaitingEntry[] = file.found.map((commit) => ({ ...commit, isSending: false }))
  let applying: Promise<void> | undefined
  const rowsIn = (commits: readonly UsageCommit[]) => commits.reduce((sum, { usage }) => sum + usage.length, 0)
  const isWaiting = () => waiting.length > 0
  if (isWaiting()) onWaiting(true, rowsIn(waiting))

  async function keep(commit: WaitingEntry): Promise<void> {
    waiting.push(commit)
    if (waiting.length === 1) onWaiting(true, rowsIn(waiting))
    try {
      await file.append(toLine(commit))
    } catch (error) {
      await drop(commit).catch(() => {})
      throw error
    }
  }

  async function commit(rows: UsageCommit): Promise<void> {
    const { installation, usageId: after } = known()
    const own: WaitingEntry = { id: newBatchId(), installation, after, ...rows, isSending: false }
    if (isWaiting()) return keep(own)
    const sending = send(statementsFor(own), rows.usage.length, { isPatient: false, id: own.id })
    try {
      if (await isEndedWithin(patienceMilliseconds, sending)) return
    } catch (error) {
      if (!isPassing(error)) throw error
      return keep(own)
    }
    own.isSending = true
    await keep(own)
    // It is repeated until its outcome is known, which can take half an hour.
    sending.then(
      () => drop(own).catch(() => {}),
      () => {
        own.isSending = false
      },
    )
  }

  /** What stays in the file when nothing waits takes room, and is read again by the next start. */
  async function drop(own: WaitingEntry): Promise<void> {
    waiting = waiting.filter((each) => each !== own)
    if (isWaiting()) return
    onWaiting(false, 0)
    await file.clearUnless(isWaiting)
  }

  const next = () => waiting.find(({ isSending }) => !isSending)
  return {
    commit,
    apply: () => {
      applying ??= applyAll({ next, keep, drop }, options).finally(() => {
        applying = undefined
      })
      return applying
    },
    rows: () => rowsIn(waiting),
    hasRoom: () => file.bytes() < bytesMax,
    close: async () => {
      await applying?.catch(() => {})
      await file.clearUnless(isWaiting)
      await file.close()
    },
  }
}

/** What can go away without a change of the rows: the server, its disk, or its right to write. */
function isPassing(error: unknown): boolean {
  if (isUnreachable(error) || isUnknownOutcome(error)) return true
  return error instanceof LibsqlError && /^SQLITE_(FULL|IOERR|READONLY)/.test(error.code)
}

type WaitingQueue = {
  /** What is not on its way yet. */
  next: () => WaitingEntry | undefined
  keep: (commit: WaitingEntry) => Promise<void>
  drop: (own: WaitingEntry) => Promise<void>
}

/** Rows that are refused together wait one by one from then on, so that only those that are wrong are set aside. */
async function applyAll({ next, keep, drop }: WaitingQueue, options: WaitingUsageOptions): Promise<void> {
  for (let own = next(); own !== undefined; own = next()) {
    const outcome = await applyOne(own, options)
    if (outcome === 'waits') return
    if (outcome !== 'applied') {
      const single = outcome.isOfRows ? oneByOne(own) : []
      // Should this process end before the last of them, its successor finds those that are committed by their requests.
      if (single.length > 1) for (const each of single) await keep(each)
      else await setAside(own, outcome.why, options)
    }
    await drop(own)
  }
}

/** `isOfRows`: for what the rows are, not for where they belong. */
type Refusal = { why: string; isOfRows: boolean }

async function applyOne(
  own: WaitingEntry,
  { send, statementsFor, known }: WaitingUsageOptions,
): Promise<'applied' | 'waits' | Refusal> {
  if (own.installation !== known().installation) return { why: 'it belongs to another database', isOfRows: false }
  try {
    const statements = [refuseRepeated(own), ...statementsFor(own)]
    await send(statements, own.usage.length, { isPatient: false, id: own.id })
    return 'applied'
  } catch (error) {
    if (isStale(error)) return 'applied'
    return isPassing(error) ? 'waits' : { why: String(error), isOfRows: true }
  }
}

function oneByOne({ usage, storedResponses, ...own }: WaitingEntry): WaitingEntry[] {
  return [
    ...usage.map((row) => ({ usage: [row], storedResponses: [] })),
    ...storedResponses.map((row) => ({ usage: [], storedResponses: [row] })),
  ].map((rows) => ({ ...own, ...rows, id: newBatchId(), isSending: false }))
}

async function setAside(own: WaitingEntry, why: string, { path, onRefused }: WaitingUsageOptions): Promise<void> {
  await appendFile(`${path}.refused`, `${JSON.stringify(toLine(own))}\n`, { mode: 0o600 })
  onRefused(why, `${path}.refused`)
}

function toLine({ isSending: _, ...commit }: WaitingEntry): WaitingCommit {
  return commit
}

/** @throws what the work throws in this time */
async function isEndedWithin(milliseconds: number, work: Promise<void>): Promise<boolean> {
  const ended = work.then(() => true)
  const late = new AbortController()
  try {
    return await Promise.race([ended, pause(milliseconds, false, { signal: late.signal })])
  } finally {
    // How it failed then matters to nobody.
    ended.catch(() => {})
    late.abort()
  }
}

/**
 * Fails a commit whose requests are in the database. Ids of commits are kept for an hour, and rows can wait for longer: then an attempt whose
 * response was lost is no longer known by its id.
 */
function refuseRepeated({ after, usage }: WaitingCommit): BoundStatement {
  const ids = JSON.stringify(usage.map(({ requestId }: UsageRow) => requestId))
  const isThere = 'exists (select 1 from usage where id > ? and request_id in (select value from json_each(?)))'
  return { sql: `select case when ${isThere} then json('repeated') else 1 end`, args: [after, ids] }
}
