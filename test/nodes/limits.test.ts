// Budgets, rates and replay protection across nodes, and key sets that nodes share.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createTestIssuer } from '../../scripts/dev/test-issuer.ts'
import { takeKeyPair } from '../support/key-pairs.ts'
import {
  audience,
  listenLocally,
  mintAt,
  postExchange,
  type Row,
  subject,
  type TestServer,
} from '../support/latchkey.ts'
import { type Nodes, startNodes, untilCounted, urlOf } from '../support/nodes.ts'
import { until } from '../support/until.ts'

let cluster: Nodes
beforeAll(async () => {
  cluster = await startNodes(2)
  await untilCounted(cluster)
})
afterAll(() => cluster.stop())

const nodeAt = (index: number) => cluster.nodes[index] as TestServer
const infer = async (index: number, credential: string) => {
  const response = await fetch(`${urlOf(nodeAt(index))}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }] }),
  })
  await response.arrayBuffer()
  return response.status
}

describe('a budget', () => {
  test('that is spent at one node is spent at the others, and at one that starts later', async () => {
    await nodeAt(0).admin('prices.set', { prices: [{ model: 'echo', prompt: 1e5, completion: 1e5 }] })
    const { key } = await nodeAt(0).admin<Row & { key: string }>('keys.create', { name: 'budget', limit: 0.0001 })
    expect(await infer(0, key)).toBe(200)
    expect(await infer(1, key)).toBe(402)
    expect(await infer(0, key)).toBe(402)
    const third = await cluster.add()
    expect(await infer(2, key)).toBe(402)
    await third.stop()
    cluster.nodes.pop()
  })

  test('counts each request once on every node', async () => {
    const { key, id } = await nodeAt(0).admin<Row & { key: string }>('keys.create', { name: 'counted', limit: 1e6 })
    for (let count = 0; count < 10; count++) expect(await infer(count % 2, key)).toBe(200)
    const spent = await Promise.all(
      [0, 1].map(async (index) => {
        const { spending, follow } = nodeAt(index).server.context
        await follow.fresh()
        return spending.of(id, Date.now()).ever
      }),
    )
    const { client } = nodeAt(0).server.context.database
    const total = `select sum(cost_nanodollars) as n from usage where key_id = '${id}'`
    const stored = Number((await client.execute(total)).rows[0]?.n)
    expect(spent).toEqual([stored, stored])
  })
})

describe('a budget as an object', () => {
  test('that is made at one node is spent at all of them, and counts each request once on each', async () => {
    const { key, id } = await nodeAt(0).admin<Row & { key: string }>('keys.create', { name: 'of a budget' })
    await nodeAt(0).admin('budgets.create', {
      name: 'shared',
      applies_to: { keys: [id] },
      windows: [{ per: 'month', requests: 8 }],
    })
    for (let count = 0; count < 4; count++) expect(await infer(count % 2, key)).toBe(200)
    // The sums are built again while others count.
    const edits = [0, 1].map((node) => nodeAt(node).admin('budgets.update', { budget: 'shared', unpriced: 'count' }))
    const asked = await Promise.all([infer(0, key), infer(1, key), ...edits])
    expect(asked.slice(0, 2)).toEqual([200, 200])
    expect([await infer(0, key), await infer(1, key)]).toEqual([200, 200])
    const spentAt = async (node: number) => {
      const { spent } = await nodeAt(node).admin<{ spent: { spent: number }[] }>('budgets.show', { budget: 'shared' })
      return spent[0]?.spent
    }
    expect([await spentAt(0), await spentAt(1)]).toEqual([8, 8])
    expect([await infer(0, key), await infer(1, key)]).toEqual([402, 402])
    const third = await cluster.add()
    expect(await infer(2, key)).toBe(402)
    await third.stop()
    cluster.nodes.pop()
    await nodeAt(0).admin('budgets.delete', { budget: 'shared' })
  })
})

test('a rate is divided by the nodes that are live', async () => {
  const { follow } = nodeAt(0).server.context
  await until('two nodes', async () => {
    await follow.fresh()
    return follow.liveNodes() === 2
  })
  await nodeAt(1).server.context.follow.fresh()
  const made = await nodeAt(0).admin<Row & { key: string }>('keys.create', { name: 'rate', requests_per_minute: 20 })
  const statuses = await Promise.all(Array.from({ length: 60 }, (_, index) => infer(index % 2, made.key)))
  const admitted = statuses.filter((status) => status === 200).length
  // A slow run refills a bucket meanwhile.
  expect(admitted).toBeGreaterThanOrEqual(20)
  expect(admitted).toBeLessThanOrEqual(22)
})

test('an issuer is asked once, and its keys serve at every node', async () => {
  let fetches = 0
  let issuerUrl = ''
  const issuer = await createTestIssuer(() => issuerUrl, takeKeyPair)
  const { url, listener } = await listenLocally((request, peer) => {
    if (request.url.includes('jwks')) fetches += 1
    return issuer(request, peer)
  })
  issuerUrl = url
  await nodeAt(0).admin('keys.create', { name: 'shared' })
  await nodeAt(0).admin('issuers.add', { name: 'shared', issuer_url: issuerUrl })
  const named = { name: 'shared', issuer: 'shared', key: 'shared', audience, subject }
  const { id } = await nodeAt(0).admin('policies.create', named)
  const subjectToken = await mintAt(issuerUrl)
  const before = fetches
  for (const index of [0, 1])
    expect(
      (await postExchange(urlOf(nodeAt(index)), { federation_policy_id: id, subject_token: subjectToken })).status,
    ).toBe(200)
  expect(fetches).toBe(before + 1)
  await listener.drain()
})

test('a token under replay protection is exchanged once, at whichever node', async () => {
  await nodeAt(0).admin('keys.create', { name: 'target' })
  await nodeAt(0).admin('issuers.add', { name: 'idp', issuer_url: cluster.issuerUrl })
  const named = { name: 'once', issuer: 'idp', key: 'target', audience, subject, replay_protection: true }
  const { id } = await nodeAt(0).admin('policies.create', named)
  for (let round = 0; round < 5; round++) {
    const fields = { federation_policy_id: id, subject_token: await mintAt(cluster.issuerUrl, { jti: `jti-${round}` }) }
    const responses = await Promise.all([0, 1, 0, 1].map((index) => postExchange(urlOf(nodeAt(index)), fields)))
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1)
  }
})
