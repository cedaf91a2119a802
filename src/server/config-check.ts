// Checks everything that a start needs without starting: settings, files, keys, the database and the ports. It changes nothing.
import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { inspectDatabase } from '../../db/file/inspect.ts'
import { latestSchema } from '../../db/schema/migrate.ts'
import type { OperationResponse } from '../admin/operations.ts'
import { askServer } from '../admin/transport/client.ts'
import { folderProblem } from '../archive/folder.ts'
import { Fault, tellForCommands } from '../fault.ts'
import { connectTo } from '../nodes/server-connection.ts'
import { describeDenial, describeFolderDenial, refuseClosedDatabase, shellWord } from '../runtime/file-access.ts'
import { listen } from '../runtime/listen.ts'
import { baseUrlFor, formatAddress, pageUrlFor } from '../settings/addresses.ts'
import { type Config, socketPathFor } from '../settings/config.ts'
import type { ListenAddress } from '../settings/setting-values.ts'
import { isFittingMasterKey } from '../tokens/keyring.ts'
import { keyFileFault } from '../tokens/master-key.ts'
import { readKeyFile } from '../tokens/master-key-file.ts'
import { checkSocketPath } from './socket-path.ts'
import { readTlsPair } from './tls-files.ts'

/** `detail` says what was found, and for a failed check what to do. A check is skipped when it does not apply, or another one failed. */
export type Check = { check: string; result: 'ok' | 'failed' | 'skipped'; detail: string }

/** What is known of the database: from the server that holds it, or from the file. */
type DatabaseFacts = { schema: number; masterKeyFits: boolean; server: OperationResponse<'server.check'> | undefined }

/** Gives what was found. @throws Fault that says what is wrong and what to do; `undefined` skips the check */
type Examine = (config: Config, found: DatabaseFacts | undefined) => Promise<string | undefined> | string | undefined

/** Every check with its result, in the order of a start. `readConfig` throws a Fault for a wrong setting. */
export async function checkConfig(readConfig: () => Config, now: number): Promise<Check[]> {
  const [settings, config] = await examine('settings', readConfig, () => 'every value is valid')
  const rest = examinations(now)
  if (config === undefined)
    return [settings, ...['database', ...rest.map(([check]) => check)].map((check) => skip(check, mustPassFirst))]
  const describe = (result: DatabaseFacts) => describeDatabase(result, config)
  const [database, found] = await examine('database', () => findDatabase(config), describe)
  const checks = [settings, database]
  for (const [check, run] of rest) {
    const [made, detail] = await examine(check, () => run(config, found), String)
    checks.push(made.result === 'ok' && detail === undefined ? skip(check, whyLeftOut(check)) : made)
  }
  return checks
}

const mustPassFirst = 'an earlier check must pass first'

function skip(check: string, why: string): Check {
  return { check, result: 'skipped', detail: why }
}

/** Only the master key depends on earlier checks. */
function whyLeftOut(check: string): string {
  return check === 'master_key' ? mustPassFirst : 'it is not set'
}

async function examine<Result>(
  check: string,
  run: () => Promise<Result> | Result,
  describe: (result: Result) => string,
): Promise<[Check, Result | undefined]> {
  try {
    const result = await run()
    return [{ check, result: 'ok', detail: describe(result) }, result]
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return [{ check, result: 'failed', detail: tellForCommands(error) }, undefined]
  }
}

function examinations(now: number): [check: string, examine: Examine][] {
  return [
    ['socket_path', examineSocketPath],
    ['master_key_file', examineMasterKeyFile],
    ['master_key', examineMasterKey],
    ['base_url', (config) => baseUrlFor(config, config.listen)],
    ['listen', ({ listen: address }, found) => examinePort(address, found?.server?.listen, 'LATCHKEY_LISTEN')],
    ['admin_listen', examineAdminPort],
    ['metrics_listen', examineMetricsPort],
    ['tls', ({ tls, databasePath }) => tls && describePair(readTlsPair(tls, { databasePath, now }))],
    ['access_log', examineAccessLog],
    ['backup_dir', examineBackupFolder],
    ['archive_dir', examineArchiveFolder],
  ]
}

async function findDatabase(config: Config): Promise<DatabaseFacts> {
  const asked = await askServer(socketPathFor(config), 'server.check', {})
  if (asked !== undefined) {
    const server = asked.result as OperationResponse<'server.check'>
    return { schema: server.schema, masterKeyFits: server.master_key_fits, server }
  }
  const inspected = await inspect(config)
  if ('refused' in inspected) {
    const next = inspected.refused === 'missing' ? '; run: latchkey init' : ''
    throw new Fault('configuration', inspected.message + next)
  }
  const { schema, signingKeys } = inspected
  if (signingKeys.length === 0)
    throw new Fault(
      'configuration',
      `The database ${JSON.stringify(config.databasePath)} is not initialized; run: latchkey init`,
    )
  return { schema, masterKeyFits: await isFittingMasterKey(config.masterKey, signingKeys), server: undefined }
}

async function inspect({ databasePath, databaseServer }: Config) {
  if (databaseServer === undefined) return refuseClosedDatabase(databasePath) ?? inspectDatabase(databasePath)
  const { inspectServerDatabase } = await import('../../db/remote/server-database.ts')
  return inspectServerDatabase({ ...databaseServer, send: connectTo(databaseServer) })
}

function describeDatabase({ schema, server }: DatabaseFacts, { databaseServer }: Config): string {
  const ofFile = server === undefined ? ', no server runs' : ', the running server reads it'
  const where = databaseServer === undefined ? ofFile : ''
  const upgrade = schema < latestSchema ? `; the next start migrates it to ${latestSchema}` : ''
  return `schema version ${schema}${where}${upgrade}`
}

function examineSocketPath(config: Config): string | undefined {
  const path = socketPathFor(config)
  if (path !== undefined) checkSocketPath(path)
  return path
}

function examineMasterKeyFile({ masterKey }: Config): string | undefined {
  if (masterKey.kind === 'value') return undefined
  const { path } = masterKey
  const read = readKeyFile(path)
  if (!('hex' in read)) throw keyFileFault(path, read)
  const mode = statSync(path).mode & 0o777
  if ((mode & 0o077) === 0) return path
  const shown = mode.toString(8).padStart(4, '0')
  throw new Fault(
    'configuration',
    `Other users can read the master key ${JSON.stringify(path)} (mode ${shown}); run: chmod 600 ${shellWord(path)}`,
  )
}

/** A running server uses the key that it was started with, so only that one can be tried. */
function examineMasterKey({ masterKey }: Config, found: DatabaseFacts | undefined): string | undefined {
  if (found === undefined) return undefined
  const { server, masterKeyFits } = found
  const file = masterKey.kind === 'file' ? masterKey.path : null
  if (server !== undefined && server.master_key_file !== file)
    throw new Fault(
      'configuration',
      'The running server and these settings have different master keys; use the same settings',
    )
  if (masterKeyFits) return 'it decrypts the signing keys'
  if (server === undefined && file !== null && !('hex' in readKeyFile(file))) return undefined
  throw new Fault(
    'configuration',
    'The master key does not decrypt the signing keys of this database; use the key that encrypted them, or see: latchkey help disaster',
  )
}

async function examinePort(
  address: ListenAddress,
  servedOn: string | null | undefined,
  setting: string,
): Promise<string> {
  const text = formatAddress(address)
  if (servedOn === text) return `${text} is used by the running server`
  const listener = await listen({ ...address, setting }, async () => new Response(null, { status: 503 }))
  await listener.drain()
  return `${text} is free`
}

function examineAdminPort(config: Config, found: DatabaseFacts | undefined): Promise<string> | undefined {
  if (!config.adminPage || config.adminListen === undefined) return undefined
  pageUrlFor(config, baseUrlFor(config, config.listen))
  return examinePort(config.adminListen, found?.server?.admin_listen, 'LATCHKEY_ADMIN_LISTEN')
}

function examineMetricsPort(
  { metricsListen }: Config,
  found: DatabaseFacts | undefined,
): Promise<string> | string | undefined {
  if (metricsListen === undefined) return undefined
  if (!('socketPath' in metricsListen))
    return examinePort(metricsListen, found?.server?.metrics_listen, 'LATCHKEY_METRICS_LISTEN')
  checkSocketPath(metricsListen.socketPath)
  return metricsListen.socketPath
}

function describePair({ subject, expiresAt }: { subject: string; expiresAt: number }): string {
  return `${subject}, valid until ${new Date(expiresAt).toISOString()}`
}

function examineArchiveFolder({ retention: { folder } }: Config): string | undefined {
  const problem = folder && folderProblem(folder)
  if (problem !== undefined) throw new Fault('configuration', problem)
  return folder
}

function examineAccessLog({ accessLog }: Config): string | undefined {
  if (accessLog === undefined) return undefined
  if (accessLog.kind === 'stderr') return 'standard error'
  const { path } = accessLog
  const folder = dirname(path)
  const cannot = (why: string) => new Fault('configuration', `LATCHKEY_ACCESS_LOG is ${JSON.stringify(path)}: ${why}`)
  if (!existsSync(folder)) throw cannot(`the folder ${JSON.stringify(folder)} does not exist; create it`)
  const denial = describeDenial(path, { toWrite: true })
  if (denial !== undefined) throw cannot(denial)
  if (existsSync(path) && !statSync(path).isFile()) throw cannot('it is not a regular file; name a file, or stderr')
  return path
}

function examineBackupFolder({ backup }: Config): string | undefined {
  if (backup === undefined) return undefined
  const { folder } = backup
  const denial = describeFolderDenial(folder)
  if (denial !== undefined)
    throw new Fault('configuration', `LATCHKEY_BACKUP_DIR is ${JSON.stringify(folder)}: ${denial}`)
  return folder
}
