// What clients and the ledger see while the database server is slow, cut off, gone or replaced.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rowsInFile } from '../support/database-file.ts'
import { audience, mintAt, postExchange, type Row, subject, type TestServer } from '../support/latchkey.ts'
import { type Nodes, startNodes, urlOf } from '../support/nodes.ts'
import { until } from '../support/until.ts'

let cluster: Nodes
let node: TestServer
let key: Row & { key: string }
let policy: Row
beforeAll(async () => {
  cluster = await startNodes(1)
  node = cluster.nodes[0] as TestServer
  key = await node.admin<Row & { key: string }>('keys.create', { name: 'target' })
  await node.admin('issuers.add', { name: 'idp', issuer_url: cluster.issuerUrl })
  policy = await node.admin('policies.create', { name: 'policy', issuer: 'idp', key: 'target', audience, subject })
})
afterAll(() => cluster.stop())

const exchange = async () =>
  postExchange(urlOf(node), { federation_policy_id: policy.id, subject_token: await mintAt(cluster.issuerUrl) })
const infer = () =>
  fetch(`${urlOf(node)}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }] }),
  })
const rows = (sql: string) => rowsInFile(cluster.databaseFile, sql) as Record<string, unknown>[]
const rowsOf = (table: string, response: Response) =>
  rows(`select id from ${table} where request_id = '${response.headers.get('x-request-id')}'`).length

describe('a connection that is cut', () => {
  for (const cut of ['before', 'after'] as const) {
    // Requests refresh before they commit, so that cuts of several requests hit both.
    test(`${cut} the work leaves each answered request in the ledger once`, async () => {
      for (let round = 0; round < 2; round++) {
        const served = Promise.all([exchange(), infer()])
        await Bun.sleep(round)
        cluster.database.trouble.cuts.push(cut)
        const [exchanged, inferred] = await served
        expect(exchanged.status === 200 ? rowsOf('exchange_audit', exchanged) : 1).toBe(1)
        await inferred.text()
        expect(inferred.status === 200 ? rowsOf('usage', inferred) : 1).toBe(1)
      }
      cluster.database.trouble.cuts.length = 0
      const totals = rows('select sum(requests) as n from day_totals')[0]?.n
      expect(totals).toBe(
        rows('select count(*) as n from usage where id <= (select usage_id from usage_summed)')[0]?.n as number,
      )
    })

    test(`${cut} the work makes an admin change once`, async () => {
      const before = rows('select count(*) as n from admin_changes')[0]?.n as number
      await node.server.context.follow.fresh()
      const made = node.admin('keys.create', { name: `cut ${cut}` })
      // The operation refreshes once; the next request is its commit.
      const { counts, trouble } = cluster.database
      const refreshed = counts.pipelines
      await until('the refresh', () => counts.pipelines !== refreshed)
      trouble.cuts.push(cut)
      await made
      trouble.cuts.length = 0
      expect(rows(`select id from api_keys where name = 'cut ${cut}'`)).toHaveLength(1)
      expect(rows('select count(*) as n from admin_changes')[0]?.n).toBe(before + 1)
    })
  }
})

describe('while the database cannot be reached', () => {
  test('requests get 503 with Retry-After, the node is not ready, and both pass when it is back', async () => {
    const ready = () => fetch(`${urlOf(node).replace('/v1', '')}/readyz`)
    expect((await ready()).status).toBe(200)
    cluster.database.trouble.isPartitioned = true
    const [refused, exchanged] = await Promise.all([infer(), exchange()])
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('1')
    const bodies = [await refused.json(), await exchanged.json()]
    expect(bodies[1]).toMatchObject({ error: 'temporarily_unavailable' })
    expect(JSON.stringify(bodies)).not.toMatch(/database/i)
    // Two seconds of attempts end with the last failure, or during the next attempt.
    expect(node.logLines.join('')).toMatch(/The connection to the database server fails|does not respond in time/)
    await until('the node to be not ready', async () => (await ready()).status !== 200)
    cluster.database.trouble.isPartitioned = false
    await until('the node to be ready', async () => (await ready()).status === 200)
    expect((await infer()).status).toBe(200)
  }, 30_000)

  test('a response that comes too late counts as none', async () => {
    cluster.database.trouble.delayMilliseconds = 5_000
    expect((await infer()).status).toBe(503)
    cluster.database.trouble.delayMilliseconds = 0
  })
})

test('after a change of a kind that only a newer node knows, everything is loaded again', async () => {
  await node.server.context.follow.fresh()
  const { client } = node.server.context.database
  const change = (disabled: number) =>
    client.batch(
      [
        { sql: "update api_keys set disabled = ? where name = 'target'", args: [disabled] },
        {
          sql: "insert into admin_changes (at, actor, operation, kind, target_id) values (1, 'local', 'test', 'toString', 'x')",
          args: [],
        },
      ],
      'write',
    )
  // Signing keys are not in the registry.
  let renewed = 0
  node.server.context.follow.onSigningKeys.push(async () => {
    renewed += 1
  })
  await change(1)
  expect([(await infer()).status, renewed]).toEqual([401, 1])
  await change(0)
  expect((await infer()).status).toBe(200)
})

test('after a thousand changes of others everything is loaded again', async () => {
  await node.server.context.follow.fresh()
  const { client } = node.server.context.database
  await client.batch(
    [
      { sql: "update api_keys set disabled = 1 where name = 'target'", args: [] },
      {
        sql: `insert into admin_changes (at, actor, operation, kind, target_id)
          with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 1100)
          select 1, 'local', 'test', 'key', 'none' from numbers`,
        args: [],
      },
    ],
    'write',
  )
  expect((await infer()).status).toBe(401)
  await node.admin('keys.update', { key: 'target', disabled: false })
  expect((await infer()).status).toBe(200)
})
