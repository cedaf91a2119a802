// The nodes that serve a server database. Each reports every second, by the clock of the database.

import type { Orm } from '../file/open.ts'
import { dropOldBatches } from '../remote/commit-once.ts'
import { databaseTime, type NodeRow, nodeMilliseconds } from '../schema/node-schema.ts'
import type { Statement } from '../write/rows.ts'

export type ReportingNode = Pick<NodeRow, 'id' | 'name' | 'version' | 'schemaVersion' | 'revision' | 'baseUrl'> & {
  /** The clock of the node, in milliseconds since 1970 UTC. */
  now: number
}

/** How long a node that stopped silently stays listed. */
const listedMilliseconds = 24 * 60 * 60 * 1_000

/** Notes that a node is alive, and removes what is long out of date. */
export function reportNode({ now, ...node }: ReportingNode): Statement[] {
  const { id, name, version, schemaVersion, revision, baseUrl } = node
  const sql = `insert into nodes (id, name, version, schema_version, revision, base_url, clock_offset, started_at, last_seen_at)
    values (?, ?, ?, ?, ?, ?, ? - ${databaseTime}, ${databaseTime}, ${databaseTime})
    on conflict (id) do update set revision = excluded.revision, clock_offset = excluded.clock_offset,
      last_seen_at = excluded.last_seen_at`
  return [
    { toSQL: () => ({ sql, params: [id, name, version, schemaVersion, revision, baseUrl, now] }) },
    statement(`delete from nodes where last_seen_at < ${databaseTime} - ${listedMilliseconds}`),
    { toSQL: () => ({ sql: dropOldBatches.sql, params: dropOldBatches.args }) },
  ]
}

/** Removes a node that stops. */
export function dropNode(id: string): Statement {
  return { toSQL: () => ({ sql: 'delete from nodes where id = ?', params: [id] }) }
}

/** A node, with how many admin changes it has not seen, and whether it has reported lately. */
export type ListedNode = NodeRow & { lag: number; isLive: number; idleMilliseconds: number }

/** Lists the nodes by name. */
export function listNodes(orm: Orm): Promise<ListedNode[]> {
  return orm.all<ListedNode>(`select id, name, version, schema_version as "schemaVersion", started_at as "startedAt",
      last_seen_at as "lastSeenAt", revision, base_url as "baseUrl", clock_offset as "clockOffset",
      max(0, (select coalesce(max(id), 0) from admin_changes) - revision) as lag,
      last_seen_at > ${databaseTime} - ${nodeMilliseconds} as "isLive",
      max(0, ${databaseTime} - last_seen_at) as "idleMilliseconds"
    from nodes order by name, id`)
}

function statement(sql: string): Statement {
  return { toSQL: () => ({ sql, params: [] }) }
}
