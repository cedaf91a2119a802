// A Latchkey for tests: in this process, on a free port with its own folder, or as a child process like a user runs it.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { createTestIssuer } from '../../scripts/dev/test-issuer.ts'
import type { OperationName } from '../../src/admin/operations.ts'
import { accessTokenType, jwtTokenType, tokenExchangeGrant } from '../../src/federation/grants.ts'
import { createLog } from '../../src/observe/log.ts'
import { type Listener, listen } from '../../src/runtime/listen.ts'
import type { Handler } from '../../src/runtime/listener.ts'
import { outboundFetch, resolveHost } from '../../src/runtime/outbound.ts'
import type { Dependencies } from '../../src/server/context.ts'
import { type Server, type StartOptions, startServer } from '../../src/server/server.ts'
import { type Config, loadConfig } from '../../src/settings/config.ts'
import { atEnd } from './at-end.ts'
import { createJitter } from './chance.ts'
import { compiledProgram } from './compiled-program.ts'
import { takeKeyPair } from './key-pairs.ts'
import { writeMigratedFile } from './migrated-file.ts'
import { serverKindFor } from './server-kind.ts'

export type Row = Record<string, unknown> & { id: string }
export const audience = 'latchkey-tests'
export const subject = 'workload-1'
export const upstreamApiKey = 'upstream-secret'

/** Creates a new folder for a test. */
export function temporaryFolder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'lk-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

export async function listenLocally(handler: Handler): Promise<{ url: string; listener: Listener }> {
  const listener = await listen({ hostname: '127.0.0.1', port: 0 }, handler)
  return { url: `http://127.0.0.1:${listener.port}`, listener }
}

export type TestServer = {
  server: Server
  config: Config
  folder: string
  logLines: string[]
  /** Runs an admin operation in the server. */
  admin: <Answer = Row>(name: OperationName, input?: Record<string, unknown>) => Promise<Answer>
  stop: () => Promise<void>
}

export type TestServerOptions = {
  upstreamUrl?: string
  settings?: Partial<Record<string, string>>
  dependencies?: Partial<Dependencies>
  start?: StartOptions
}

/**
 * An initialized server that trusts http issuers on this machine. `dependencies` replaces fetch or the clocks (both by
 * `now`).
 */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const { path: folder, remove } = temporaryFolder()
  const serverKind = options.settings?.LATCHKEY_DATABASE_URL === undefined ? await serverKindFor(folder) : undefined
  const config = loadConfig({
    flags: {
      LATCHKEY_DATABASE_URL: `file:${join(folder, 'latchkey.db')}`,
      LATCHKEY_LISTEN: '127.0.0.1:0',
      LATCHKEY_INSECURE_ISSUERS: 'true',
      LATCHKEY_RATE_LIMIT: '0',
      LATCHKEY_UPSTREAM_URL: options.upstreamUrl,
      LATCHKEY_UPSTREAM_API_KEY: upstreamApiKey,
      ...serverKind?.settings,
      ...options.settings,
    },
    environment: {},
  })
  const hasOwnFile = serverKind === undefined && options.settings?.LATCHKEY_DATABASE_URL === undefined
  if (hasOwnFile) await writeMigratedFile(config.databasePath)
  const logLines: string[] = []
  const dependencies: Dependencies = {
    now: Date.now,
    monotonic: options.dependencies?.now ?? (() => performance.now()),
    random: createJitter(),
    fetch: outboundFetch,
    resolve: resolveHost,
    usesProxy: false,
    log: createLog((line) => logLines.push(line)),
    onBroken: (error) => {
      throw error
    },
    ...options.dependencies,
  }
  const server = await startServer(config, dependencies, {
    create: true,
    prepare: (run) => run('init', {}),
    ...options.start,
  })
  return {
    server,
    config,
    folder,
    logLines,
    admin: async <Answer>(name: OperationName, input = {}) => (await server.runByName(name, input)) as Answer,
    stop: async () => {
      await server.stop()
      await serverKind?.close()
      remove()
    },
  }
}

export type Federation = TestServer & {
  issuerUrl: string
  upstreamUrl: string
  key: Row & { key: string }
  issuer: Row
  policy: Row
  /** A token of the test issuer. `claims` replaces valid claims; undefined removes one. */
  mint: (claims?: Record<string, unknown>, algorithm?: 'RS256' | 'ES256') => Promise<string>
  /** Posts an exchange with valid fields. `fields` replaces them; undefined removes one. */
  exchange: (subjectToken: string, fields?: Record<string, string | undefined>) => Promise<Response>
}

/** A server with a test issuer, an echo upstream, and a key, issuer and policy that accept `mint()`. */
export async function startFederation(options: TestServerOptions = {}): Promise<Federation> {
  let issuerUrl = ''
  const { url, listener: issuerListener } = await listenLocally(await createTestIssuer(() => issuerUrl, takeKeyPair))
  issuerUrl = url
  const upstream = await listenLocally(createEchoUpstream(upstreamApiKey))
  const upstreamUrl = options.upstreamUrl ?? `${upstream.url}/v1`
  const test = await startTestServer({ ...options, upstreamUrl })
  const key = await test.admin<Row & { key: string }>('keys.create', { name: 'target' })
  const issuer = await test.admin('issuers.add', { name: 'idp', issuer_url: issuerUrl })
  const policy = await test.admin('policies.create', {
    name: 'policy',
    issuer: 'idp',
    key: 'target',
    audience,
    subject,
  })
  return {
    ...test,
    issuerUrl,
    upstreamUrl,
    key,
    issuer,
    policy,
    mint: (claims = {}, algorithm = 'RS256') => mintAt(issuerUrl, claims, algorithm),
    exchange: (subjectToken, fields = {}) =>
      postExchange(test.server.baseUrl, { federation_policy_id: policy.id, subject_token: subjectToken, ...fields }),
    stop: async () => {
      await test.stop()
      await Promise.all([issuerListener.drain(), upstream.listener.drain()])
    },
  }
}

export async function mintAt(
  issuerUrl: string,
  claims: Record<string, unknown> = {},
  algorithm = 'RS256',
): Promise<string> {
  const good = { sub: subject, aud: audience }
  const response = await fetch(`${issuerUrl}/mint?alg=${algorithm}`, {
    method: 'POST',
    body: JSON.stringify({ ...good, ...claims }),
  })
  if (!response.ok) throw new Error(await response.text())
  return response.text()
}

export function exchangeFields(fields: Record<string, string | undefined>): URLSearchParams {
  const good = {
    grant_type: tokenExchangeGrant,
    subject_token_type: jwtTokenType,
    requested_token_type: accessTokenType,
    scope: 'inference',
  }
  const given = Object.entries({ ...good, ...fields }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  )
  return new URLSearchParams(given)
}

export function postExchange(baseUrl: string, fields: Record<string, string | undefined>): Promise<Response> {
  return fetch(`${baseUrl}/oauth/token`, { method: 'POST', body: exchangeFields(fields) })
}

export type Finished = { code: number; stdout: string; stderr: string }

/** The program from source, for tests that change its runtime, such as by a preload. Others run the compiled one. */
export const fromSource = [process.execPath, join(import.meta.dirname, '../../src/main.ts')]

/**
 * Lets the runtime of a process interpret code for longer before it compiles it. A short process compiles code that it
 * then does not run again, which takes a third of its processor time. Benches measure the runtime as users run it.
 */
export const briefRuntime: Record<string, string> =
  process.env.NODE_ENV === 'test'
    ? {
        BUN_JSC_thresholdForJITAfterWarmUp: '5000',
        BUN_JSC_thresholdForOptimizeAfterWarmUp: '10000',
        BUN_JSC_thresholdForOptimizeAfterLongWarmUp: '10000',
      }
    : {}

/** Runs a command in `cwd` until it ends, with only `env` and the runtime's options in its environment. */
export async function runCommand(
  args: string[],
  { cwd, env = {}, program = compiledProgram() }: { cwd: string; env?: Record<string, string>; program?: string[] },
): Promise<Finished> {
  const child = Bun.spawn([...program, ...args], {
    cwd,
    env: { ...briefRuntime, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, stdout, stderr }
}

export type ServingProcess = {
  process: Bun.Subprocess
  facts: Record<string, string>
  stderr: () => string
  stop: (signal?: NodeJS.Signals) => Promise<number>
}

let outputFolder: string | undefined
let outputs = 0

/** A file for what a process writes. Through a pipe, now and then nothing arrives at a test that has run a server itself. */
function newOutputPath(): string {
  if (outputFolder === undefined) {
    const { path, remove } = temporaryFolder()
    outputFolder = path
    atEnd(() => {
      outputFolder = undefined
      remove()
    })
  }
  outputs += 1
  return join(outputFolder, `${outputs}.log`)
}

/** Starts `serve` or `dev` as a child process and waits for the JSON line with its address. */
export async function startServing(
  args: string[],
  { cwd, env = {}, program = compiledProgram() }: { cwd: string; env?: Record<string, string>; program?: string[] },
): Promise<ServingProcess> {
  const errors = Bun.file(newOutputPath())
  const child = Bun.spawn([...program, ...args, '--json'], {
    cwd,
    env: { ...briefRuntime, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: errors,
  })
  const stderr = () => readFileSync(errors.name ?? '', 'utf8')
  let stdout = ''
  for await (const chunk of child.stdout) {
    stdout += Buffer.from(chunk).toString()
    if (stdout.includes('\n')) break
  }
  if (!stdout.includes('\n')) throw new Error(`It did not start: exit code ${await child.exited}, ${stderr()}`)
  const stop = (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    return child.exited
  }
  return {
    process: child,
    facts: JSON.parse(stdout) as Record<string, string>,
    stderr,
    stop,
  }
}
