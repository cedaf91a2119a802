// Admin operations on the nodes of a server database: list them.
import { listNodes } from '../../db/tables/nodes.ts'
import { type } from '../values/shape.ts'
import type { Needs } from './operation/context.ts'
import { operation } from './operation/operation.ts'
import { timeOf } from './operation/references.ts'

const listInput = type({ '+': 'reject' })

export const nodeOperations = { 'nodes.list': operation(listInput, list) }

/** A database file has no nodes: one process holds it. */
async function list({ orm }: Needs<'orm'>) {
  const rows = await listNodes(orm)
  return {
    data: rows.map((row) => ({
      id: row.id,
      name: row.name,
      live: Boolean(row.isLive),
      version: row.version,
      schema: row.schemaVersion,
      revision: row.revision,
      /** Admin changes that the node had not seen at its last report. */
      lag: row.lag,
      started_at: timeOf(row.startedAt),
      last_seen_at: timeOf(row.lastSeenAt),
      idle_milliseconds: row.idleMilliseconds,
      base_url: row.baseUrl,
      /** How far its clock is ahead of the database. */
      clock_offset_milliseconds: row.clockOffset,
    })),
  }
}
