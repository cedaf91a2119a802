// Empties what rows of the audit log and the ledger say of a person. Triggers let personal columns become null together, and nothing else
// change (migrations/0050_erase_token_ids.sql).
import { sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type OnProgress, readInSlices } from '../read/slices.ts'
import { exchangeAudit, usage } from '../schema/record-schema.ts'
import type { Statement } from '../write/rows.ts'

/** A subject of an issuer. */
export type ErasedSubject = { issuerId: string; subject: string }

const tables = { exchanges: exchangeAudit, usage } as const
export type ErasedSource = keyof typeof tables

/** The columns that can say who somebody is, or let anyone try who it was: the random ids of access tokens. */
export const personalColumns: Record<ErasedSource, readonly string[]> = {
  exchanges: [
    ...['subject', 'subject_token_id', 'subject_token_sha256', 'client_address', 'recorded_claims', 'attribution'],
    ...['access_token_id', 'detail'],
  ],
  usage: ['subject', 'access_token_id', 'attribution', 'end_user', 'session_id', 'metadata'],
}

export function isOfSubject({ issuerId, subject }: ErasedSubject) {
  return sql`issuer_id = ${issuerId} and subject = ${subject}`
}

/** `since` and `until`: milliseconds since 1970 UTC, the first included and the second not. */
export type SubjectRange = { last: number; since?: number | undefined; until?: number | undefined }

/** Lists the ids of a subject's rows up to `last`, oldest first. Reads the whole table: call it with the connection for slow reads. */
export async function listSubjectRows(
  reader: Orm,
  source: ErasedSource,
  subject: ErasedSubject,
  { last, since = 0, until: end = Number.MAX_SAFE_INTEGER }: SubjectRange,
  onProgress?: OnProgress,
): Promise<number[]> {
  const table = tables[source]
  const [first] = await reader.all<{ id: number | null }>(sql`select min(id) as id from ${table}`)
  const ids: number[] = []
  const read = ({ from, until }: { from: number; until: number }) =>
    reader.all<{ ids: string | null }>(sql`
      select group_concat(id) as ids from (
        select id from ${table} where id >= ${from} and id < ${until} and ${isOfSubject(subject)}
          and at >= ${since} and at < ${end} order by id)`)
  for await (const [found] of readInSlices({ from: first?.id ?? 1, until: last + 1 }, read, onProgress))
    if (found?.ids != null) ids.push(...found.ids.split(',').map(Number))
  return ids
}

/** The attributions and sessions of rows, which budgets count by. `ids`: some hundreds at a time. */
export async function listCounterValues(reader: Orm, source: ErasedSource, ids: readonly number[]): Promise<string[]> {
  const columns = source === 'exchanges' ? ['attribution'] : ['attribution', 'session_id']
  const selects = columns.map(
    (column) => sql`select ${sql.raw(column)} as value from ${tables[source]}
      where id in (select value from json_each(${JSON.stringify(ids)})) and ${sql.raw(column)} is not null`,
  )
  return (await reader.all<{ value: string }>(sql.join(selects, sql` union `))).map(({ value }) => value)
}

/** Empties the personal columns of rows. `ids`: some hundreds at a time, since they run on the connection that serves. */
export function eraseRows(source: ErasedSource, ids: readonly number[]): Statement {
  const name = source === 'exchanges' ? 'exchange_audit' : 'usage'
  const columns = personalColumns[source].map((column) => `${column} = null`).join(', ')
  return {
    toSQL: () => ({
      sql: `update ${name} set ${columns} where id in (select value from json_each(?))`,
      params: [JSON.stringify(ids)],
    }),
  }
}

/** Removes the salts of leaves: nobody can test any more what they commit to. */
export function eraseSalts(leaves: readonly number[]): Statement {
  return {
    toSQL: () => ({
      sql: 'update log_entries set salt = null where leaf in (select value from json_each(?))',
      params: [JSON.stringify(leaves)],
    }),
  }
}
