// The key set of access tokens while the database is away: verifiers get it from memory for as long as they would keep it anyway.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { TestServer } from '../support/latchkey.ts'
import { type Nodes, startNodes, urlOf } from '../support/nodes.ts'
import { until } from '../support/until.ts'

let cluster: Nodes
let node: TestServer
let skipped = 0
beforeAll(async () => {
  cluster = await startNodes(0)
  node = await cluster.add({}, { monotonic: () => performance.now() + skipped })
})
afterAll(() => cluster.stop())

const get = (path: string) => fetch(`${urlOf(node)}${path}`)

test('is served for five minutes, not to be kept, and then refused; nothing else is served', async () => {
  const fresh = await get('/oauth/jwks')
  const keys = await fresh.json()
  expect([fresh.status, fresh.headers.get('cache-control')]).toEqual([200, 'public, max-age=300'])
  cluster.database.trouble.isPartitioned = true
  for (const milliseconds of [0, 5_000, 280_000]) {
    skipped = milliseconds
    const stale = await get('/oauth/jwks')
    expect([stale.status, stale.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(await stale.json()).toEqual(keys)
  }
  expect((await get('/models')).status).toBe(503)
  skipped = 301_000
  expect((await get('/oauth/jwks')).status).toBe(503)
  cluster.database.trouble.isPartitioned = false
  const kept = async () => (await get('/oauth/jwks')).headers.get('cache-control')
  await until('the key set as before', async () => (await kept()) === 'public, max-age=300', kept)
})
