// LATCHKEY_DATABASE_GRACE: what a node serves while its database is away, what it refuses, what health and doctor report in each state, and that
// usage is in the ledger once when it is back.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { asNotReached } from '../../db/remote/server-errors.ts'
import { examineAll } from '../../src/admin/doctor/doctor.ts'
import { openGrace, waitingPath } from '../../src/nodes/grace.ts'
import { rowsInFile } from '../support/database-file.ts'
import { mintAt, postExchange, type Row, type TestServer, temporaryFolder } from '../support/latchkey.ts'
import { type Nodes, startNodes, urlOf } from '../support/nodes.ts'
import { organizationRows, usageRow } from '../support/rows.ts'
import { until } from '../support/until.ts'

const folder = temporaryFolder()
const owner = organizationRows('acme')
const settings = { LATCHKEY_DATABASE_GRACE: '30s', LATCHKEY_DATABASE_GRACE_DIR: folder.path }
let cluster: Nodes
let node: TestServer
let strict: TestServer
let free: Row & { key: string }
let limited: Row & { key: string }
let counted: Row & { key: string }
let skipped = 0
const logged: string[] = []
const dependencies = {
  monotonic: () => performance.now() + skipped,
  log: (_level: string, event: string, { reason = '' }: Record<string, unknown> = {}) =>
    void logged.push(event, String(reason)),
}

beforeAll(async () => {
  cluster = await startNodes(0)
  node = await cluster.add(settings, dependencies)
  strict = await cluster.add({}, { monotonic: dependencies.monotonic })
  free = await node.admin('keys.create', { name: 'free' })
  limited = await node.admin('keys.create', { name: 'limited', limit: 1_000 })
  counted = await node.admin('keys.create', { name: 'counted' })
  await node.admin('budgets.create', {
    name: 'all',
    applies_to: { keys: ['counted'] },
    windows: [{ per: 'day', requests: 1_000 }],
  })
})
afterAll(async () => {
  await cluster.stop()
  folder.remove()
})

const infer = async ({ key }: { key: string }, at = node) => {
  const response = await fetch(`${urlOf(at)}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }] }),
  })
  await response.text()
  return { status: response.status, id: response.headers.get('x-request-id') ?? '' }
}
const readyOf = async (at = node) => {
  const response = await fetch(urlOf(at).replace(/v1$/, 'readyz'))
  const { failing, degraded } = (await response.json()) as Record<'failing' | 'degraded', string[]>
  return [response.status, failing, degraded]
}
const metricOf = async (name: string) => {
  const text = await node.server.context.reportMetrics()
  return Number(new RegExp(`^latchkey_${name} (\\S+)$`, 'm').exec(text)?.[1])
}
const findings = async () => {
  const found = await examineAll(node.server.context)
  return new Set(found.map(({ code }) => code).filter((code) => /grace|usage/.test(code)))
}
const ledger = async () => {
  const rows = (await rowsInFile(cluster.databaseFile, 'select request_id from usage order by id')) as Row[]
  return rows.map((row) => row.request_id as string)
}

test('while the database is there, nothing differs but that the doctor says what was chosen', async () => {
  expect((await infer(free)).status).toBe(200)
  expect([await readyOf(), await metricOf('database_grace')]).toEqual([[200, [], []], 0])
  expect(await findings()).toEqual(new Set(['database_grace']))
})

test('while it is away, inference without budgets is served for the time that was set, and its usage is in the ledger once when it is back', async () => {
  const before = await ledger()
  cluster.database.trouble.isPartitioned = true
  skipped += 5_000
  const served = [await infer(free), await infer(free)]
  expect(served.map(({ status }) => status)).toEqual([200, 200])

  // What is refused for another reason is counted as ever.
  const headers = { authorization: `Bearer ${free.key}`, 'content-type': 'text/plain' }
  expect((await fetch(`${urlOf(node)}/chat/completions`, { method: 'POST', headers, body: 'x' })).status).toBe(415)
  const { refusals } = node.server.context
  expect(refusals.list(undefined, Date.now()).map(({ reason }) => reason)).toEqual(['content_type'])

  // What other nodes can use up, and what must be recorded before it takes effect.
  const form = { federation_policy_id: crypto.randomUUID(), subject_token: await mintAt(cluster.issuerUrl) }
  const waiting = Promise.all([infer(free, strict), postExchange(urlOf(node), form)])
  const refused = await Promise.all([infer(limited), infer(counted), infer({ key: 'sk-lk-v1-unknown' })])
  expect(refused.map(({ status }) => status)).toEqual([503, 503, 401])
  expect(logged.filter((text) => text.includes('database_away_budget'))).toHaveLength(2)

  expect(await readyOf()).toEqual([200, [], ['database', 'usage']])
  expect(await readyOf(strict)).toEqual([503, ['database'], []])
  expect([await metricOf('database_grace'), await metricOf('usage_waiting_rows')]).toEqual([1, 2])
  expect(logged).toContain('database_grace_began')

  skipped += 30_000
  expect((await infer(free)).status).toBe(503)
  expect((await waiting).map(({ status }) => status)).toEqual([503, 503])
  expect(await readyOf()).toEqual([503, ['database'], ['usage']])
  expect(await metricOf('database_grace')).toBe(0)

  cluster.database.trouble.isPartitioned = false
  await until('the usage to be applied', async () => (await metricOf('usage_waiting_rows')) === 0)
  await node.server.context.follow.fresh()
  // Commits that are still under way need not be the first.
  expect((await ledger()).slice(before.length).toSorted()).toEqual(served.map(({ id }) => id).toSorted())
  await until('the end of grace', () => logged.includes('database_grace_ended'))
  await until('a node that is ready', async () => String(await readyOf()) === '200,,')
  expect((await infer(limited)).status).toBe(200)
})

test('while it takes no commits, usage waits for the time that was set, and what is revoked elsewhere is still obeyed', async () => {
  const before = await ledger()
  const { trouble } = cluster.database
  trouble.isFull = true
  const served = await infer(free)
  expect(served.status).toBe(200)
  expect(await metricOf('usage_waiting_rows')).toBe(1)
  expect((await infer(limited)).status).toBe(503)
  expect((await readyOf())[2]).toContain('usage')
  expect((await infer({ key: limited.key.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')) })).status).toBe(401)
  skipped += 30_000
  expect((await infer(free)).status).toBe(503)
  trouble.isFull = false
  await until('the usage to be applied', async () => (await metricOf('usage_waiting_rows')) === 0)
  expect((await ledger()).slice(before.length)).toEqual([served.id])
  await until('requests', async () => (await infer(free)).status === 200)
})

test('once 64 MB of rows wait, requests are refused until the database has taken them', async () => {
  const config = { ...node.config, listen: { ...node.config.listen, port: 1 } }
  const known = { installation: 'one', usageId: 0 }
  const line = JSON.stringify({ id: 'a', ...known, after: 0, usage: [usageRow('a', owner)], storedResponses: [] })
  const most = 64 * 1024 * 1024
  // One byte less than the bound.
  writeFileSync(String(waitingPath(config)), `${line.padEnd(most - 2)}\n`)
  const sent: number[] = []
  let isAway = true
  const grace = await openGrace({
    config,
    send: async (_statements, rows) => {
      if (isAway) throw asNotReached(new Error('refused'))
      sent.push(rows)
    },
    follow: { age: () => 0, isUpToDate: () => false, known: () => known },
    writeCheck: { isFailing: () => true, failingFor: () => 0 },
    log: () => {},
  })
  expect(grace?.mayServe()).toBe(true)
  await grace?.commitUsage({ usage: [usageRow('b', owner)], storedResponses: [] })
  expect([grace?.rows(), grace?.mayServe(), grace?.isUsed()]).toEqual([2, false, false])
  isAway = false
  await grace?.apply()
  expect([sent, grace?.mayServe()]).toEqual([[1, 1], true])
  await grace?.close()
})
