// The one way to write. Admin changes and ledger rows (audit, usage) queue, and those that wait together are committed together.
import { setImmediate } from 'node:timers'
import type { InStatement, InValue } from '@libsql/client'
import { getTableColumns, getTableName } from 'drizzle-orm'
import { type CommitChange, createChangeQueue } from './change-queue.ts'
import { type Database, isBusy } from './open.ts'
import { type Insertion, insertion, insertOf, type Statement } from './rows.ts'
import {
  type AuditRow,
  exchangeAudit,
  type UsageDay,
  type UsageRow,
  type UsedSubjectToken,
  usage,
  usageDays,
  usedSubjectTokens,
} from './schema.ts'

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

type Row = AuditRow | UsageRow | UsedSubjectToken
type Waiting = { row: Row; done: () => void; failed: (error: unknown) => void }
type Ledger = { into: Insertion; waiting: Waiting[] }

/** Rows of one insert statement: 250 rows of 20 columns stay far below SQLite's 32,766 parameters. */
const rowsPerStatement = 250
const quietMilliseconds = 1_000

/**
 * `onBroken` is called when the connection can no longer be trusted (SQLITE_BUSY after the open, db/README.md), or by `giveUp`; every
 * write fails from then on, and the process should end.
 */
export function createWriter(database: Database, onBroken: (error: unknown) => void): Writer {
  const auditQueue = ledgerOf(exchangeAudit)
  const usageQueue = ledgerOf(usage)
  const usedTokenQueue = ledgerOf(usedSubjectTokens)
  let broken: unknown
  let isScheduled = false
  let flushing: Promise<void> = Promise.resolve()
  let lastCommitAt = 0
  let quietTimer: ReturnType<typeof setTimeout> | undefined

  function giveUp(error: unknown): void {
    if (broken !== undefined) return
    broken = error
    onBroken(error)
  }

  async function commit(statements: InStatement[]): Promise<void> {
    if (broken !== undefined) throw broken
    try {
      await database.client.batch(statements, 'write')
    } catch (error) {
      if (isBusy(error)) giveUp(error)
      throw error
    }
    lastCommitAt = performance.now()
    quietTimer ??= setTimeout(checkpointWhenQuiet, quietMilliseconds).unref()
  }

  function checkpointWhenQuiet(): void {
    const isQuiet = performance.now() - lastCommitAt >= quietMilliseconds
    quietTimer = isQuiet ? undefined : setTimeout(checkpointWhenQuiet, quietMilliseconds).unref()
    // An error here harms nothing: the log is only longer until the next checkpoint.
    if (isQuiet && broken === undefined) database.checkpoint().catch(() => {})
  }

  async function flush(): Promise<void> {
    isScheduled = false
    await commitGroups(
      [auditQueue, usageQueue, usedTokenQueue].map((ledger) => ({ ledger, rows: ledger.waiting.splice(0) })),
    )
  }

  /** A row that the database or its driver refuses fails alone: the others of its commit belong to other callers. */
  async function commitGroups(groups: { ledger: Ledger; rows: Waiting[] }[]): Promise<void> {
    const rows = groups.flatMap((group) => group.rows)
    if (rows.length === 0) return
    try {
      const usageRows = groups.flatMap(({ ledger, rows }) => (ledger === usageQueue ? rows.map(({ row }) => row) : []))
      await commit([
        ...groups.flatMap(({ ledger, rows }) => insertsOf(ledger, rows)),
        ...totalsOf(usageRows as UsageRow[]),
      ])
      for (const row of rows) row.done()
    } catch (error) {
      if (rows.length === 1 || isBusy(error)) for (const row of rows) row.failed(error)
      else for (const { ledger, rows } of groups) for (const row of rows) await commitGroups([{ ledger, rows: [row] }])
    }
  }

  function append(ledger: Ledger, row: Row): Promise<void> {
    return new Promise((done, failed) => {
      ledger.waiting.push({ row, done, failed })
      if (isScheduled) return
      isScheduled = true
      setImmediate(() => {
        flushing = flush()
      })
    })
  }

  const write = (statements: Statement[]) => commit(statements.map(toStatement))
  const changes = createChangeQueue(write)

  return {
    write,
    change: changes.change,
    appendAudit: (row) => append(auditQueue, row),
    appendUsage: (row) => append(usageQueue, row),
    appendUsedToken: (row) => append(usedTokenQueue, row),
    giveUp,
    isBroken: () => broken !== undefined,
    close: async () => {
      await flush()
      await flushing
      await changes.close()
      clearTimeout(quietTimer)
    },
  }
}

function ledgerOf(table: typeof exchangeAudit | typeof usage | typeof usedSubjectTokens): Ledger {
  return { into: insertion(table, table === usedSubjectTokens ? 'insert or replace' : 'insert'), waiting: [] }
}

function insertsOf(ledger: Ledger, waiting: Waiting[]): InStatement[] {
  const statements: InStatement[] = []
  for (let start = 0; start < waiting.length; start += rowsPerStatement) {
    statements.push(
      insertOf(
        ledger.into,
        waiting.slice(start, start + rowsPerStatement).map(({ row }) => row),
      ),
    )
  }
  return statements
}

const dayMilliseconds = 24 * 60 * 60 * 1_000
const dayColumns = Object.entries(getTableColumns(usageDays))
const summed = dayColumns.map(([, { name }]) => name).filter((name) => name !== 'key_id' && name !== 'day')

/** What the rows of a commit add to the totals of their keys by day, in one statement. */
function totalsOf(rows: UsageRow[]): InStatement[] {
  if (rows.length === 0) return []
  const totals = new Map<string, UsageDay>()
  for (const row of rows) {
    const day = Math.floor(row.at / dayMilliseconds)
    const known = totals.get(`${row.keyId} ${day}`)
    totals.set(`${row.keyId} ${day}`, {
      keyId: row.keyId,
      day,
      requests: (known?.requests ?? 0) + 1,
      promptTokens: sumOf(known?.promptTokens, row.promptTokens),
      completionTokens: sumOf(known?.completionTokens, row.completionTokens),
      totalTokens: sumOf(known?.totalTokens, row.totalTokens),
      costNanodollars: sumOf(known?.costNanodollars, row.costNanodollars),
    })
  }
  const tuple = `(${dayColumns.map(() => '?').join(',')})`
  const sql = `insert into ${getTableName(usageDays)} (${dayColumns.map(([, { name }]) => name).join(',')})
    values ${new Array(totals.size).fill(tuple).join(',')}
    on conflict (key_id, day) do update set ${summed.map((name) => `${name} = min(${name} + excluded.${name}, ${Number.MAX_SAFE_INTEGER})`).join(', ')}`
  const args = [...totals.values()].flatMap((total) => dayColumns.map(([field]) => total[field as keyof UsageDay]))
  return [{ sql, args }]
}

/** libSQL cannot read what it has written beyond the safe integers. */
function sumOf(known = 0, more: number | null): number {
  return Math.min(known + (more ?? 0), Number.MAX_SAFE_INTEGER)
}

function toStatement(statement: Statement): InStatement {
  const { sql, params } = statement.toSQL()
  return { sql, args: params as InValue[] }
}
