// The tables of the ledger: which statements commit new rows of each. It knows no queue and no connection.
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

export type LedgerRow = AuditRow | UsageRow | UsedSubjectToken | StoredResponse
/** `isPatient`: the commit of its rows may wait, because what they record has happened. */
export type LedgerTable = { statementsFor: (rows: LedgerRow[]) => BoundStatement[]; isPatient: boolean }

/** Rows per insert statement. 250 rows of 20 columns stay far below SQLite's limit of 32,766 parameters. */
const rowsPerStatement = 250

/** With `isShared`, other nodes write too, so a used token that one of them has recorded fails. */
export function createLedgerTables(isShared: boolean) {
  const sumsFor = createUsageSummer()
  return {
    audit: createTable(insertion(exchangeAudit)),
    // The upstream has done its work.
    usage: { ...createTable(insertion(usage), ({ length }) => sumsFor(length)), isPatient: true },
    usedTokens: isShared
      ? createTable(insertion(usedSubjectTokens), () => none, dropExpiredOf)
      : createTable(insertion(usedSubjectTokens, 'insert or replace')),
    // An id that comes again stays with the key that had it first.
    storedResponses: createTable(insertion(storedResponses, 'insert or ignore'), (rows) => [
      dropOldResponses(rows as StoredResponse[]),
    ]),
  }
}

/** The statements that commit usage, as the queue commits it. */
export function usageStatements({ usage: rows, storedResponses: stored }: UsageCommit): BoundStatement[] {
  const { usage: ledger, storedResponses: responses } = createLedgerTables(true)
  return [
    ...(rows.length > 0 ? ledger.statementsFor(rows) : []),
    ...(stored.length > 0 ? responses.statementsFor(stored) : []),
  ]
}

type StatementsOf = (rows: LedgerRow[]) => BoundStatement[]

const none: BoundStatement[] = []

/** `more` returns further statements for the commit of these rows, and `first` those that run before their inserts. */
function createTable(into: Insertion, more: StatementsOf = () => none, first: StatementsOf = () => none): LedgerTable {
  const statementsFor = (rows: LedgerRow[]) => first(rows).concat(insertsOf(into, rows), more(rows))
  return { statementsFor, isPatient: false }
}

/** Removes uses under the same ids whose tokens have expired. The same token expires at the same time, so its use stays. */
function dropExpiredOf(rows: LedgerRow[]): BoundStatement[] {
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

function insertsOf(into: Insertion, rows: LedgerRow[]): BoundStatement[] {
  if (rows.length <= rowsPerStatement) return [insertOf(into, rows)]
  const statements: BoundStatement[] = []
  for (let start = 0; start < rows.length; start += rowsPerStatement)
    statements.push(insertOf(into, rows.slice(start, start + rowsPerStatement)))
  return statements
}
