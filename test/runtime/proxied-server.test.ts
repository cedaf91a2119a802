// A server whose environment names a proxy: what it sends to this machine does not reach the proxy.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Federation,
  postExchange,
  type Row,
  runCommand,
  type ServingProcess,
  startFederation,
  startServing,
  subject,
  temporaryFolder,
} from '../support/latchkey.ts'
import { type RecordingProxy, startRecordingProxy } from '../support/recording-proxy.ts'

const folder = temporaryFolder()
const cwd = folder.path
let proxy: RecordingProxy
let federation: Federation
let serving: ServingProcess
let env: Record<string, string> = {}

beforeAll(async () => {
  proxy = await startRecordingProxy()
  federation = await startFederation()
  env = { ...proxy.env, LATCHKEY_INSECURE_ISSUERS: 'true', HOME: cwd }
  const { code, stderr } = await runCommand(['init'], { cwd, env })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  serving = await startServing(['serve', '--listen', '127.0.0.1:0'], { cwd, env })
})
afterAll(async () => {
  await serving.stop()
  await federation.stop()
  proxy.stop()
  folder.remove()
})

async function json<Answer = Row>(...args: string[]): Promise<Answer> {
  const { code, stdout, stderr } = await runCommand([...args, '--json'], { cwd, env })
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
  return JSON.parse(stdout) as Answer
}

test('keys of issuers, prompts, credentials and exchanged tokens go straight to this machine', async () => {
  const baseUrl = serving.facts.base_url ?? ''
  writeFileSync(join(cwd, 'upstream.jwt'), await federation.mint())
  const exchange = `exchange:${join(cwd, 'upstream.jwt')}`
  const upstream = [
    '--inference-url',
    federation.server.baseUrl,
    '--credential',
    exchange,
    '--exchange-policy',
    federation.policy.id,
  ]
  await json('upstreams', 'add', '--name', 'chained', ...upstream)
  await json('keys', 'create', '--name', 'app')
  await json('issuers', 'add', '--name', 'idp', '--issuer-url', federation.issuerUrl)
  const binding = ['--issuer', 'idp', '--key', 'app', '--audience', 'latchkey', '--subject', subject]
  const policy = await json('policies', 'create', '--name', 'p', ...binding)
  const subjectToken = await federation.mint({ aud: 'latchkey' })
  const exchanged = await postExchange(baseUrl, { federation_policy_id: policy.id, subject_token: subjectToken })
  const { access_token: token } = (await exchanged.json()) as { access_token: string }
  const called = await fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'straight' }] }),
  })
  expect(await called.text()).toContain('straight')
  expect(await json<{ data: object[] }>('upstreams', 'check')).toMatchObject({ data: [{ ok: true }] })
  expect(proxy.seen).toEqual([])
})

test('a management key of config plan and apply goes straight to this machine, and health asks it directly', async () => {
  const { key } = await federation.admin<{ key: string }>('keys.create', { name: 'remote', kind: 'management' })
  writeFileSync(join(cwd, 'management.key'), key)
  writeFileSync(join(cwd, 'document.yaml'), 'latchkey: 1\nowner: remote\nkeys: [{ name: far }]\n')
  const remote = ['document.yaml', '--url', federation.server.baseUrl, '--key-file', 'management.key']
  await json('config', 'plan', ...remote)
  await json('config', 'apply', ...remote)
  await json('health', '--url', federation.server.baseUrl)
  expect(proxy.seen).toEqual([])
})

test('the proxy still gets what leads elsewhere', async () => {
  const remote = ['--url', 'https://llm.invalid/v1', '--key-file', 'management.key']
  expect((await runCommand(['config', 'plan', 'document.yaml', ...remote], { cwd, env })).code).toBe(1)
  expect(proxy.seen).toEqual(['CONNECT llm.invalid:443 HTTP/1.1'])
})
