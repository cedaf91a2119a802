// The one way to write. Admin changes and ledger rows queue, and those that wait together are committed together.
import type { InStatement, InValue } from '@libsql/client'
import { type CommitChange, createChangeQueue } from './change-queue.ts'
import { createLedgerQueue } from './ledger-queue.ts'
import { type Database, isBusy } from './open.ts'
import type { AuditRow, UsageRow } from './record-schema.ts'
import type { Statement } from './rows.ts'
import type { UsedSubjectToken } from './schema.ts'

export type Writer = {
  /** Commits all statements or none, in order; resolves after the commit. */
  write: (statements: Statement[]) => Promise<void>
  /** Commits an admin change, together with others that wait (change-queue.ts). */
  change: CommitChange
  /** Queues one row and resolves once the commit that holds it is done. Rows of one turn of the event loop share a commit. */
  appendAudit: (row: AuditRow) => Promise<void>
  /** The same, and the day's totals of its key grow in the same commit. */
  appendUsage: (row: UsageRow) => Promise<void>
  /** One that is there already is replaced. */
  appendUsedToken: (row: UsedSubjectToken) => Promise<void>
  /** For what was committed and cannot be loaded: as after SQLITE_BUSY, nothing is written any more and the process should end. */
  giveUp: (error: unknown) => void
  /** Whether nothing is written any more. */
  isBroken: () => boolean
  /** Waits for what is queued and stops the quiet-moment checkpoints. */
  close: () => Promise<void>
}

const quietMilliseconds = 1_000

/** A commit that was tried: its rows (or statements, of a change) and how long it took. */
export type CommitOutcome = { isCommitted: boolean; rows: number; milliseconds: number }

/**
 * `onCommit` is called after every commit. `onBroken` is called when the connection can no longer be trusted (SQLITE_BUSY
 * after the open, db/README.md), or by `giveUp`; every write fails from then on, and the process should end.
 */
export function createWriter(
  database: Database,
  onBroken: (error: unknown) => void,
  onCommit: (outcome: CommitOutcome) => void = () => {},
): Writer {
  let broken: unknown
  let lastCommitAt = 0
  let quietTimer: ReturnType<typeof setTimeout> | undefined

  function giveUp(error: unknown): void {
    if (broken !== undefined) return
    broken = error
    onBroken(error)
  }

  async function commit(statements: InStatement[], rows = statements.length): Promise<void> {
    if (broken !== undefined) throw broken
    const startedAt = performance.now()
    const report = (isCommitted: boolean) =>
      onCommit({ isCommitted, rows, milliseconds: performance.now() - startedAt })
    try {
      await database.client.batch(statements, 'write')
    } catch (error) {
      report(false)
      if (isBusy(error)) giveUp(error)
      throw error
    }
    report(true)
    lastCommitAt = performance.now()
    quietTimer ??= setTimeout(checkpointWhenQuiet, quietMilliseconds).unref()
  }

  function checkpointWhenQuiet(): void {
    const isQuiet = performance.now() - lastCommitAt >= quietMilliseconds
    quietTimer = isQuiet ? undefined : setTimeout(checkpointWhenQuiet, quietMilliseconds).unref()
    // An error here harms nothing: the log is only longer until the next checkpoint.
    if (isQuiet && broken === undefined) database.checkpoint().catch(() => {})
  }

  const write = (statements: Statement[]) => commit(statements.map(toStatement))
  const changes = createChangeQueue(write)
  const ledgers = createLedgerQueue(commit)

  return {
    write,
    change: changes.change,
    appendAudit: ledgers.appendAudit,
    appendUsage: ledgers.appendUsage,
    appendUsedToken: ledgers.appendUsedToken,
    giveUp,
    isBroken: () => broken !== undefined,
    close: async () => {
      await ledgers.close()
      await changes.close()
      clearTimeout(quietTimer)
    },
  }
}

function toStatement(statement: Statement): InStatement {
  const { sql, params } = statement.toSQL()
  return { sql, args: params as InValue[] }
}
