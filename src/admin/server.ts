// Admin operations on the running server and the nodes of its database. Without a server, there is nothing to reload and no health.
import { latestSchema } from '../../db/schema/migrate.ts'
import { listNodes } from '../../db/tables/nodes.ts'
import { listSigningKeys } from '../../db/tables/signing-keys.ts'
import { Fault } from '../fault.ts'
import { formatAddress } from '../settings/addresses.ts'
import { isFittingMasterKey } from '../tokens/keyring.ts'
import { type } from '../values/shape.ts'
import type { Needs } from './operation/context.ts'
import { operation } from './operation/operation.ts'
import { timeOf } from './operation/references.ts'

const noInput = type({ '+': 'reject' })

export const serverOperations = {
  'server.reload': operation(noInput, reload),
  'server.check': operation(noInput, check),
  'server.work': operation(noInput, listWork),
  'health.show': operation(noInput, showHealth),
  'nodes.list': operation(noInput, showNodes),
}

/** @throws Fault `conflict` when the new settings are wrong; the server keeps the ones it has */
async function reload({ reload: run }: Needs<'reload'>) {
  if (run === undefined) throw new Fault('conflict', 'No server is running here, so there is nothing to reload')
  try {
    return run()
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new Fault('conflict', `The server keeps its settings: ${error.message}`, { cause: error })
  }
}

/**
 * What only the process that holds the database can check for `latchkey config check`.
 * @throws Fault `conflict` where no server runs
 */
async function check({ config, orm, signingKeys }: Needs<'config' | 'orm' | 'signingKeys'>) {
  if (signingKeys === undefined) throw new Fault('conflict', 'No server is running here')
  const { masterKey, listen, adminListen, metricsListen } = config
  return {
    schema: latestSchema,
    listen: formatAddress(listen),
    admin_listen: adminListen === undefined ? null : formatAddress(adminListen),
    metrics_listen: metricsListen === undefined || 'socketPath' in metricsListen ? null : formatAddress(metricsListen),
    master_key_file: masterKey.kind === 'file' ? masterKey.path : null,
    master_key_fits: await isFittingMasterKey(masterKey, await listSigningKeys(orm)),
  }
}

/**
 * What takes long at the moment: operations and scheduled runs.
 * @throws Fault `conflict` where no server runs
 */
async function listWork({ work, signingKeys, operation: own }: Needs<'work' | 'signingKeys' | 'operation'>) {
  if (signingKeys === undefined) throw new Fault('conflict', 'No server is running here')
  const others = work.list().filter(({ name }) => name !== own)
  return {
    data: others.map(({ name, startedAt, done, total }) => ({ name, started_at: timeOf(startedAt), done, total })),
  }
}

function showHealth({ readiness }: Needs<'readiness'>) {
  if (readiness === undefined) throw new Fault('unavailable', 'No server runs on this database')
  return readiness.check()
}

/** A database file has no nodes: one process holds it. */
async function showNodes({ orm }: Needs<'orm'>) {
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
