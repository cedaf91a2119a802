// The commands around inference: upstreams, prices and usage, for people, as JSON and as CSV.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { createCommandRunner } from '../support/command-runner.ts'
import {
  listenLocally,
  type ServingProcess,
  startServing,
  temporaryFolder,
  upstreamApiKey,
} from '../support/latchkey.ts'

const folder = temporaryFolder()
const { run, json, failure } = createCommandRunner(folder.path)
let upstream: Awaited<ReturnType<typeof listenLocally>>
let serving: ServingProcess
let key: string
beforeAll(async () => {
  upstream = await listenLocally(createEchoUpstream(upstreamApiKey))
  await json('init')
  key = String((await json('keys', 'create', '--name', '=app')).key)
  const env = { LATCHKEY_DATABASE_URL: `file:${folder.path}/latchkey.db`, LATCHKEY_LISTEN: '127.0.0.1:0' }
  serving = await startServing(['serve'], { cwd: folder.path, env })
})
afterAll(async () => {
  await serving.stop()
  await upstream.listener.drain()
  folder.remove()
})

const ask = (model: string) =>
  fetch(`${serving.facts.base_url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'two words' }] }),
  })

test('an upstream is added, checked, put right and used at once', async () => {
  expect((await ask('echo')).status).toBe(503)
  const added = await json(
    'upstreams',
    'add',
    '--name',
    'echo',
    '--inference-url',
    `${upstream.url}/v1`,
    '--models',
    'echo',
    'e*',
  )
  expect(added).toMatchObject({ name: 'echo', has_credential: false, models: ['echo', 'e*'], priority: 100 })
  const checked = await run('upstreams', 'check')
  expect([checked.code, checked.stdout]).toEqual([1, expect.stringMatching(/✗ +echo .*401: check its credential/)])
  expect((await ask('echo')).status).toBe(502)

  writeFileSync(join(folder.path, 'credential'), `${upstreamApiKey}\n`)
  expect(await json('upstreams', 'update', 'echo', '--credential-file', 'credential')).toMatchObject({
    has_credential: true,
  })
  expect((await run('upstreams', 'check', 'echo')).code).toBe(0)
  expect((await ask('echo')).status).toBe(200)
  expect((await ask('other')).status).toBe(404)
  expect(await failure('upstreams', 'add', '--name', 'echo', '--inference-url', 'http://x')).toMatchObject({ code: 1 })
  expect(await failure('upstreams', 'add', '--name', 'x', '--inference-url', 'ftp://x')).toMatchObject({ code: 2 })
})

test('an upstream is shown as it was added', async () => {
  expect(await json('upstreams', 'show', 'echo')).toMatchObject({ name: 'echo', base_url: `${upstream.url}/v1` })
  expect((await run('upstreams', 'show', 'echo')).stdout).toMatch(/credential +set/)
  expect(await failure('upstreams', 'show', 'none')).toMatchObject({
    code: 1,
    error: { message: 'There is no upstream "none"; see: latchkey upstreams list' },
  })
})

test('headers that pass are named for one upstream, changed and taken back', async () => {
  const address = ['--name', 'gateway', '--inference-url', `${upstream.url}/v1`, '--models', 'none']
  const headers = ['--forward-header', 'HTTP-Referer', 'X-Title', '--return-header', 'X-Inference-Time']
  expect(await json('upstreams', 'add', ...address, ...headers)).toMatchObject({
    forward_headers: ['http-referer', 'x-title'],
    return_headers: ['x-inference-time'],
  })
  const { stdout } = await run('upstreams', 'update', 'gateway', '--no-return-header', '--priority', '3')
  expect(stdout).toMatch(/extra request headers +http-referer x-title\n *extra response headers +none/)
  expect(await failure('upstreams', 'update', 'gateway', '--forward-header', 'Cookie')).toMatchObject({
    code: 2,
    error: { message: '"Cookie" can never be forwarded: it may carry a credential; leave it out' },
  })
  expect(await json('upstreams', 'update', 'gateway', '--no-forward-header')).toMatchObject({ forward_headers: [] })
  expect(await json('upstreams', 'show', 'echo')).toMatchObject({ forward_headers: [], return_headers: [] })
  await json('upstreams', 'delete', 'gateway')
})

test('a credential is exchanged for the token in a file, until it is removed', async () => {
  const address = ['--name', 'east', '--inference-url', 'https://east.example/v1', '--models', 'none']
  const exchange = ['--credential', 'exchange:token', '--exchange-policy', 'policy']
  expect(await json('upstreams', 'add', ...address, ...exchange)).toMatchObject({
    has_credential: true,
    credential_exchange: { token_file: join(folder.path, 'token'), policy: 'policy', url: null },
  })
  const { stdout } = await run('upstreams', 'show', 'east')
  expect(stdout).toMatch(
    /credential +exchanged at https:\/\/east\.example\/v1\/oauth\/token for the token in .*\/token\n/,
  )
  const alone = await failure('upstreams', 'update', 'east', '--exchange-scope', 'inference')
  expect(alone).toMatchObject({ code: 2, error: { message: expect.stringContaining('--credential exchange:FILE') } })
  expect(await json('upstreams', 'update', 'east', '--no-credential')).toMatchObject({ credential_exchange: null })
  await json('upstreams', 'delete', 'east')
})

test('a credential that is exchanged is added before any server runs', async () => {
  const alone = temporaryFolder()
  const before = createCommandRunner(alone.path)
  await before.json('init')
  const address = ['--name', 'east', '--inference-url', 'https://east.example/v1', '--credential', 'exchange:token']
  const token = { token_file: join(alone.path, 'token'), url: null, policy: null, audience: null, scope: null }
  expect(await before.json('upstreams', 'add', ...address)).toMatchObject({ credential_exchange: token })
  alone.remove()
})

test('prices are set, imported whole or not at all, and count from the next request on', async () => {
  expect(await json('prices', 'set', 'e*', '--prompt', '500000', '--completion', '1000000')).toMatchObject({
    data: [{ model: 'e*', prompt: 500_000, completion: 1_000_000, cached: null }],
  })
  writeFileSync(
    join(folder.path, 'prices.json'),
    JSON.stringify([{ model: 'a', prompt: 1, completion: 1 }, { model: 'b' }]),
  )
  expect(await failure('prices', 'import', 'prices.json')).toMatchObject({ code: 2 })
  expect((await json('prices', 'list')).data).toHaveLength(1)
  await (await ask('echo')).text()
  const { data } = (await json('usage', '--by', 'model')) as { data: Record<string, unknown>[] }
  expect(data).toContainEqual(
    expect.objectContaining({ model: 'echo', requests: 3, cost: 3, requests_without_cost: 1 }),
  )
})

test('a key is bound and unbound by command', async () => {
  const bounds = [
    '--budget',
    '2.5',
    '--budget-reset',
    'weekly',
    '--allowed-models',
    'a',
    'b*',
    '--requests-per-minute',
    '9',
  ]
  const made = await json('keys', 'create', '--name', 'bound', ...bounds, '--expires-at', '2999-01-01')
  const told = { limit: 2.5, limit_remaining: 2.5, limit_reset: 'weekly', allowed_models: ['a', 'b*'] }
  expect(made).toMatchObject({ ...told, requests_per_minute: 9, expires_at: '2999-01-01T00:00:00.000Z' })
  const shown = await run('keys', 'show', 'bound')
  expect(shown.stdout).toMatch(/^limit +2\.50 USD weekly, 2\.50 left$/m)
  const none = [
    '--no-budget',
    '--no-budget-reset',
    '--no-allowed-models',
    '--no-requests-per-minute',
    '--no-expires-at',
  ]
  expect(await json('keys', 'update', 'bound', ...none, '--tokens-per-minute', '100')).toMatchObject({
    limit: null,
    limit_reset: null,
    allowed_models: null,
    requests_per_minute: null,
    tokens_per_minute: 100,
    expires_at: null,
  })
  expect(await failure('keys', 'update', 'bound')).toMatchObject({ code: 2 })
  expect(await failure('keys', 'update', 'bound', '--budget', 'much')).toMatchObject({ code: 2 })
})

test('usage is reported by what it was for, as a table, as JSON and as CSV that no spreadsheet runs', async () => {
  const keys = await run('usage', '--by', 'key', '--csv')
  expect(keys.stdout).toMatch(/^key_id,key_name,key_deleted,requests,/)
  expect(keys.stdout).toContain(",'=app,false,")
  for (const by of ['key', 'policy', 'subject', 'model', 'preset', 'upstream', 'day']) {
    const { code, stdout } = await run('usage', '--by', by)
    expect({ by, code, lines: stdout.trim().split('\n').length > 1 }).toEqual({ by, code: 0, lines: true })
    expect(stdout).not.toContain('█')
  }
  expect(await json('usage', '--until', '2001-01-01')).toEqual({ data: [] })
  expect((await run('usage', '--by', 'color')).code).toBe(2)
  expect((await run('usage', 'verify')).stdout).toContain('match its requests')
  expect(await json('usage', 'verify')).toEqual({ ok: true, data: [] })
})
