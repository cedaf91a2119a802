// Opens the database of the settings, a file or one on a server, and loads what requests look up.
import { dirname } from 'node:path'
import { damagedFile, damageOf, type OpenRefusal } from '../../db/file/file-errors.ts'
import { type Database, type OpenOptions, type Orm, openDatabase } from '../../db/file/open.ts'
import type { ServerOptions } from '../../db/remote/server-database.ts'
import { firstPosition } from '../../db/remote/shared-database.ts'
import type { NodeMemory } from '../../db/write/change-queue.ts'
import { describeError, Fault, type FaultCode } from '../fault.ts'
import { configuredUpstream } from '../inference/upstream/targets.ts'
import { addUncommitted, type Spending } from '../keys/spending.ts'
import { loadRegistry, type Registry } from '../registry/registry.ts'
import { createDataFolder } from '../runtime/data-folder.ts'
import { refuseClosedDatabase } from '../runtime/file-access.ts'
import type { Config } from '../settings/config.ts'
import { type Budgets, createBudgets } from '../spending/budgets.ts'
import { type BudgetBuilder, createBudgetBuilder } from './budget-sums.ts'
import { explainUnreachable } from './database-unreachable.ts'
import { type Follow, type FollowOptions, followNobody, followOthers } from './follow.ts'
import { loadSpending } from './load-spending.ts'
import { connectTo } from './server-connection.ts'

/** What only a server database has: how long a commit may take, and whether to migrate an older schema. */
export type ServerRules = Partial<Omit<ServerOptions, 'url' | 'token' | 'create' | 'send'>>

/** What a file has too. */
export type OpenRules = ServerRules & Pick<OpenOptions, 'onReaderEnded'>

/** A start waits half a minute for a database server that does not confirm a commit. Then it ends, so that it is noticed. */
export const startRules: ServerRules = { outcomeMillisecondsMax: 30_000 }

/** Opens the database that the settings name. With `create`, creates what is missing. */
export async function openConfigured(
  config: Config,
  create: boolean,
  { onReaderEnded, ...rules }: OpenRules = {},
): Promise<Database | OpenRefusal> {
  const { databasePath, databaseServer, databaseSynchronous } = config
  if (databaseServer === undefined) {
    if (create) createDataFolder(dirname(databasePath))
    return (
      refuseClosedDatabase(databasePath) ??
      openDatabase({ path: databasePath, create, synchronous: databaseSynchronous, onReaderEnded })
    )
  }
  // A database file needs none of it.
  const { openServerDatabase } = await import('../../db/remote/server-database.ts')
  return openServerDatabase({ ...databaseServer, ...rules, create, send: connectTo(databaseServer) })
}

const codeOfRefusal = {
  unreachable: 'unavailable',
  missing: 'configuration',
  held: 'conflict',
  newer_schema: 'configuration',
  older_schema: 'configuration',
  unreadable: 'configuration',
} as const satisfies Record<string, FaultCode>

const hints = {
  unreachable: '',
  missing: '; run: latchkey init',
  held: '; while that is a server, run commands as its user, with the same LATCHKEY_DATABASE_URL',
  newer_schema: '',
  older_schema: '',
  unreadable: '',
}

/**
 * Opens it as `openConfigured` does, but a refusal is a fault that says what to do next.
 * @throws Fault `configuration`, `conflict` while another process holds the file, or `unavailable` if a database server
 * does not respond
 */
export async function openOrRefuse(config: Config, create: boolean, rules: OpenRules): Promise<Database> {
  const database = await openConfigured(config, create, rules)
  if (!('refused' in database)) return database
  const { refused, message, cause } = database
  throw new Fault(codeOfRefusal[refused], `${message}${hints[refused]}`, { reason: `database_${refused}`, cause })
}

type LoadOptions = Pick<FollowOptions, 'monotonic' | 'onRefresh' | 'onReplaced'> & { now: () => number }
type LoadedState = {
  registry: Registry
  spending: Spending
  budgets: Budgets
  budgetBuilder: BudgetBuilder
  follow: Follow
  following?: NodeMemory
}

/**
 * Loads what requests look up. Opening detects damage only at the start of a file; damage further in appears here.
 * @throws Fault `configuration`, or `unavailable` if a database server does not respond
 */
export async function loadOrRefuse(
  database: Database,
  { upstreamUrl }: Config,
  loading: LoadOptions,
): Promise<LoadedState> {
  const { orm, shared } = database
  try {
    const configured = upstreamUrl === undefined ? undefined : configuredUpstream(upstreamUrl)
    const reload = () => loadRegistry(orm, configured)
    if (shared !== undefined) return await loadShared({ shared, orm, reload }, loading)
    const registry = await reload()
    const { spending } = await loadSpending(orm, loading.now())
    const { budgets, budgetBuilder } = await loadBudgets(orm, registry, loading)
    return { registry, spending, budgets, budgetBuilder, follow: followNobody() }
  } catch (cause) {
    await database.close().catch(() => {})
    const error = explainUnreachable(cause)
    if (error instanceof Fault) throw error
    const options = { reason: 'database_unreadable', cause } as const
    throw new Fault('configuration', whyUnreadable(database.path, cause), options)
  }
}

/** Only what SQLite calls damaged is: a backup would not help against anything else. */
function whyUnreadable(path: string, cause: unknown): string {
  const damage = damageOf(cause)
  if (damage !== undefined) return damagedFile(path, damage)
  let first = cause
  while (first instanceof Error && first.cause !== undefined) first = first.cause
  return `The database ${JSON.stringify(path)} cannot be read: ${describeError(first).replace(/^SQLITE_\w+: /, '')}`
}

/** This process writes nothing before it has ended. */
async function loadBudgets(orm: Orm, registry: Registry, { now }: Pick<LoadOptions, 'now'>) {
  const budgets = createBudgets()
  const budgetBuilder = createBudgetBuilder({ orm, registry, budgets, now })
  await budgetBuilder.build()
  return { budgets, budgetBuilder }
}

/** What is read before memory is loaded is looked up again by the first refresh. */
async function loadShared(
  parts: Pick<FollowOptions, 'shared' | 'orm' | 'reload'>,
  { now, monotonic, onRefresh, onReplaced }: LoadOptions,
): Promise<LoadedState> {
  // No rows of the ledger: what was spent is read below.
  const before = { ...firstPosition, usageId: Number.MAX_SAFE_INTEGER }
  const { revision, auditId, commit, installation } = await parts.shared.refresh(before)
  const registry = await parts.reload()
  const { budgets, budgetBuilder } = await loadBudgets(parts.orm, registry, { now })
  const { spending, usageId } = await loadSpending(parts.orm, now())
  const start = { revision, usageId, auditId, commit, installation }
  const { following, ...follow } = followOthers({
    ...parts,
    registry,
    spending,
    start,
    monotonic,
    onRefresh,
    onReplaced,
    onUsage: budgetBuilder.follow,
  })
  // The next refresh brings what this node commits, with what others do.
  const followed = { ...budgets, add: () => {} }
  return { registry, spending: addUncommitted(spending), budgets: followed, budgetBuilder, follow, following }
}
