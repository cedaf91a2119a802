// A Latchkey as an operator runs it: a data folder, settings, and child processes for commands and the server. The
// identity provider and the upstream run in the test's own process, where a test can delay them.
import { chmodSync, cpSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { createTestIssuer } from '../../scripts/dev/test-issuer.ts'
import { dependencies } from '../../scripts/shared/command-line.ts'
import { runInProcess } from '../../scripts/shared/in-process.ts'
import type { OperationName } from '../../src/admin/operations.ts'
import { askServer } from '../../src/admin/transport/client.ts'
import { readLocalUser } from '../../src/admin/transport/local-user.ts'
import { Fault, tellForCommands } from '../../src/fault.ts'
import type { Listener } from '../../src/runtime/listen.ts'
import type { Handler } from '../../src/runtime/listener.ts'
import { loadConfig } from '../../src/settings/config.ts'
import { atEnd } from './at-end.ts'
import { takeKeyPair } from './key-pairs.ts'
import {
  audience,
  type Finished,
  listenLocally,
  mintAt,
  type Row,
  runCommand,
  type ServingProcess,
  startServing,
  subject,
  temporaryFolder,
  upstreamApiKey,
} from './latchkey.ts'
import { type ServerKind, serverKindFor } from './server-kind.ts'

export type Served = {
  serving: ServingProcess
  baseUrl: string
  /** Empty on a server database. */
  socketPath: string
  /** Runs an admin operation as a command does: over the socket, or on the server database. */
  ask: <Answer = Row>(name: OperationName, input?: object) => Promise<Answer>
}

export type Installation = {
  folder: string
  /** The URL of a server database. */
  databasePath: string
  env: Record<string, string>
  run: (...args: string[]) => Promise<Finished>
  /** Uses the compiled program, or another one. `more` is added to its environment. */
  serve: (program?: string[], more?: Record<string, string>) => Promise<Served>
  /** Starts an identity provider, which `around` can delay. */
  startIssuer: (around?: (issuer: Handler) => Handler) => Promise<string>
  remove: () => Promise<void>
}

/** Stays the same across restarts, unlike the port, so that tokens stay valid. */
export const publicUrl = 'http://latchkey.example/v1'

const masterKeyFile = 'master.key'

/** The settings of a data folder and its database. */
function settingsOf(data: string, server: ServerKind | undefined): Record<string, string> {
  if (server === undefined) return { LATCHKEY_DATABASE_URL: `file:${join(data, 'latchkey.db')}` }
  const { LATCHKEY_DATABASE_URL } = server.settings
  return { LATCHKEY_DATABASE_URL, LATCHKEY_MASTER_KEY_FILE: join(data, masterKeyFile) }
}

async function initialize(data: string, server: ServerKind | undefined): Promise<void> {
  const { code, stderr } = await runCommand(['init'], { cwd: dirname(data), env: settingsOf(data, server) })
  if (code !== 0) throw new Error(stderr)
}

let made: Promise<string> | undefined

/** A folder with what `init` creates. One command serves all tests until the end (at-end.ts). */
async function makeInitialized(): Promise<string> {
  const { path, remove } = temporaryFolder()
  atEnd(() => {
    made = undefined
    remove()
  })
  const server = await serverKindFor(path)
  await initialize(join(path, 'data'), server)
  await server?.close()
  return path
}

/** Creates an initialized database, and the server that holds it. */
async function createInitialized(folder: string): Promise<ServerKind | undefined> {
  const data = join(folder, 'data')
  made ??= makeInitialized()
  const from = await made
  cpSync(join(from, 'data'), data, { recursive: true })
  chmodSync(data, 0o700)
  return serverKindFor(folder, join(from, 'server.db'))
}

/** An initialized data folder without a server. */
export async function install(upstream: Handler = createEchoUpstream(upstreamApiKey)): Promise<Installation> {
  const folder = temporaryFolder()
  const data = join(folder.path, 'data')
  const server = await createInitialized(folder.path)
  const databasePath = server?.settings.LATCHKEY_DATABASE_URL ?? join(data, 'latchkey.db')
  const listeners: Listener[] = []
  const start = async (handler: Handler) => {
    const { url, listener } = await listenLocally(handler)
    listeners.push(listener)
    return url
  }
  const env = {
    ...settingsOf(data, server),
    LATCHKEY_LISTEN: '127.0.0.1:0',
    LATCHKEY_BASE_URL: publicUrl,
    LATCHKEY_INSECURE_ISSUERS: 'true',
    LATCHKEY_RATE_LIMIT: '0',
    LATCHKEY_UPSTREAM_URL: `${await start(upstream)}/v1`,
    LATCHKEY_UPSTREAM_API_KEY: upstreamApiKey,
  }
  const run = (...args: string[]) => runCommand(args, { cwd: folder.path, env })
  return {
    folder: data,
    databasePath,
    env,
    run,
    serve: async (program, more = {}) => {
      const given = { ...env, ...more }
      return toServed(await startServing(['serve'], { cwd: folder.path, env: given, program }), given)
    },
    startIssuer: async (around = (issuer) => issuer) => {
      let url = ''
      url = await start(around(await createTestIssuer(() => url, takeKeyPair)))
      return url
    },
    remove: async () => {
      await Promise.all([...listeners.map((listener) => listener.drain()), server?.close()])
      folder.remove()
    },
  }
}

/** Copies the data folder and the database of an installation whose processes write nothing. Returns the settings of the copy. */
export async function copyInstallation(
  { folder, databasePath, env }: Pick<Installation, 'folder' | 'databasePath' | 'env'>,
  to: string,
) {
  cpSync(folder, to, { recursive: true })
  const server = await serverKindFor(to, databasePath)
  const settings: Record<string, string> = { ...env, ...settingsOf(to, server) }
  return {
    env: settings,
    databasePath: server?.settings.LATCHKEY_DATABASE_URL ?? join(to, 'latchkey.db'),
    close: async () => server?.close(),
  }
}

function toServed(serving: ServingProcess, env: Record<string, string>): Served {
  const { listening } = serving.facts
  const socket = serving.facts.socket ?? ''
  const run = async (name: OperationName, input: object): Promise<unknown> => {
    if (socket === '') return runOnServer(env, name, input)
    const answered = await askServer(socket, name, input)
    if (answered === undefined) throw Object.assign(new Error(`No server on ${socket}`), { code: 'ECONNREFUSED' })
    return answered.result
  }
  const ask = async <Answer = Row>(name: OperationName, input: object = {}) => (await run(name, input)) as Answer
  return { serving, baseUrl: `http://${listening}/v1`, socketPath: socket, ask }
}

/** Commands talk to a server database directly, and print a fault with its hint. */
async function runOnServer(env: Record<string, string>, name: OperationName, input: object): Promise<unknown> {
  const config = loadConfig({ flags: {}, environment: env })
  const call = { name, input, user: readLocalUser(process.env) }
  try {
    return await runInProcess(config, { ...dependencies, log: () => {} }, call, async () => undefined)
  } catch (error) {
    throw error instanceof Fault ? new Fault(error.code, tellForCommands(error)) : error
  }
}

export type Trust = { policyId: string; apiKey: string; subjectToken: string }

/** Creates a key `target`, an issuer `idp` and a policy `steady`, in the default organization or a new one. */
export async function trust({ ask }: Served, issuerUrl: string, organization = 'default'): Promise<Trust> {
  if (organization !== 'default') await ask('organizations.create', { name: organization })
  const { key } = await ask<Row & { key: string }>('keys.create', { organization, name: 'target' })
  await ask('issuers.add', { organization, name: 'idp', issuer_url: issuerUrl })
  const names = { organization, name: 'steady', issuer: 'idp', key: 'target' }
  const { id } = await ask('policies.create', { ...names, audience, subject })
  return { policyId: id, apiKey: key, subjectToken: await mintAt(issuerUrl) }
}
