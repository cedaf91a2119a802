// Reports to the other nodes of a server database that this one is alive, once a second. A database file has one process.
import { hostname } from 'node:os'
import { latestSchema } from '../../db/schema/migrate.ts'
import { dropNode, reportNode } from '../../db/tables/nodes.ts'
import type { Writer } from '../../db/write/write.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { describeError } from '../fault.ts'
import type { Log } from '../observe/log.ts'
import { every } from '../scheduling/every.ts'
import type { NodeSlices } from './budget-slices.ts'
import type { Follow } from './follow.ts'

/** What reporting needs. */
export type ReportContext = {
  follow: Follow
  writer: Pick<Writer, 'write'>
  log: Log
  now: () => number
  /** Of a node of a server database. */
  budgetSlices: NodeSlices | undefined
  config: { drainMilliseconds: number }
}

const everyMilliseconds = 1_000

/**
 * Reports now and on a timer, and refreshes from the database each time, so that an idle node stays up to date. Returns a
 * function that ends it and removes this node from the list.
 */
export async function reportWhileServing(
  { follow, writer, log, now, budgetSlices, config: { drainMilliseconds } }: ReportContext,
  { port, baseUrl }: { port: number; baseUrl: string },
): Promise<() => Promise<void>> {
  if (budgetSlices === undefined) return async () => {}
  const { nodeId: id } = budgetSlices
  const name = `${hostname()}:${port}`
  let failure: string | undefined
  const report = async () => {
    try {
      await follow.fresh()
      const revision = follow.revision() ?? 0
      const node = { id, name, version: packageJson.version, schemaVersion: latestSchema, revision, baseUrl }
      await budgetSlices.report((slices) => writer.write([...reportNode({ ...node, now: now() }), ...slices]))
      failure = undefined
    } catch (error) {
      const { message } = error as Error
      if (message !== failure) log('error', 'node_report_failed', { reason: describeError(error) })
      failure = message
    }
  }
  let running = report()
  await running
  // The first report counts this node.
  await follow.fresh()?.catch(() => {})
  const stop = every(everyMilliseconds, () => {
    running = report()
    return running
  })
  return async () => {
    stop()
    await running
    // Requests that still run hold what they hold.
    await budgetSlices.report((slices) => writer.write([dropNode(id), ...slices]), drainMilliseconds).catch(() => {})
  }
}
