// Two nodes, one with a clock that is an hour ahead: what holds nevertheless, and what does not (manual: cluster).
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { audience, mintAt, postExchange, type Row, subject, type TestServer } from '../support/latchkey.ts'
import { type Nodes, startNodes, untilCounted, urlOf } from '../support/nodes.ts'

const hour = 60 * 60 * 1_000
let cluster: Nodes
let right: TestServer
let ahead: TestServer
beforeAll(async () => {
  cluster = await startNodes(1)
  right = cluster.nodes[0] as TestServer
  ahead = await cluster.add({}, { now: () => Date.now() + hour, monotonic: () => performance.now() })
  await untilCounted(cluster)
})
afterAll(() => cluster.stop())

const infer = async (node: TestServer, credential: string) => {
  const response = await fetch(`${urlOf(node)}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }] }),
  })
  await response.arrayBuffer()
  return response.status
}
const newKey = (name: string, fields: object = {}) =>
  right.admin<Row & { key: string }>('keys.create', { name, ...fields })

test('both nodes are live, and each obeys what the other changed', async () => {
  expect([right, ahead].map(({ server }) => server.context.follow.liveNodes())).toEqual([2, 2])
  const { key } = await newKey('changed')
  await right.admin('keys.disable', { key: 'changed' })
  expect(await infer(ahead, key)).toBe(401)
  await ahead.admin('keys.enable', { key: 'changed' })
  expect(await infer(right, key)).toBe(200)
})

test('a lifetime budget that is spent at one is spent at the other', async () => {
  await right.admin('prices.set', { prices: [{ model: 'echo', prompt: 1e5, completion: 1e5 }] })
  for (const [name, first, second] of [
    ['first ahead', ahead, right],
    ['first right', right, ahead],
  ] as const) {
    const { key } = await newKey(name, { limit: 0.0001 })
    expect([await infer(first, key), await infer(second, key)]).toEqual([200, 402])
  }
})

test('a rate is divided between them', async () => {
  const { key } = await newKey('rate', { requests_per_minute: 20 })
  const sent = Array.from({ length: 48 }, (_, index) => infer(index % 2 === 0 ? right : ahead, key))
  const admitted = (await Promise.all(sent)).filter((status) => status === 200).length
  expect(admitted).toBeGreaterThanOrEqual(20)
  expect(admitted).toBeLessThanOrEqual(22)
})

test('the doctor reports the clock, and a node with another base URL', async () => {
  const codes = async () => {
    const { findings } = await right.admin<{ findings: { code: string; names: string[] }[] }>('doctor.examine')
    return findings.filter(({ code }) => code.startsWith('node_')).map(({ code, names }) => [code, names.length])
  }
  expect(await codes()).toEqual([['node_clock', 1]])
  const other = await cluster.add({ LATCHKEY_BASE_URL: 'http://other.example/v1' })
  expect(await codes()).toEqual([
    ['node_base_urls', 2],
    ['node_clock', 1],
  ])
  await other.stop()
  cluster.nodes.pop()
})

const exchangeAt = async (node: TestServer, policyId: string, claims: object = {}) => {
  const subject_token = await mintAt(cluster.issuerUrl, { ...claims })
  const response = await postExchange(urlOf(node), { federation_policy_id: policyId, subject_token })
  return ((await response.json()) as { access_token?: string }).access_token ?? ''
}

test('access tokens are good only where they were issued, and subject tokens that live an hour only at the right node', async () => {
  await newKey('target')
  await right.admin('issuers.add', { name: 'idp', issuer_url: cluster.issuerUrl })
  const { id } = await right.admin('policies.create', { name: 'p', issuer: 'idp', key: 'target', audience, subject })
  const longLived = { exp: Math.floor((Date.now() + 3 * hour) / 1_000) }
  const [ofRight, ofAhead] = [await exchangeAt(right, id), await exchangeAt(ahead, id, longLived)]
  const statuses = [right, ahead].map((node) => Promise.all([ofRight, ofAhead].map((token) => infer(node, token))))
  expect(await Promise.all(statuses)).toEqual([
    [200, 401],
    [401, 200],
  ])
  expect(await exchangeAt(ahead, id, { exp: Math.floor(Date.now() / 1_000) + 1_800 })).toBe('')
})

test('a start with the wrong clock forgets no subject token that was exchanged under replay protection', async () => {
  const named = { name: 'once', issuer: 'idp', key: 'target', audience, subject, replay_protection: true }
  const { id } = await right.admin('policies.create', named)
  const claims = { jti: 'once', exp: Math.floor(Date.now() / 1_000) + 1_800 }
  expect(await exchangeAt(right, id, claims)).not.toBe('')
  await cluster.add({}, { now: () => Date.now() + hour, monotonic: () => performance.now() })
  const later = await cluster.add()
  expect(await exchangeAt(later, id, claims)).toBe('')
})

test('a subject token that has expired at the database is exchanged once at nodes whose clocks are behind', async () => {
  const behind = { now: () => Date.now() - hour, monotonic: () => performance.now() }
  const [one, other] = [await cluster.add({}, behind), await cluster.add({}, behind)]
  const { data } = await right.admin<{ data: Row[] }>('policies.list')
  const id = String(data.find(({ name }) => name === 'once')?.id)
  const time = Math.floor(Date.now() / 1_000)
  const claims = { jti: 'behind', iat: time - 3_700, nbf: time - 3_700, exp: time - 1_800 }
  expect(await exchangeAt(one, id, claims)).not.toBe('')
  for (const node of [other, one]) expect(await exchangeAt(node, id, claims)).toBe('')
})
