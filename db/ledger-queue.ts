// The write queue for exchanges, usage and used subject tokens. Rows queued in the same turn of the event loop share a
// commit, and each fails alone.
import { setImmediate } from 'node:timers'
import type { InStatement } from '@libsql/client'
import { getTableColumns, getTableName } from 'drizzle-orm'
import { isBusy } from './open.ts'
import { type AuditRow, exchangeAudit, type UsageDay, type UsageRow, usage, usageDays } from './record-schema.ts'
import { type Insertion, insertion, insertOf } from './rows.ts'
import { type UsedSubjectToken, usedSubjectTokens } from './schema.ts'

type Row = AuditRow | UsageRow | UsedSubjectToken
type Waiting = { row: Row; done: () => void; failed: (error: unknown) => void }
type Ledger = { into: Insertion; waiting: Waiting[] }

/** Rows per insert statement. 250 rows of 20 columns stay far below SQLite's limit of 32,766 parameters. */
const rowsPerStatement = 250
export type LedgerQueue = {
  appendAudit: (row: AuditRow) => Promise<void>
  appendUsage: (row: UsageRow) => Promise<void>
  appendUsedToken: (row: UsedSubjectToken) => Promise<void>
  /** Commits the queued rows and waits for the commit. */
  close: () => Promise<void>
}
type Group = { ledger: Ledger; rows: Waiting[] }
type Commit = (statements: InStatement[], rows: number) => Promise<void>

export function createLedgerQueue(commit: Commit): LedgerQueue {
  const ledgers = { audit: ledgerOf(exchangeAudit), usage: ledgerOf(usage), usedTokens: ledgerOf(usedSubjectTokens) }
  let isScheduled = false
  let flushing: Promise<void> = Promise.resolve()

  async function flush(): Promise<void> {
    isScheduled = false
    const groups = Object.values(ledgers).map((ledger) => ({ ledger, rows: ledger.waiting.splice(0) }))
    await commitGroups(commit, groups)
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

  return {
    appendAudit: (row) => append(ledgers.audit, row),
    appendUsage: (row) => append(ledgers.usage, row),
    appendUsedToken: (row) => append(ledgers.usedTokens, row),
    close: async () => {
      await flush()
      await flushing
    },
  }
}

/**
 * Commits the rows. If the database or its driver rejects a row, only that row fails: the other rows belong to other
 * callers.
 */
async function commitGroups(commit: Commit, groups: Group[]): Promise<void> {
  const rows = groups.flatMap((group) => group.rows)
  if (rows.length === 0) return
  try {
    const usageRows = groups.flatMap(({ ledger, rows }) =>
      ledger.into.table === usageTable ? rows.map(({ row }) => row) : [],
    )
    const inserts = groups.flatMap(({ ledger, rows }) => insertsOf(ledger, rows))
    await commit([...inserts, ...totalsOf(usageRows as UsageRow[])], rows.length)
    for (const row of rows) row.done()
  } catch (error) {
    if (rows.length === 1 || isBusy(error)) for (const row of rows) row.failed(error)
    else
      for (const { ledger, rows } of groups)
        for (const row of rows) await commitGroups(commit, [{ ledger, rows: [row] }])
  }
}

const usageTable = getTableName(usage)

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

function totalsStatement(keys: number): string {
  const tuple = `(${dayColumns.map(() => '?').join(',')})`
  return `insert into ${getTableName(usageDays)} (${dayColumns.map(([, { name }]) => name).join(',')})
    values ${new Array(keys).fill(tuple).join(',')}
    on conflict (key_id, day) do update set ${summed.map((name) => `${name} = min(${name} + excluded.${name}, ${Number.MAX_SAFE_INTEGER})`).join(', ')}`
}

const singleTotal = totalsStatement(1)

/** Returns one statement that adds the rows of a commit to the daily totals of their keys. */
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
  const sql = totals.size === 1 ? singleTotal : totalsStatement(totals.size)
  const args = [...totals.values()].flatMap((total) => dayColumns.map(([field]) => total[field as keyof UsageDay]))
  return [{ sql, args }]
}

/** Adds up to the largest safe integer, because libSQL cannot read larger ones. */
function sumOf(known = 0, more: number | null): number {
  return Math.min(known + (more ?? 0), Number.MAX_SAFE_INTEGER)
}
