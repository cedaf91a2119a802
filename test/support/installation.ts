// A Latchkey as an operator runs it: a data folder, settings, and child processes for commands and the server. The
// identity provider and the upstream run in the test's own process, where a test can delay them.
import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { OperationName } from '../../src/admin/operations.ts'
import { askServer } from '../../src/admin/transport/client.ts'
import { createEchoUpstream } from '../../src/dev/echo-upstream.ts'
import { createTestIssuer } from '../../src/dev/test-issuer.ts'
import type { Listener } from '../../src/runtime/listen.ts'
import type { Handler } from '../../src/runtime/listener.ts'
import { compiledProgram } from './compiled-program.ts'
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

export type Served = {
  serving: ServingProcess
  baseUrl: string
  socketPath: string
  /** Runs an admin operation over the socket. */
  ask: <Answer = Row>(name: OperationName, input?: object) => Promise<Answer>
}

export type Installation = {
  folder: string
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

let initialized: string | undefined

/** Copies a data folder created by `init`. One command serves every test in this process. */
function copyInitialized(folder: string): void {
  if (initialized === undefined) {
    const made = mkdtempSync(join(tmpdir(), 'lk-'))
    process.once('exit', () => rmSync(made, { recursive: true, force: true }))
    const env = { LATCHKEY_DATABASE_URL: `file:${join(made, 'latchkey.db')}` }
    const { exitCode, stderr } = Bun.spawnSync([...compiledProgram(), 'init'], { cwd: made, env })
    if (exitCode !== 0) throw new Error(stderr.toString())
    initialized = made
  }
  cpSync(initialized, folder, { recursive: true })
  chmodSync(folder, 0o700)
}

/** An initialized data folder without a server. */
export async function install(upstream: Handler = createEchoUpstream(upstreamApiKey)): Promise<Installation> {
  const folder = temporaryFolder()
  const databasePath = join(folder.path, 'data', 'latchkey.db')
  const listeners: Listener[] = []
  const start = async (handler: Handler) => {
    const { url, listener } = await listenLocally(handler)
    listeners.push(listener)
    return url
  }
  const env = {
    LATCHKEY_DATABASE_URL: `file:${databasePath}`,
    LATCHKEY_LISTEN: '127.0.0.1:0',
    LATCHKEY_BASE_URL: publicUrl,
    LATCHKEY_INSECURE_ISSUERS: 'true',
    LATCHKEY_RATE_LIMIT: '0',
    LATCHKEY_UPSTREAM_URL: `${await start(upstream)}/v1`,
    LATCHKEY_UPSTREAM_API_KEY: upstreamApiKey,
  }
  const run = (...args: string[]) => runCommand(args, { cwd: folder.path, env })
  copyInitialized(dirname(databasePath))
  return {
    folder: join(folder.path, 'data'),
    databasePath,
    env,
    run,
    serve: async (program, more = {}) =>
      toServed(await startServing(['serve'], { cwd: folder.path, env: { ...env, ...more }, program })),
    startIssuer: async (around = (issuer) => issuer) => {
      let url = ''
      url = await start(around(await createTestIssuer(() => url)))
      return url
    },
    remove: async () => {
      await Promise.all(listeners.map((listener) => listener.drain()))
      folder.remove()
    },
  }
}

function toServed(serving: ServingProcess): Served {
  const { listening, socket = '' } = serving.facts
  const ask = async <Answer = Row>(name: OperationName, input: object = {}): Promise<Answer> => {
    const answered = await askServer(socket, name, input)
    if (answered === undefined) throw new Error(`No server listens on ${socket}`)
    return answered.result as Answer
  }
  return { serving, baseUrl: `http://${listening}/v1`, socketPath: socket, ask }
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
