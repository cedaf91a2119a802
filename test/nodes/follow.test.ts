// What one node changes is obeyed by the others from the acknowledgement on.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { audience, mintAt, postExchange, type Row, subject, type TestServer } from '../support/latchkey.ts'
import { type Nodes, startNodes, untilCounted, urlOf } from '../support/nodes.ts'

let cluster: Nodes
let key: Row & { key: string }
let policy: Row
beforeAll(async () => {
  cluster = await startNodes(2)
  const first = nodeAt(0)
  key = await first.admin<Row & { key: string }>('keys.create', { name: 'target' })
  await first.admin('issuers.add', { name: 'idp', issuer_url: cluster.issuerUrl })
  policy = await first.admin('policies.create', { name: 'policy', issuer: 'idp', key: 'target', audience, subject })
})
afterAll(() => cluster.stop())

function nodeAt(index: number): TestServer {
  const node = cluster.nodes[index]
  if (node === undefined) throw new Error(`There are ${cluster.nodes.length} nodes`)
  return node
}
const exchangeAt = async (index: number) =>
  postExchange(urlOf(nodeAt(index)), {
    federation_policy_id: policy.id,
    subject_token: await mintAt(cluster.issuerUrl),
  })
const inferAt = (index: number, credential = key.key) =>
  fetch(`${urlOf(nodeAt(index))}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }] }),
  })

test('a policy, an issuer and a key of one node serve at another', async () => {
  const response = await exchangeAt(1)
  expect(response.status).toBe(200)
  const { access_token } = (await response.json()) as { access_token: string }
  for (const index of [0, 1]) expect((await inferAt(index, access_token)).status).toBe(200)
})

describe('after a change at one node, another', () => {
  test('refuses a disabled key, and accepts it when it is enabled', async () => {
    await nodeAt(0).admin('keys.update', { key: 'target', disabled: true })
    expect((await inferAt(1)).status).toBe(401)
    await nodeAt(1).admin('keys.update', { key: 'target', disabled: false })
    expect((await inferAt(0)).status).toBe(200)
  })

  test('refuses exchanges of a paused policy', async () => {
    await nodeAt(0).admin('policies.pause', { policy: 'policy' })
    expect((await exchangeAt(1)).status).toBe(400)
    await nodeAt(1).admin('policies.resume', { policy: 'policy' })
    expect((await exchangeAt(0)).status).toBe(200)
  })

  test('publishes the same signing keys', async () => {
    await nodeAt(0).admin('signing_keys.rotate', { at_once: true })
    const sets = await Promise.all(
      [0, 1].map(async (index) => (await fetch(`${urlOf(nodeAt(index))}/oauth/jwks`)).text()),
    )
    expect(sets[0]).toBe(String(sets[1]))
    const { access_token } = (await (await exchangeAt(0)).json()) as { access_token: string }
    expect((await inferAt(1, access_token)).status).toBe(200)
  })
})

test('responses to management keys name the newest change, others do not', async () => {
  const made = await nodeAt(0).admin<{ key: string }>('keys.create', { name: 'manager', kind: 'management' })
  const revisionFor = async (credential: string, path = 'key') => {
    const headers = { authorization: `Bearer ${credential}` }
    return (await fetch(`${urlOf(nodeAt(0))}/${path}`, { headers })).headers.get('x-latchkey-revision')
  }
  const before = Number(await revisionFor(made.key))
  await nodeAt(1).admin('keys.create', { name: 'another' })
  expect(Number(await revisionFor(made.key))).toBe(before + 1)
  expect(await revisionFor(key.key)).toBeNull()
  // A key that leaves memory while its request runs is no management key.
  const { keys } = nodeAt(0).server.context.registry
  const held = keys.get(key.id)
  keys.delete(key.id)
  expect(await revisionFor(key.key, 'presets')).toBeNull()
  if (held !== undefined) keys.set(key.id, held)
})

test('changes of two nodes at once are all made, and none twice', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `at-once-${index}`)
  await Promise.all(names.map((name, index) => nodeAt(index % 2).admin('keys.create', { name })))
  for (const index of [0, 1]) {
    const { data } = await nodeAt(index).admin<{ data: { name: string }[] }>('keys.list')
    expect(
      data
        .map(({ name }) => name)
        .filter((name) => name.startsWith('at-once'))
        .toSorted(),
    ).toEqual(names.toSorted())
  }
})

test('two nodes that make the same name leave one', async () => {
  const made = await Promise.allSettled([0, 1].map((index) => nodeAt(index).admin('keys.create', { name: 'one name' })))
  expect(made.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
})

test('a change of a preset returns what it made, although another node changes the preset right after', async () => {
  for (const temperature of [0, 1]) {
    const body = JSON.stringify({ model: 'echo', temperature, messages: [{ role: 'user', content: '-' }] })
    await nodeAt(0).admin('presets.save', { preset: 'twice', dialect: 'chat', body })
  }
  const { client } = nodeAt(0).server.context.database
  const { execute } = client
  /** The other node changes the preset before this one reads it again. */
  const interfere = (description: string) =>
    Object.assign(client, {
      execute: async (...args: Parameters<typeof execute>) => {
        if (JSON.stringify(args).includes('designated_version')) {
          Object.assign(client, { execute })
          await nodeAt(1).admin('presets.update', { preset: 'twice', description, designated_version: 2 })
        }
        return execute(...args)
      },
    })
  interfere('later')
  const designated = await nodeAt(0).admin('presets.update', { preset: 'twice', designated_version: 1 })
  expect(designated).toMatchObject({ description: null, designated_version: { version: 1 } })
  const version = (designated as unknown as { designated_version: Row }).designated_version
  expect(designated.designated_version_id).toBe(version.id)
  expect(await nodeAt(0).admin('presets.show', { preset: 'twice' })).toMatchObject({ description: 'later' })
  interfere('latest')
  const shown = await nodeAt(0).admin('presets.update', { preset: 'twice', name: 'Twice' })
  expect(shown).toMatchObject({ name: 'Twice', description: 'later' })
})

test('the nodes count one another', async () => {
  await untilCounted(cluster)
  expect(cluster.nodes.map(({ server }) => server.context.follow.liveNodes())).toEqual([2, 2])
})

test('a node reports its refreshes, its revision and the live nodes to a metrics system', async () => {
  await untilCounted(cluster)
  const metrics = await nodeAt(1).server.context.reportMetrics()
  expect(metrics).toMatch(/^latchkey_look_duration_seconds_count [1-9]\d*$/m)
  expect(metrics).toMatch(/^latchkey_revision [1-9]\d*$/m)
  expect(metrics).toMatch(/^latchkey_live_nodes 2$/m)
})
