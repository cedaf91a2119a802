// Admin operations on the running server itself. They need a server: a command that holds the database has nothing to reload.
import { latestSchema } from '../../db/schema/migrate.ts'
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
