// Opens the database of the settings, a file or one on a server, and loads what requests look up.
import { dirname } from 'node:path'
import type { Following } from '../../db/change-queue.ts'
import { type Database, type OpenRefusal, openDatabase } from '../../db/open.ts'
import type { ServerOptions } from '../../db/server-database.ts'
import { listSpentDays } from '../../db/usage.ts'
import type { Config } from '../config.ts'
import { Fault } from '../fault.ts'
import { configuredUpstream } from '../inference/upstream/targets.ts'
import { addUncommitted, createSpending, type Spending } from '../keys/spending.ts'
import { loadRegistry, type Registry } from '../registry.ts'
import { createDataFolder } from '../runtime/data-folder.ts'
import { explainUnreachable } from './database-unreachable.ts'
import { type Follow, type FollowOptions, followNobody, followOthers } from './follow.ts'
import { connectTo } from './server-connection.ts'
import { loadSharedSpending } from './shared-spending.ts'

/** What only a server database has: how long a commit may take, and whether to migrate an older schema. */
export type ServerRules = Partial<Omit<ServerOptions, 'url' | 'token' | 'create' | 'send'>>

/** Opens the database that the settings name. With `create`, creates what is missing. */
export async function openConfigured(
  config: Config,
  create: boolean,
  rules: ServerRules = {},
): Promise<Database | OpenRefusal> {
  const { databasePath, databaseServer, databaseSynchronous } = config
  if (databaseServer === undefined) {
    if (create) createDataFolder(dirname(databasePath))
    return openDatabase({ path: databasePath, create, synchronous: databaseSynchronous })
  }
  // A database file needs none of it.
  const { openServerDatabase } = await import('../../db/server-database.ts')
  return openServerDatabase({ ...databaseServer, ...rules, create, send: connectTo(databaseServer) })
}

type Loading = Pick<FollowOptions, 'monotonic' | 'onLook' | 'onReplaced'> & { now: () => number }
type Loaded = { registry: Registry; spending: Spending; follow: Follow; following?: Following }

/**
 * Loads what requests look up. Opening detects damage only at the start of a file; damage further in appears here.
 * @throws Fault `configuration`, or `unavailable` if a database server does not respond
 */
export async function loadOrRefuse(database: Database, { upstreamUrl }: Config, loading: Loading): Promise<Loaded> {
  const { orm, shared } = database
  try {
    const configured = upstreamUrl === undefined ? undefined : configuredUpstream(upstreamUrl)
    const reload = () => loadRegistry(orm, configured)
    if (shared !== undefined) return await loadShared({ shared, orm, reload }, loading)
    const registry = await reload()
    return { registry, spending: createSpending(await listSpentDays(orm), loading.now()), follow: followNobody() }
  } catch (cause) {
    await database.close().catch(() => {})
    const error = explainUnreachable(cause)
    if (error instanceof Fault) throw error
    throw new Fault(
      'configuration',
      `The database ${JSON.stringify(database.path)} cannot be read; it may be damaged: restore it from a backup`,
      { reason: 'database_unreadable', cause },
    )
  }
}

/** What is read before memory is loaded is looked up again by the first look. */
async function loadShared(
  parts: Pick<FollowOptions, 'shared' | 'orm' | 'reload'>,
  { now, monotonic, onLook, onReplaced }: Loading,
): Promise<Loaded> {
  const { revision, installation } = await parts.shared.look({ revision: 0, usageId: Number.MAX_SAFE_INTEGER })
  const registry = await parts.reload()
  const { spending, usageId } = await loadSharedSpending(parts.orm, now())
  const start = { revision, usageId, installation }
  const { following, ...follow } = followOthers({ ...parts, registry, spending, start, monotonic, onLook, onReplaced })
  return { registry, spending: addUncommitted(spending), follow, following }
}
