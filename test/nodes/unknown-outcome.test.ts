// What clients get when the database goes away during their commit and comes back later: the outcome, never a guess. The clock of the node
// is the test's, so that twelve seconds take none.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { firstPosition } from '../../db/remote/shared-database.ts'
import { rowsInFile } from '../support/database-file.ts'
import { audience, mintAt, postExchange, type Row, subject, type TestServer } from '../support/latchkey.ts'
import { type Nodes, startNodes, urlOf } from '../support/nodes.ts'
import { rejectionOf } from '../support/rejection.ts'
import { until } from '../support/until.ts'

let cluster: Nodes
let node: TestServer
let key: Row & { key: string }
let policy: Row
let skipped = 0
beforeAll(async () => {
  cluster = await startNodes(0)
  node = await cluster.add({}, { monotonic: () => performance.now() + skipped })
  key = await node.admin<Row & { key: string }>('keys.create', { name: 'target' })
  await node.admin('issuers.add', { name: 'idp', issuer_url: cluster.issuerUrl })
  policy = await node.admin('policies.create', { name: 'policy', issuer: 'idp', key: 'target', audience, subject })
})
afterAll(() => cluster.stop())

const infer = (credential = key.key) =>
  fetch(`${urlOf(node)}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }] }),
  })
const exchange = async () =>
  postExchange(urlOf(node), { federation_policy_id: policy.id, subject_token: await mintAt(cluster.issuerUrl) })
const rowsOf = (sql: string) => rowsInFile(cluster.databaseFile, sql)
const requestId = (response: Response) => response.headers.get('x-request-id')
const ready = async () => {
  const response = await fetch(`${urlOf(node).replace('/v1', '')}/readyz`)
  return ((await response.json()) as { failing: string[] }).failing
}

/** Begins a request whose commit loses its response, and lets the database be away for twelve seconds. */
async function loseCommit<Answer>(text: string, cut: 'before' | 'after', begin: () => Promise<Answer>) {
  const { trouble } = cluster.database
  trouble.awayAt = { text, cut }
  let isAnswered = false
  const answer = begin().finally(() => {
    isAnswered = true
  })
  await until('the commit', () => trouble.isPartitioned)
  skipped += 12_000
  await until('a refresh that is refused at once', () =>
    node.server.context.database.shared?.refresh(firstPosition).then(
      () => false,
      (error: unknown) => String(error).includes('does not confirm commits'),
    ),
  )
  expect((await infer()).status).toBe(503)
  // A refresh that a slow server answers after the clock was set counts as one of now.
  await until('that the node is not ready', async () => (await ready()).includes('database'))
  expect(isAnswered).toBe(false)
  trouble.isPartitioned = false
  return answer
}

for (const cut of ['before', 'after'] as const) {
  test(`an exchange whose connection is cut ${cut} the commit gets a token with one audit record`, async () => {
    const response = await loseCommit('insert into exchange_audit', cut, exchange)
    expect(response.status).toBe(200)
    const { access_token } = (await response.json()) as { access_token: string }
    expect(rowsOf(`select id from exchange_audit where request_id = '${requestId(response)}'`)).toHaveLength(1)
    expect((await infer(access_token)).status).toBe(200)
  })

  test(`an inference request whose connection is cut ${cut} the commit is in the ledger once`, async () => {
    const response = await loseCommit('insert into usage', cut, async () => {
      const begun = await infer()
      await begun.text()
      return begun
    })
    expect(response.status).toBe(200)
    expect(rowsOf(`select id from usage where request_id = '${requestId(response)}'`)).toHaveLength(1)
  })

  test(`an admin change whose connection is cut ${cut} the commit is made once`, async () => {
    const name = `made ${cut}`
    const made = await loseCommit(name, cut, () => node.admin('keys.create', { name }))
    expect(rowsOf(`select id from api_keys where name = '${name}'`)).toEqual([{ id: made.id }])
    expect(rowsOf(`select id from admin_changes where target_id = '${made.id}'`)).toHaveLength(1)
  })
}

test('nothing is logged as unknown that came to be known', () => {
  expect(node.logLines.filter((line) => line.includes('commit_outcome_unknown'))).toEqual([])
})

test('a start whose commit is not confirmed for half a minute ends, and reports why', async () => {
  const { trouble } = cluster.database
  let waited = 0
  // A start commits at once where a used subject token has expired.
  const sql = "insert into used_subject_tokens select id, 'token', 0 from issuers limit 1"
  await node.server.context.writer.write([{ toSQL: () => ({ sql, params: [] }) }])
  trouble.awayAt = { text: JSON.stringify('delete from "used_subject_tokens"').slice(1, -1), cut: 'before' }
  const started = rejectionOf(cluster.add({}, { monotonic: () => performance.now() + waited }))
  await until('the commit', () => trouble.isPartitioned)
  waited = 31_000
  const { code, message } = await started
  expect([code, message]).toEqual(['unavailable', expect.stringContaining('does not confirm commits: see its log')])
  trouble.isPartitioned = false
})
