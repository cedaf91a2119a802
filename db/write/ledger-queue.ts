// The write queue for exchanges, usage and used subject tokens. Rows queued in the same turn of the event loop share a
// commit, and each fails alone. While several commits are on their way to a server, new rows wait and share the next.
import { setImmediate } from 'node:timers'
import { isBusy } from '../file/file-errors.ts'
import type { Patience } from '../remote/commit-once.ts'
import { isUnknownOutcome, isUnreachable } from '../remote/server-errors.ts'
import type { UsageCommit } from '../remote/waiting-file.ts'
import { databaseTime } from '../schema/node-schema.ts'
import {
  type AuditRow,
  exchangeAudit,
  type StoredResponse,
  storedResponses,
  type UsageRow,
  type UsedSubjectToken,
  usage,
  usedSubjectTokens,
} from '../schema/record-schema.ts'
import { dropOldResponses } from '../tables/stored-responses.ts'
import { type BoundStatement, type Insertion, insertion, insertOf } from './rows.ts'
import { createUsageSummer } from './usage-sums.ts'

type Row = AuditRow | UsageRow | UsedSubjectToken | StoredResponse
type QueuedRow = { row: Row; done: () => void; failed: (error: unknown) => void }
type Ledger = { statementsFor: (rows: Row[]) => BoundStatement[]; waiting: QueuedRow[]; isPatient: boolean }

/** Rows per insert statement. 250 rows of 20 columns stay far below SQLite's limit of 32,766 parameters. */
const rowsPerStatement = 250
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
type Commit = (statements: BoundStatement[], rows: number, patience: Patience) => Promise<void>

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
    setImmediate(() => {
      const [before, flushed] = [flushing, flush()]
      flushing = before.then(() => flushed)
    })
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

  /** It never fails: those who wait for a row get its error. */
  async function flush(): Promise<void> {
    isScheduled = false
    if (isHeld) return
    const groups: Group[] = []
    for (const ledger of all) {
      if (ledger.waiting.length > 0) groups.push({ ledger, rows: ledger.waiting })
      ledger.waiting = []
    }
    if (groups.length === 0) return
    const committed = commitFlushed(groups)
    if (isShared) void holdOthers(committed)
    await committed
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

  function append(ledger: Ledger, row: Row): Promise<void> {
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
      await flush()
      await flushing
    },
  }
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

type CommitGroups = (groups: Group[]) => Promise<void>

function commitGroups(commit: Commit, groups: Group[]): Promise<void> {
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
async function commitEach(commit: CommitGroups, groups: Group[]): Promise<void> {
  try {
    await commit(groups)
    for (const { rows } of groups) for (const row of rows) row.done()
  } catch (error) {
    const rows = groups.flatMap((group) => group.rows)
    // Rows of a commit that can have been made are not sent again: they would be written twice.
    const isFinal = isBusy(error) || isUnreachable(error) || isUnknownOutcome(error)
    if (rows.length === 1 || isFinal) for (const row of rows) row.failed(error)
    else
      for (const { ledger, rows } of groups) for (const row of rows) await commitEach(commit, [{ ledger, rows: [row] }])
  }
}

function createLedgers(isShared: boolean) {
  const sumsFor = createUsageSummer()
  return {
    audit: createLedger(insertion(exchangeAudit)),
    // The upstream has done its work.
    usage: { ...createLedger(insertion(usage), ({ length }) => sumsFor(length)), isPatient: true },
    usedTokens: isShared
      ? createLedger(insertion(usedSubjectTokens), () => [], dropExpiredOf)
      : createLedger(insertion(usedSubjectTokens, 'insert or replace')),
    // An id that comes again stays with the key that had it first.
    storedResponses: createLedger(insertion(storedResponses, 'insert or ignore'), (rows) => [
      dropOldResponses(rows as StoredResponse[]),
    ]),
  }
}

/** The statements that commit usage, as the queue commits it. */
export function usageStatements({ usage: rows, storedResponses: stored }: UsageCommit): BoundStatement[] {
  const { usage: ledger, storedResponses: responses } = createLedgers(true)
  return [
    ...(rows.length > 0 ? ledger.statementsFor(rows) : []),
    ...(stored.length > 0 ? responses.statementsFor(stored) : []),
  ]
}

type StatementsOf = (rows: Row[]) => BoundStatement[]

/** `more` returns further statements for the commit of these rows, and `first` those that run before their inserts. */
function createLedger(into: Insertion, more: StatementsOf = () => [], first: StatementsOf = () => []): Ledger {
  const statementsFor = (rows: Row[]) => first(rows).concat(insertsOf(into, rows), more(rows))
  return { waiting: [], statementsFor, isPatient: false }
}

/** Removes uses under the same ids whose tokens have expired. The same token expires at the same time, so its use stays. */
function dropExpiredOf(rows: Row[]): BoundStatement[] {
  const uses = rows as UsedSubjectToken[]
  const ids = uses.map(({ issuerId, tokenIdSha256, expiresAt }) => [issuerId, tokenIdSha256, expiresAt])
  const sql = `delete from used_subject_tokens where expires_at <= ${databaseTime}
    and (issuer_id, token_id_sha256) in (
      select value ->> 0, value ->> 1 from json_each(?) where used_subject_tokens.expires_at < value ->> 2
    )`
  return [{ sql, args: [JSON.stringify(ids)] }]
}

/** Reports whether another node has recorded the use of this token. */
export function isUsedElsewhere(error: unknown): boolean {
  return error instanceof Error && /UNIQUE constraint failed: used_subject_tokens/.test(error.message)
}

function insertsOf(into: Insertion, rows: Row[]): BoundStatement[] {
  if (rows.length <= rowsPerStatement) return [insertOf(into, rows)]
  const statements: BoundStatement[] = []
  for (let start = 0; start < rows.length; start += rowsPerStatement)
    statements.push(insertOf(into, rows.slice(start, start + rowsPerStatement)))
  return statements
}
