// A refresh from a server database: what changed since the last one, in one statement. The revision is the id of the newest
// admin change: every admin commit records one, ids only grow, and the server commits one transaction at a time. Its
// lineage distinguishes it from a change that gets the same id after the database has gone back.
import { type Client, LibsqlError, type Row } from '@libsql/core/api'
import { gt } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { databaseTime, nodeMilliseconds } from '../schema/node-schema.ts'
import { adminChanges } from '../schema/record-schema.ts'
import type { ChangeKind } from '../tables/admin-changes.ts'
import type { BoundStatement } from '../write/rows.ts'
import type { Position, RefreshResult, Revision } from './shared-database.ts'

const dayMilliseconds = 24 * 60 * 60 * 1_000
/** So many usage rows are read at a time: a node that was away for hours would get no refresh within its time, and too large ones. */
export const usageRowsMax = 20_000
const newestUsage = '(select coalesce(max(id), 0) from usage)'
const newestAudit = '(select coalesce(max(id), 0) from exchange_audit)'
/** Each commit adds a row before it removes old ones. */
const newestCommit = '(select coalesce(max(number), 0) from batches)'
const newestChange = '(select coalesce(max(id), 0) from admin_changes)'
/** What distinguishes a change from others with its id. A change of an older program has only its time and its target. */
const lineageOf = (id: string) =>
  `coalesce((select coalesce(lineage, at || ' ' || target_id) from admin_changes where id = ${id}), '')`
const newestRevision = `${newestChange} as revision, ${lineageOf(newestChange)} as lineage`
const refresh = `select
  ${newestRevision},
  ${lineageOf('?2')} = ?3 as is_continued,
  min(${newestUsage}, ?1 + ${usageRowsMax}) as usage_id,
  ${newestAudit} as audit_id,
  ${newestCommit} as newest_commit,
  (select id from installation) as installation,
  (select count(*) from nodes where last_seen_at > ${databaseTime} - ${nodeMilliseconds}) as live_nodes,
  (select group_concat(key_id || ' ' || day || ' ' || cost, char(10)) from (
    select key_id, at / ${dayMilliseconds} as day, cast(total(cost_nanodollars) as integer) as cost
    from usage where id > ?1 and id <= ?1 + ${usageRowsMax} and cost_nanodollars > 0 group by 1, 2
  )) as spent`

/** `hasOwnCommits` as far as the position knows them. */
export async function refreshFrom(client: Pick<Client, 'execute'>, position: Position): Promise<RefreshResult> {
  const { usageId, revision } = position
  const { rows } = await client.execute({ sql: refresh, args: [usageId, revision.id, revision.lineage] })
  const [row] = rows
  const newest = toCount(row?.usage_id)
  const commit = toCount(row?.newest_commit)
  return {
    revision: toRevision(row),
    isContinued: row?.is_continued === 1,
    hasOwnCommits: commit >= position.commit,
    usageId: newest,
    auditId: toCount(row?.audit_id),
    commit,
    hasMoreUsage: newest === usageId + usageRowsMax,
    installation: String(row?.installation ?? ''),
    liveNodes: toCount(row?.live_nodes),
    spent: row?.spent === null ? [] : toSpent(String(row?.spent)),
  }
}

/** Reads the row of `readRevision`. */
export function toRevision(row: Row | undefined): Revision {
  return { id: toCount(row?.revision), lineage: String(row?.lineage) }
}

/** Not JSON: a parser takes a third of a second for 4 MB of brackets. */
function toSpent(lines: string): RefreshResult['spent'] {
  return lines.split('\n', usageRowsMax).map((line) => {
    const [keyId = '', day, cost] = line.split(' ', 3)
    return [keyId, toCount(Number(day)), toCount(Math.min(Number(cost), Number.MAX_SAFE_INTEGER))]
  })
}

/** Every change is newer than none: what is not a number would hide all later ones. */
function toCount(value: unknown): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw new TypeError('A refresh shows numbers')
  return value
}

/** Lists what changed after a revision, oldest first, at most `limit` changes. */
export function listChangedSince(
  orm: Orm,
  revision: number,
  limit: number,
): Promise<{ id: number; kind: ChangeKind; targetId: string }[]> {
  const { id, kind, targetId } = adminChanges
  return orm.select({ id, kind, targetId }).from(adminChanges).where(gt(id, revision)).orderBy(id).limit(limit)
}

/** Fails the commit unless the newest admin change is this one: text that is not JSON is an error. */
export function expectRevision({ id, lineage }: Revision): BoundStatement {
  const isNewest = `${newestChange} = ? and ${lineageOf(newestChange)} = ?`
  return { sql: `select case when ${isNewest} then 1 else json('stale') end`, args: [id, lineage] }
}

export const readRevision: BoundStatement = { sql: `select ${newestRevision}`, args: [] }

const staleCode = 'STALE_REVISION'

/** The error for a change that was planned before a newer one. */
export function staleError(): LibsqlError {
  return new LibsqlError('Another node has changed the database meanwhile', staleCode)
}

/** Reports whether a change was not committed because another node made one meanwhile. */
export function isStale(error: unknown): boolean {
  return error instanceof LibsqlError && (error.code === staleCode || error.message.includes('malformed JSON'))
}
