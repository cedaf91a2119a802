// The compiled file alone in an empty folder with an empty environment: the whole main job, by commands and over HTTP.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrations } from '../../db/schema/migrate.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { createTestIssuer } from '../../scripts/dev/test-issuer.ts'
import { loadProgram } from '../../scripts/latchkey.ts'
import type { Listener } from '../../src/runtime/listen.ts'
import { compiledProgram } from '../support/compiled-program.ts'
import { takeKeyPair } from '../support/key-pairs.ts'
import {
  audience,
  listenLocally,
  mintAt,
  postExchange,
  type Row,
  runCommand,
  type ServingProcess,
  startServing,
  subject,
  temporaryFolder,
  upstreamApiKey,
} from '../support/latchkey.ts'
import { hasPageFiles } from '../support/page-files.ts'

const folder = temporaryFolder()
const cwd = join(folder.path, 'empty')
const program = [join(folder.path, 'latchkey')]
const listeners: Listener[] = []
let issuerUrl = ''
let upstreamUrl = ''
let serving: ServingProcess | undefined

const run = (args: string[], env: Record<string, string> = {}) => runCommand(args, { cwd, env, program })

async function json<Answer = Row>(...args: string[]): Promise<Answer> {
  const { code, stdout, stderr } = await run([...args, '--json'], { LATCHKEY_INSECURE_ISSUERS: 'true' })
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
  return JSON.parse(stdout) as Answer
}

async function locally(handler: Parameters<typeof listenLocally>[0]): Promise<string> {
  const { url, listener } = await listenLocally(handler)
  listeners.push(listener)
  return url
}

const root = join(import.meta.dirname, '../..')

function build(outfile: string, source: string) {
  return runCommand(['--outfile', outfile], {
    cwd: folder.path,
    env: { PATH: process.env.PATH ?? '', HOME: folder.path },
    program: [process.execPath, join(source, 'scripts/build/build.ts')],
  })
}

/** The packages of tests and checks are no part of the program. */
const unused = ['.cache', '@deno', '@biomejs', '@typescript', ...Object.keys(packageJson.devDependencies)].filter(
  // The build takes the texts of licenses from it.
  (name) => name !== 'spdx-license-list',
)
const unusedPaths = new Set(unused.map((name) => join(root, 'node_modules', name)))

/** Copies the files that make the program to a folder without a history. */
function copySource(to: string): void {
  for (const name of ['package.json', 'bun.lock', 'tsconfig.json', 'src', 'db', 'scripts', 'node_modules'])
    cpSync(join(root, name), join(to, name), {
      recursive: true,
      filter: (path) => !unusedPaths.has(path),
    })
}

beforeAll(async () => {
  const [built = ''] = compiledProgram()
  cpSync(built, program[0] ?? '')
  mkdirSync(cwd)
  issuerUrl = await locally(await createTestIssuer(() => issuerUrl, takeKeyPair))
  upstreamUrl = `${await locally(createEchoUpstream(upstreamApiKey))}/v1`
}, 120_000)

afterAll(async () => {
  await serving?.stop()
  await Promise.all(listeners.map((listener) => listener.drain()))
  folder.remove()
})

test('the binary reports its version and teaches', async () => {
  expect((await run(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  const help = await run(['policies', 'create', '--help'])
  expect([help.code, help.stderr]).toEqual([0, ''])
  expect(help.stdout).toContain('Examples:\n  $ latchkey policies create')
})

test('the binary lists all commands as the commands describe themselves', async () => {
  const helpOfAll = (await loadProgram(['help'])).helpInformation()
  const commandsOf = (text: string) => /\nCommands:\n([\s\S]*?)(?:\n\n|\n*$)/.exec(text)?.[1]?.split(/\s+/)
  for (const words of [['--help'], ['-h'], ['help']])
    expect(commandsOf((await run(words)).stdout), words.join(' ')).toEqual(commandsOf(helpOfAll))
})

test('the binary names the commit it was made of, its Bun and its schema', async () => {
  const git = (...args: string[]) =>
    Bun.spawnSync(['git', ...args], { cwd: import.meta.dirname })
      .stdout.toString()
      .trim()
  const commit = git('rev-parse', 'HEAD') || 'unknown'
  const shown = await json<Record<string, unknown>>('version')
  expect(shown).toEqual({
    version: packageJson.version,
    commit: expect.stringMatching(new RegExp(`^${commit}(-modified)?$`)),
    bun: Bun.version,
    schema: migrations.at(-1)?.version,
  })
  expect(JSON.parse((await run(['-v', '--json'])).stdout)).toEqual(shown)
})

test('builds of the same files in two folders give the same bytes, and name neither folder', async () => {
  const built = await Promise.all(
    ['one', 'a-folder-with-a-longer-name'].map(async (name) => {
      const source = join(folder.path, name)
      copySource(source)
      const { code, stderr } = await build(join(source, 'dist/latchkey'), source)
      expect(code, stderr).toBe(0)
      return readFileSync(join(source, 'dist/latchkey'))
    }),
  )
  const [one, other] = built.map((bytes) => Bun.CryptoHasher.hash('sha256', bytes, 'hex'))
  expect(other).toBe(one)
  expect(built[0]?.includes(folder.path)).toBe(false)
  expect(readFileSync(program[0] ?? '').includes(root)).toBe(false)
}, 120_000)

test('the binary lists its contents and their licenses', async () => {
  const sbom = JSON.parse((await run(['version', '--sbom'])).stdout) as { components: { name: string }[] }
  expect(sbom.components.map(({ name }) => name)).toContain('jose')
  const { stdout } = await run(['version', '--licenses'])
  for (const { name } of sbom.components) expect(stdout).toContain(`\n${name} `)
})

test('a command before init says what to do and leaves the folder empty', async () => {
  const { code, stderr } = await run(['keys', 'list'])
  expect(code).toBe(3)
  expect(stderr).toContain('run: latchkey init')
  expect(readdirSync(cwd)).toEqual([])
})

test('a temporary folder that cannot hold the native part is reported in a sentence', async () => {
  const { code, stderr } = await run(['keys', 'list'], { TMPDIR: join(cwd, 'absent') })
  expect(code).toBe(3)
  expect(stderr).toContain('set TMPDIR')
})

test('the binary does the whole main job', async () => {
  const { key: managementKey } = await json<{ key: string }>('init')
  expect(managementKey).toMatch(/^sk-lk-v1-[0-9a-f]{64}$/)
  await json('keys', 'create', '--name', 'app')
  await json('issuers', 'add', '--name', 'idp', '--issuer-url', issuerUrl)
  const policy = await json(
    'policies',
    'create',
    '--name',
    'app',
    '--issuer',
    'idp',
    '--audience',
    audience,
    '--subject',
    subject,
    '--key',
    'app',
    '--condition',
    'claims.environment == "production"',
  )

  const env = { LATCHKEY_INSECURE_ISSUERS: 'true', LATCHKEY_UPSTREAM_API_KEY: upstreamApiKey }
  serving = await startServing(['serve', '--listen', '127.0.0.1:0', '--upstream-url', upstreamUrl], {
    cwd,
    env,
    program,
  })
  const baseUrl = serving.facts.base_url ?? ''
  const subjectToken = await mintAt(issuerUrl, { environment: 'production' }, 'ES256')
  const exchanged = await postExchange(baseUrl, { federation_policy_id: policy.id, subject_token: subjectToken })
  expect(exchanged.status).toBe(200)
  const { access_token } = (await exchanged.json()) as { access_token: string }

  const preset = { model: 'echo', messages: [{ role: 'system', content: 'Be brief' }] }
  writeFileSync(join(cwd, 'body.json'), JSON.stringify(preset))
  for (const _ of [1, 2]) await json('presets', 'save', 'brief', 'body.json')
  expect((await run(['presets', 'diff', 'brief@1', 'brief@2'])).stdout).toContain('are identical')
  rmSync(join(cwd, 'body.json'))

  for (const [stream, model] of [
    [false, 'echo'],
    [true, '@preset/brief@1'],
  ]) {
    const called = await fetch(`${baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'from the binary' }] }),
    })
    expect(called.status).toBe(200)
    expect(await called.text()).toContain(stream ? 'data: [DONE]' : 'from the binary')
  }
  expect((await run(['keys', 'list'])).stdout).toMatch(/^NAME +KIND +STATE/)
  const { data } = await json<{ data: Record<string, unknown>[] }>('usage')
  expect(data).toMatchObject([{ key_name: 'app', requests: 2 }])
  const { data: requests } = await json<{ data: Record<string, unknown>[] }>('usage', '--requests')
  expect(requests.map((row) => row.preset_version)).toEqual(['brief@1', null])

  writeFileSync(join(cwd, 'token.jwt'), subjectToken)
  const checked = await json<{ data: object[] }>('policies', 'check', '--token-file', 'token.jwt', '--policy', 'app')
  expect(checked.data).toMatchObject([{ policy_name: 'app', accepted: true }])
  rmSync(join(cwd, 'token.jwt'))
  await json('signing-keys', 'rotate', '--at-once')
  const { keys } = (await (await fetch(`${baseUrl}/oauth/jwks`)).json()) as { keys: unknown[] }
  expect(keys).toHaveLength(2)
  await hasPageFiles(baseUrl.replace(/v1$/, 'admin/'))

  await json('policies', 'disable', 'app')
  const refused = await postExchange(baseUrl, { federation_policy_id: policy.id, subject_token: subjectToken })
  expect(await refused.json()).toMatchObject({ error: 'invalid_grant' })
  const audit = await json<{ data: Record<string, unknown>[] }>('audit')
  expect(audit.data.map((row) => row.reason)).toEqual(['policy_paused', null])

  writeFileSync(join(cwd, 'latchkey.yaml'), (await run(['config', 'example', 'github'])).stdout)
  expect(await json('config', 'apply', 'latchkey.yaml')).toMatchObject({ counts: { create: 4 } })
  expect(await run(['config', 'plan', 'latchkey.yaml', '--check'])).toMatchObject({ code: 0, stdout: 'No changes\n' })
  rmSync(join(cwd, 'latchkey.yaml'))

  expect(await serving.stop()).toBe(0)
  expect(readdirSync(cwd)).toEqual(['latchkey-data'])
  expect(readdirSync(join(cwd, 'latchkey-data')).filter((name) => name.endsWith('.sock'))).toEqual([])
})

test('dev in the binary shows a policy that exchanges', async () => {
  const dev = await startServing(['dev', '--listen', '127.0.0.1:0'], { cwd, program })
  const { base_url: baseUrl = '', issuer_url: devIssuer = '', policy_id } = dev.facts
  const subjectToken = await mintAt(devIssuer, { sub: 'my-workload', aud: 'latchkey' })
  const exchanged = await postExchange(baseUrl, { federation_policy_id: policy_id, subject_token: subjectToken })
  expect(await exchanged.json()).toMatchObject({ token_type: 'Bearer', expires_in: 900 })
  expect(await dev.stop()).toBe(0)
})
