// What a start loads. It keeps the program small by structure, where a measured time would depend on the machine; `run bench start` measures.
import { afterAll, expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { createTestIssuer } from '../../scripts/dev/test-issuer.ts'
import { takeKeyPair } from '../support/key-pairs.ts'
import {
  audience,
  exchangeFields,
  fromSource,
  listenLocally,
  mintAt,
  runCommand,
  type ServingProcess,
  startServing,
  subject,
  temporaryFolder,
  upstreamApiKey,
} from '../support/latchkey.ts'
import { until } from '../support/until.ts'

const { path: cwd, remove } = temporaryFolder()
afterAll(remove)
const modulesFile = join(cwd, 'modules.txt')
const preload = ['--preload', join(import.meta.dirname, '../support/report-modules.ts')]
const program = [process.execPath, ...preload, ...fromSource.slice(1)]
const env = {
  LATCHKEY_UPSTREAM_API_KEY: upstreamApiKey,
  LATCHKEY_INSECURE_ISSUERS: 'true',
  LATCHKEY_LISTEN: '127.0.0.1:0',
  MODULES_FILE: modulesFile,
}

/** The packages that a process has loaded, and the rooms of src. */
async function loadedIn({ process: child }: ServingProcess): Promise<Set<string>> {
  rmSync(modulesFile, { force: true })
  child.kill('SIGUSR2')
  await until('the list of modules', () => existsSync(modulesFile))
  const paths = readFileSync(modulesFile, 'utf8').matchAll(
    /node_modules\/((?:@[^/]+\/)?[^/\n]+)|(src\/\w+|scripts\/dev)\//g,
  )
  return new Set(Array.from(paths, ([, name, room]) => name ?? room ?? ''))
}

const heavy = ['arktype', '@ark/schema', '@marcbachmann/cel-js', 'diff', 'string-width', 'scripts/dev']

async function configure(name: string, ...args: string[]) {
  const { code, stdout, stderr } = await runCommand([name, ...args, '--json'], { cwd, env })
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout) as Record<string, string>
}

test('what workloads and probes ask for loads no arktype, and no CEL without a condition; the first operation does', async () => {
  let issuerUrl = ''
  const issuer = await listenLocally(await createTestIssuer(() => issuerUrl, takeKeyPair))
  issuerUrl = issuer.url
  const upstream = await listenLocally(createEchoUpstream(upstreamApiKey))
  const { key: managementKey } = await configure('init')
  await configure('keys', 'create', '--name', 'app')
  await configure('issuers', 'add', '--name', 'idp', '--issuer-url', issuerUrl)
  const policy = ['--issuer', 'idp', '--audience', audience, '--key', 'app']
  const { id } = await configure('policies', 'create', '--name', 'plain', '--subject', subject, ...policy)
  const serving = await startServing(['serve', '--upstream-url', `${upstream.url}/v1`], { cwd, env, program })
  const { base_url: baseUrl = '' } = serving.facts
  const beside = baseUrl.replace('/v1', '')

  const statusOf = async (url: string, init?: RequestInit) => (await fetch(url, init)).status
  expect(await statusOf(`${beside}/livez`)).toBe(200)
  expect(await statusOf(`${beside}/readyz`)).toBe(200)
  expect(await statusOf(`${baseUrl}/oauth/jwks`)).toBe(200)
  expect(await statusOf(`${baseUrl}/metrics`, { headers: { authorization: `Bearer ${managementKey}` } })).toBe(200)
  const body = exchangeFields({ federation_policy_id: id, subject_token: await mintAt(issuerUrl) })
  const exchanged = await fetch(`${baseUrl}/oauth/token`, { method: 'POST', body })
  expect(exchanged.status).toBe(200)
  const { access_token } = (await exchanged.json()) as { access_token: string }
  const headers = { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' }
  const call = {
    method: 'POST',
    headers,
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] }),
  }
  expect(await statusOf(`${baseUrl}/chat/completions`, call)).toBe(200)

  const before = await loadedIn(serving)
  expect(before).toContain('@libsql/client')
  expect(heavy.filter((name) => before.has(name))).toEqual([])

  const condition = ['--condition', `subject == "${subject}"`]
  await configure('policies', 'create', '--name', 'conditional', ...condition, ...policy)
  const after = await loadedIn(serving)
  expect(heavy.filter((name) => after.has(name))).toEqual(['arktype', '@ark/schema', '@marcbachmann/cel-js'])
  await serving.stop()
  await Promise.all([issuer.listener.drain(), upstream.listener.drain()])
}, 30_000)
