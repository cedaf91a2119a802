// The write queue for exchanges, usage and used subject tokens. Rows queued in the same turn of the event loop share a
// commit, and each fails alone. While several commits are on their way to a server, new rows wait and share the next.
import { setImmediate } from 'node:timers'
import { isBusy } from '../file/file-errors.ts'
import type { Patience } from '../remote/commit-once.ts'
import { isUnknownOutcome, isUnreachable } from '../remote/server-errors.ts'
import type { UsageCommit } from '../remote/waiting-file.ts'
import type { AuditRow, StoredResponse, UsageRow, UsedSubjectToken } from '../schema/record-schema.ts'
import { createLedgerTables, type LedgerRow, type LedgerTable } from './ledger-tables.ts'
import type { BoundStatement } from './rows.ts'

type QueuedRow = { row: LedgerRow; done: () => void; failed: (error: unknown) => void }
type Ledger = LedgerTable & { waiting: QueuedRow[] }

/** How many commits of a node are on their way to a server. The more rows there are, the more share a commit. */
const commitsAtOnceMax = 4
/** A commit that takes longer than an HTTP request may take makes no others wait: its outcome can be unknown for minutes. */
const holdingMillisecondsMax = 5_000

export type LedgerQueue = {
  appendAudit: (row: AuditRow) => Promise<void>
  appendUsage: (row: UsageRow) => Promise<void>
  appendUsedToken: (row: UsedSubjectToken) => Promise<void>
  /** Runs `act`, one at a time, while no commit of queued rows is in progress. Rows that are queued meanwhile wait. */
  hold: (act: () => Promise<void>) => Promise<void>
  appendStoredResponse: (row: StoredResponse) => Promise<void>
  /** Commits the queued rows and waits for the commit. */
  close: () => Promise<void>
}
type Group = { ledger: Ledger; rows: QueuedRow[] }
/** What commits at once, or throws at once, returns no promise. */
type Commit = (statements: BoundStatement[], rows: number, patience: Patience) => Promise<void> | undefined

export type LedgerOptions = {
  /** Other nodes write too, so a used token that one of them has recorded fails. */
  isShared?: boolean
  holdingMilliseconds?: number
  /** Commits usage in place of `commit`, apart from other rows: it may wait on the disk. */
  commitUsage?: ((rows: UsageCommit) => Promise<void>) | undefined
}

export function createLedgerQueue(
  commit: Commit,
  { isShared = false, holdingMilliseconds = holdingMillisecondsMax, commitUsage }: LedgerOptions = {},
): LedgerQueue {
  const ledgers = createLedgers(isShared)
  const all = Object.values(ledgers)
  const commitFlushed = commitBy(commit, ledgers, commitUsage)
  let isScheduled = false
  let isHeld = false
  let holding = 0
  let flushing: Promise<void> = Promise.resolve()

  function schedule(): void {
    if (isScheduled || isHeld || holding >= commitsAtOnceMax) return
    isScheduled = true
    setImmediate(flush)
  }

  async function hold(act: () => Promise<void>): Promise<void> {
    isHeld = true
    try {
      await flushing
      await act()
    } finally {
      isHeld = false
      if (all.some(({ waiting }) => waiting.length > 0)) schedule()
    }
  }

  /** It never fails: those who wait for a row get its error. A commit of a file has ended when it returns. */
  function flush(): void {
    isScheduled = false
    if (isHeld) return
    const groups = takeWaiting(all)
    if (groups.length === 0) return
    const committing = commitFlushed(groups)
    if (committing === undefined) return
    if (isShared) void holdOthers(committing)
    const before = flushing
    flushing = committing.then(() => before)
  }

  async function holdOthers(committed: Promise<void>): Promise<void> {
    holding += 1
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, holdingMilliseconds)
    await Promise.race([committed, late])
    clearTimeout(timer)
    holding -= 1
    if (all.some(({ waiting }) => waiting.length > 0)) schedule()
  }

  function append(ledger: Ledger, row: LedgerRow): Promise<void> {
    return new Promise((done, failed) => {
      ledger.waiting.push({ row, done, failed })
      schedule()
    })
  }

  return {
    appendAudit: (row) => append(ledgers.audit, row),
    appendUsage: (row) => append(ledgers.usage, row),
    appendUsedToken: (row) => append(ledgers.usedTokens, row),
    hold,
    appendStoredResponse: (row) => append(ledgers.storedResponses, row),
    close: async () => {
      isHeld = false
      flush()
      await flushing
    },
  }
}

function createLedgers(isShared: boolean) {
  const { audit, usage, usedTokens, storedResponses } = createLedgerTables(isShared)
  const queued = (table: LedgerTable): Ledger => ({ ...table, waiting: [] })
  return {
    audit: queued(audit),
    usage: queued(usage),
    usedTokens: queued(usedTokens),
    storedResponses: queued(storedResponses),
  }
}

function takeWaiting(ledgers: readonly Ledger[]): Group[] {
  const groups: Group[] = []
  for (const ledger of ledgers) {
    if (ledger.waiting.length === 0) continue
    groups.push({ ledger, rows: ledger.waiting })
    ledger.waiting = []
  }
  return groups
}

type Ledgers = ReturnType<typeof createLedgers>

/** How the rows of a flush are committed: together, or those of usage apart. */
function commitBy(commit: Commit, ledgers: Ledgers, commitUsage: LedgerOptions['commitUsage']): CommitGroups {
  if (commitUsage === undefined) return (groups) => commitGroups(commit, groups)
  const isOfUsage = ({ ledger }: Group) => ledger === ledgers.usage || ledger === ledgers.storedResponses
  return async (groups) => {
    const ofUsage = groups.filter(isOfUsage)
    const others = groups.filter((group) => !isOfUsage(group))
    await Promise.all([
      others.length > 0 && commitGroups(commit, others),
      ofUsage.length > 0 && commitEach((some) => commitUsage(usageOf(some, ledgers)), ofUsage),
    ])
  }
}

function usageOf(groups: Group[], { usage: rows, storedResponses: stored }: Ledgers): UsageCommit {
  const rowsOf = (ledger: Ledger) =>
    groups.flatMap((group) => (group.ledger === ledger ? group.rows.map(({ row }) => row) : []))
  return { usage: rowsOf(rows) as UsageRow[], storedResponses: rowsOf(stored) as StoredResponse[] }
}

type CommitGroups = (groups: Group[]) => Promise<void> | undefined

function commitGroups(commit: Commit, groups: Group[]): Promise<void> | undefined {
  return commitEach((some) => {
    const statements: BoundStatement[] = []
    let count = 0
    let isPatient = false
    for (const { ledger, rows } of some) {
      for (const statement of ledger.statementsFor(rows.map(rowOf))) statements.push(statement)
      count += rows.length
      isPatient ||= ledger.isPatient
    }
    return commit(statements, count, { isPatient })
  }, groups)
}

const rowOf = ({ row }: QueuedRow) => row

/**
 * Commits the rows. If the database or its driver rejects a row, only that row fails: the other rows belong to other
 * callers.
 */
function commitEach(commit: CommitGroups, groups: Group[]): Promise<void> | undefined {
  try {
    const committing = commit(groups)
    if (committing !== undefined)
      return committing.then(
        () => finish(groups),
        (error) => failEach(commit, groups, error),
      )
  } catch (error) {
    return failEach(commit, groups, error)
  }
  finish(groups)
  return undefined
}

function finish(groups: Group[]): void {
  for (const { rows } of groups) for (const row of rows) row.done()
}

function failEach(commit: CommitGroups, groups: Group[], error: unknown): Promise<void> | undefined {
  // Rows of a commit that can have been made are not sent again: they would be written twice.
  const isFinal = isBusy(error) || isUnreachable(error) || isUnknownOutcome(error)
  const rows = groups.flatMap((group) => group.rows)
  if (rows.length > 1 && !isFinal) return commitOneByOne(commit, groups)
  for (const row of rows) row.failed(error)
  return undefined
}

async function commitOneByOne(commit: CommitGroups, groups: Group[]): Promise<void> {
  for (const { ledger, rows } of groups) for (const row of rows) await commitEach(commit, [{ ledger, rows: [row] }])
}
