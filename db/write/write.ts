// The only way to write to the database. Admin changes and ledger rows are queued, and queued writes share commits.
import type { InValue } from '@libsql/core/api'
import { isBusy } from '../file/file-errors.ts'
import type { Database } from '../file/open.ts'
import { mapInSlices } from '../read/pace.ts'
import type { Patience } from '../remote/commit-once.ts'
import type { Revision } from '../remote/shared-database.ts'
import type { SendUsage } from '../remote/waiting-usage.ts'
import type { AuditRow, StoredResponse, UsageRow, UsedSubjectToken } from '../schema/record-schema.ts'
import { type CommitChange, createChangeQueue, type NodeMemory } from './change-queue.ts'
import { createLedgerQueue, type LedgerOptions } from './ledger-queue.ts'
import type { BoundStatement, Statement } from './rows.ts'

export type Writer = {
  /** Commits all statements or none, in order. Resolves after the commit. */
  write: (statements: Statement[]) => Promise<void>
  /** Commits an admin change together with other queued changes (change-queue.ts). */
  change: CommitChange
  /** Queues one row and resolves after its commit. Rows queued in the same turn of the event loop share a commit. */
  appendAudit: (row: AuditRow) => Promise<void>
  /** Queues one usage row. Its commit adds to the totals what they lack by then (usage-sums.ts), or one of the next does. */
  appendUsage: (row: UsageRow) => Promise<void>
  /** Queues one used subject token. It replaces an existing row. */
  appendUsedToken: (row: UsedSubjectToken) => Promise<void>
  /** Runs `act`, one at a time, while no ledger rows are being committed. Rows that are queued meanwhile wait. */
  holdLedger: (act: () => Promise<void>) => Promise<void>
  /** Queues one response that an upstream keeps, unless its id is known. */
  appendStoredResponse: (row: StoredResponse) => Promise<void>
  /** Commits statements of usage, whose rows can wait on the disk meanwhile (db/remote/waiting-usage.ts). */
  sendUsage: SendUsage
  /**
   * Stops all writes, as after SQLITE_BUSY. Call it when a committed change cannot be loaded; the process should then
   * end.
   */
  giveUp: (error: unknown) => void
  /** Reports whether writes have stopped. */
  isBroken: () => boolean
  /** Commits the queued writes and stops the timed checkpoints. */
  close: () => Promise<void>
}

/** The result of a commit: the number of rows (or statements of a change) and the duration. */
export type CommitOutcome = { isCommitted: boolean; rows: number; milliseconds: number }

/**
 * Creates the writer. `onCommit` is called after every commit. `onBroken` is called by `giveUp` and when the connection
 * can no longer be trusted (SQLITE_BUSY after opening, db/README.md). From then on every write fails, and the process
 * should end.
 */
export function createWriter(
  database: Database,
  onBroken: (error: unknown) => void,
  onCommit: (outcome: CommitOutcome) => void = () => {},
  following?: NodeMemory,
  commitUsage?: LedgerOptions['commitUsage'],
): Writer {
  const isBroken = () => state.broken !== undefined
  const checkpoints = createTimedCheckpoints(database, isBroken)
  const state: CommitState = { broken: undefined, onBroken, onCommit, noteCommit: checkpoints.noteCommit }
  const write = async (statements: Statement[]) =>
    commit(state, statements.length, () => database.commit(statements.map(toStatement)))
  /** A change can have thousands of rows. What can be done before its transaction is done there, in slices. */
  const commitChange = async (statements: Iterable<Statement>, basis: Revision) => {
    const bound = await mapInSlices(statements, toStatement)
    return commit(state, bound.length, () => sendChange(database, bound, basis))
  }
  const changes = createChangeQueue(commitChange, following)
  const commitRows = (statements: BoundStatement[], rows: number, patience: Patience) =>
    commit(state, rows, () => database.commit(statements, patience))
  const ledgers = createLedgerQueue(commitRows, { isShared: database.shared !== undefined, commitUsage })

  return {
    write,
    change: changes.change,
    appendAudit: ledgers.appendAudit,
    appendUsage: ledgers.appendUsage,
    appendUsedToken: ledgers.appendUsedToken,
    holdLedger: ledgers.hold,
    appendStoredResponse: ledgers.appendStoredResponse,
    sendUsage: async (...usage) => commitRows(...usage),
    giveUp: (error) => giveUp(state, error),
    isBroken,
    close: async () => {
      await ledgers.close()
      await changes.close()
      checkpoints.stop()
    },
  }
}

/** `broken`: why writes have stopped. */
type CommitState = {
  broken: unknown
  onBroken: (error: unknown) => void
  onCommit: (outcome: CommitOutcome) => void
  noteCommit: () => void
}

function giveUp(state: CommitState, error: unknown): void {
  if (state.broken !== undefined) return
  state.broken = error
  state.onBroken(error)
}

/** At once, without a promise, where `send` commits so. */
function commit<Committed>(
  state: CommitState,
  rows: number,
  send: () => Promise<Committed> | undefined,
): Promise<Committed> | undefined {
  if (state.broken !== undefined) throw state.broken
  const startedAt = performance.now()
  let committing: Promise<Committed> | undefined
  try {
    committing = send()
  } catch (error) {
    return fail(state, rows, startedAt, error)
  }
  if (committing !== undefined) return settle(state, rows, startedAt, committing)
  succeed(state, rows, startedAt)
  return undefined
}

async function settle<Committed>(
  state: CommitState,
  rows: number,
  startedAt: number,
  committing: Promise<Committed>,
): Promise<Committed> {
  let committed: Committed
  try {
    committed = await committing
  } catch (error) {
    return fail(state, rows, startedAt, error)
  }
  succeed(state, rows, startedAt)
  return committed
}

function succeed({ onCommit, noteCommit }: CommitState, rows: number, startedAt: number): void {
  onCommit({ isCommitted: true, rows, milliseconds: performance.now() - startedAt })
  noteCommit()
}

function fail(state: CommitState, rows: number, startedAt: number, error: unknown): never {
  state.onCommit({ isCommitted: false, rows, milliseconds: performance.now() - startedAt })
  if (isBusy(error)) giveUp(state, error)
  throw error
}

/** Returns the revision after the change on a server database, if it is known. */
async function sendChange(
  database: Database,
  statements: BoundStatement[],
  basis: Revision,
): Promise<Revision | undefined> {
  if (database.shared !== undefined) return database.shared.commitChange(statements, basis)
  await database.commitInSlices(statements)
  return undefined
}

const watchMilliseconds = 250
const quietMilliseconds = 1_000
/** Commits after which a checkpoint need not wait for a quiet second: some of hundreds of requests each fill a few MB of the log. */
const commitsPerCheckpoint = 250

/** Runs a checkpoint when a second has passed without a commit, and while many commits go on. */
function createTimedCheckpoints(database: Database, isBroken: () => boolean) {
  let lastCommitAt = 0
  let commits = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  function watch(): void {
    const isQuiet = performance.now() - lastCommitAt >= quietMilliseconds
    timer = isQuiet ? undefined : setTimeout(watch, watchMilliseconds).unref()
    if (isBroken() || (!isQuiet && commits < commitsPerCheckpoint)) return
    commits = 0
    // An error here is harmless: the log stays longer until the next checkpoint.
    database.checkpoint(!isQuiet).catch(() => {})
  }

  return {
    noteCommit: () => {
      lastCommitAt = performance.now()
      commits += 1
      timer ??= setTimeout(watch, watchMilliseconds).unref()
    },
    stop: () => clearTimeout(timer),
  }
}

function toStatement(statement: Statement): BoundStatement {
  const { sql, params } = statement.toSQL()
  return { sql, args: params as InValue[] }
}
