// Reads rows as the audit log commits to them: one line of JSON each, with the columns of a version in a fixed order. A column that a
// later migration adds is in no line of an earlier version, so the text of a row never changes.
import { type SQL, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../file/open.ts'
import { type LogSource, logRecords } from '../schema/log-schema.ts'
import { adminChanges, exchangeAudit, usage } from '../schema/record-schema.ts'
import { type ErasedSource, type ErasedSubject, isOfSubject, personalColumns } from '../tables/erasure.ts'
import { readFitting } from './fitting.ts'

/** A row of a source: its id, its time in milliseconds since 1970 UTC, and its line. */
export type LoggedRow = { id: number; at: number; line: string }

/** The ledger has no leaves, only totals of its days. */
type RowSource = LogSource | 'usage'

const tables = {
  exchanges: exchangeAudit,
  changes: adminChanges,
  records: logRecords,
  usage,
} as const satisfies Record<RowSource, SQLiteTable>

/** The columns of version 1, in order. */
const columns: Record<RowSource, readonly string[]> = {
  exchanges: [
    ...['at', 'request_id', 'outcome', 'error', 'reason', 'detail', 'organization_id', 'policy_id', 'issuer_id'],
    ...['key_id', 'policy_named', 'subject', 'subject_token_id', 'subject_token_sha256', 'access_token_id'],
    ...['access_token_expires_at', 'client_address', 'recorded_claims', 'attribution', 'grant'],
  ],
  changes: [
    ...['at', 'actor', 'actor_key_id', 'request_id', 'operation', 'organization_id', 'kind', 'target_id', 'before'],
    ...['after', 'os_user', 'sudo_user', 'group_id', 'session_id', 'lineage'],
  ],
  records: ['at', 'kind', 'body'],
  usage: [
    ...['id', 'at', 'request_id', 'organization_id', 'workspace_id', 'key_id', 'policy_id', 'issuer_id', 'subject'],
    ...[
      'access_token_id',
      'endpoint',
      'model',
      'status',
      'streamed',
      'completed',
      'prompt_tokens',
      'completion_tokens',
    ],
    ...['total_tokens', 'usage_source', 'duration_milliseconds', 'model_asked', 'upstream', 'preset_version'],
    ...['cached_tokens', 'reasoning_tokens', 'cost_nanodollars', 'first_byte_milliseconds', 'client_left', 'estimated'],
    ...['attribution', 'end_user', 'session_id', 'metadata', 'unit', 'units'],
  ],
}

function packed(source: RowSource): SQL {
  const members = columns[source].map((name) => `'${name}', "${name}"`).join(', ')
  return sql.raw(`id || ' ' || at || ' ' || json_object(${members})`)
}

/** The lines that rows have once their subject is erased. */
function packedWithout(source: ErasedSource, subject: ErasedSubject): SQL {
  const members = columns[source].map((name) => {
    const column = sql.raw(`"${name}"`)
    const value = personalColumns[source].includes(name)
      ? sql`case when ${isOfSubject(subject)} then null else ${column} end`
      : column
    return sql`${sql.raw(`'${name}'`)}, ${value}`
  })
  return sql`id || ' ' || at || ' ' || json_object(${sql.join(members, sql`, `)})`
}

/** The line of a row that an archive has, whose members are its columns. */
export function lineOf(source: 'exchanges', row: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(Object.fromEntries(columns[source].map((name) => [name, row[name] ?? null])))
}

const packedOf = {
  exchanges: packed('exchanges'),
  changes: packed('changes'),
  records: packed('records'),
  usage: packed('usage'),
} as const satisfies Record<RowSource, SQL>

/** The id of the newest row of each source; 0 without one. */
export async function readLastRowIds(orm: Orm): Promise<Record<LogSource, number>> {
  const [found] = await orm.all<Record<LogSource, number | null>>(sql`
    select (select max(id) from ${exchangeAudit}) as exchanges, (select max(id) from ${adminChanges}) as changes,
      (select max(id) from ${logRecords}) as records`)
  return { exchanges: found?.exchanges ?? 0, changes: found?.changes ?? 0, records: found?.records ?? 0 }
}

type LoggedRange = { after: number; last?: number | undefined; most: number }

/** Reads the rows with ids above `after` and up to `last`, at most `most`, in the order of their ids. */
export function readLoggedRows(orm: Orm, source: RowSource, range: LoggedRange): Promise<LoggedRow[]> {
  return readPacked(orm, source, packedOf[source], range)
}

/** The ledger rows of an organization and a time: includes `since`, excludes `until`, in milliseconds since 1970 UTC. */
export type LedgerDay = { organizationId: string; since: number; until: number }

/** As `readLoggedRows`, of one day of the ledger alone. */
export function readDayRows(
  orm: Orm,
  { organizationId, since, until }: LedgerDay,
  range: LoggedRange,
): Promise<LoggedRow[]> {
  const isOfDay = sql`organization_id = ${organizationId} and at >= ${since} and at < ${until}`
  return readPacked(orm, 'usage', packedOf.usage, range, isOfDay)
}

/** As `readLoggedRows`, with the lines that rows have once a subject is erased. `isOnly`: without the rows of others. */
export function readErasedRows(
  orm: Orm,
  source: ErasedSource,
  subject: ErasedSubject,
  { isOnly = false, ...range }: LoggedRange & { isOnly?: boolean },
): Promise<LoggedRow[]> {
  return readPacked(orm, source, packedWithout(source, subject), range, isOnly ? isOfSubject(subject) : undefined)
}

async function readPacked(
  orm: Orm,
  source: RowSource,
  packedRow: SQL,
  { after, last = Number.MAX_SAFE_INTEGER, most }: LoggedRange,
  isWanted: SQL = sql`true`,
): Promise<LoggedRow[]> {
  const { result } = await readFitting(most, (rows) =>
    orm.all<{ text: string | null }>(sql`
      select group_concat(line, char(10)) as "text" from (
        select ${packedRow} as line from ${tables[source]}
        where id > ${after} and id <= ${last} and ${isWanted} order by id limit ${rows})`),
  )
  const text = result[0]?.text ?? null
  return text === null ? [] : text.split('\n').map(parseLine)
}

function parseLine(line: string): LoggedRow {
  const first = line.indexOf(' ')
  const second = line.indexOf(' ', first + 1)
  return { id: Number(line.slice(0, first)), at: Number(line.slice(first + 1, second)), line: line.slice(second + 1) }
}
