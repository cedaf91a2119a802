// `/livez` and `/readyz`: beside the base path, without a credential, with nothing but names of checks.
import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readinessMilliseconds } from '../../src/limits.ts'
import { createReadiness } from '../../src/monitoring/readiness.ts'
import { type Federation, mintAt, type Row, startFederation, startTestServer } from '../support/latchkey.ts'
import { createAnswerCheck, readDocument } from '../support/openapi.ts'
import { until } from '../support/until.ts'

const ready = { status: 'ready', failing: [], degraded: [] }
const unusedUrl = 'http://127.0.0.1:9'

let federation: Federation
beforeAll(async () => {
  federation = await startFederation()
})
afterAll(() => federation.stop())

const ask = async (path: string, baseUrl = federation.server.baseUrl) => {
  const response = await fetch(new URL(path, baseUrl))
  return { status: response.status, body: (await response.json()) as unknown, headers: response.headers }
}

/** Readiness looks at upstreams and issuers about once a second. */
const untilHealth = (body: object) =>
  until('the health', async () => Bun.deepEquals((await ask('/readyz')).body, body), ask.bind(undefined, '/readyz'))
const degradedBy = (check: string) => ({ status: 'degraded', failing: [], degraded: [check] })

describe('a running server', () => {
  test('is live and ready to anyone, and no cache keeps that', async () => {
    for (const [path, body] of [
      ['/livez', { status: 'live' }],
      ['/readyz', ready],
    ] as const) {
      const found = await ask(path)
      expect(found).toMatchObject({ status: 200, body })
      expect(found.headers.get('cache-control')).toBe('no-store')
    }
  })

  test('has no health below the base path', async () => {
    expect(await ask('/v1/readyz')).toMatchObject({ status: 404 })
    expect(await ask('/v1/livez')).toMatchObject({ status: 404 })
  })

  test('documents both with the address at which they are', async () => {
    const document = await readDocument(federation.server.baseUrl)
    const servers = [{ url: new URL(federation.server.baseUrl).origin }]
    expect(document.paths['/readyz']?.get).toMatchObject({ servers, security: [] })
    expect(document.paths['/livez']?.get).toMatchObject({ servers, security: [] })
    createAnswerCheck(document)('GET', '../readyz', 200, (await ask('/readyz')).body)
  })

  test('stores one row for any number of checks', async () => {
    for (let times = 0; times < 5; times++) await ask('/readyz')
    const { rows } = await federation.server.context.database.client.execute('select count(*) from write_probe')
    expect(Number(rows[0]?.[0])).toBeLessThanOrEqual(1)
  })
})

test('with a longer base path, health is beside its last segment', async () => {
  const settings = { LATCHKEY_BASE_URL: 'http://latchkey.example/gateway/v1' }
  const server = await startTestServer({ settings })
  const { hostname, port } = server.server.address
  expect(await ask('/gateway/readyz', `http://${hostname}:${port}`)).toMatchObject({ status: 200, body: ready })
  expect(await ask('/gateway/v1/readyz', `http://${hostname}:${port}`)).toMatchObject({ status: 404 })
  await server.stop()
})

test('an upstream that cannot be reached degrades the server until it responds again', async () => {
  await federation.admin('upstreams.add', { name: 'gone', base_url: unusedUrl, models: ['gone'] })
  const infer = () =>
    fetch(`${federation.server.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${federation.key.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
    })
  expect((await infer()).status).toBe(200)
  expect((await ask('/readyz')).body).toEqual(ready)
  const { reachability, registry } = federation.server.context
  const [first] = registry.upstreamsInOrder
  if (first === undefined) throw new Error('There is no upstream')
  reachability.note(first, false)
  await untilHealth(degradedBy('upstreams'))
  expect((await ask('/readyz')).status).toBe(200)
  expect((await infer()).status).toBe(200)
  await untilHealth(ready)
})

test('an issuer whose keys cannot be fetched degrades the server, and the log says when that changes', async () => {
  const issuer = await federation.admin('issuers.add', { name: 'down', issuer_url: unusedUrl })
  const names = { name: 'under-down', issuer: 'down', key: 'target', audience: 'a', subject: 's' }
  const policy = await federation.admin<Row>('policies.create', names)
  const token = await mintAt(federation.issuerUrl, { iss: unusedUrl, aud: 'a', sub: 's' })
  const refused = await federation.exchange(token, { federation_policy_id: policy.id })
  expect(refused.status).toBe(503)
  await untilHealth(degradedBy('issuers'))
  expect((await ask('/readyz')).status).toBe(200)
  await federation.admin('policies.delete', { policy: policy.id })
  await federation.admin('issuers.delete', { issuer: issuer.id })
  await untilHealth(ready)
  const changes = federation.logLines.filter((line) => line.includes('health_changed'))
  expect(changes.slice(-2).map((line) => (JSON.parse(line) as Row).status)).toEqual(['degraded', 'ready'])
})

test('without what it has in memory, the server is not ready', async () => {
  const { context } = federation.server
  const rows = context.registry.organizations
  const kept = [...rows]
  rows.clear()
  expect(await ask('/readyz')).toMatchObject({ status: 503, body: { status: 'not_ready', failing: ['registry'] } })
  for (const [id, row] of kept) rows.set(id, row)
  const { current } = context.signingKeys
  context.signingKeys.current = () => {
    throw new Error('Every signing key is retired')
  }
  expect(await ask('/readyz')).toMatchObject({ status: 503, body: { status: 'not_ready', failing: ['signing_key'] } })
  context.signingKeys.current = current
  expect((await ask('/readyz')).status).toBe(200)
})

test('a crowd that asks whether the server is ready looks at the issuers once a second', async () => {
  const { context } = federation.server
  const clock = { now: 0 }
  let looks = 0
  const stateOf: typeof context.issuerKeys.stateOf = (issuer) => {
    looks += 1
    return context.issuerKeys.stateOf(issuer)
  }
  const { check } = createReadiness({ ...context, issuerKeys: { stateOf }, monotonic: () => clock.now })
  for (let times = 0; times < 100; times++) await check()
  expect(looks).toBe(1)
  clock.now += readinessMilliseconds
  await check()
  expect(looks).toBe(2)
})

test('a probe commit whose outcome stays unknown is waited for as long as the manual says', async () => {
  const { context } = federation.server
  const waited = spyOn(globalThis, 'setTimeout')
  await createReadiness({ ...context, isWritable: async () => true }).check()
  const milliseconds = waited.mock.calls.map(([, each]) => each)
  waited.mockRestore()
  expect(milliseconds).toContain(2_000)
  const page = readFileSync(join(import.meta.dirname, '../../src/manual/monitoring.md'), 'utf8')
  expect(page).toContain('or leaves the outcome of one open for two seconds')
})

test('a probe commit whose outcome stays unknown makes the server not ready, and keeps nobody waiting', async () => {
  const { context } = federation.server
  const probed = Promise.withResolvers<boolean>()
  const readiness = createReadiness({ ...context, isWritable: () => probed.promise, probeMillisecondsMax: 1 })
  expect((await readiness.check()).failing).toEqual(['writer'])
  probed.resolve(true)
  expect((await readiness.check()).failing).toEqual([])
})
