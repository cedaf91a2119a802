// Nodes and the database server are killed under load, while responses are late and connections are cut before and after
// commits: what was answered is in the ledger exactly once, and an acknowledged change is in force exactly once.
// LATCHKEY_TEST_KILLS makes it larger: of so many kills, every fifth is of the database. It then prints what it counted.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { createTestIssuer } from '../../scripts/dev/test-issuer.ts'
import type { Listener } from '../../src/runtime/listen.ts'
import { killsOr } from '../support/chance.ts'
import { readDatabaseFile } from '../support/database-file.ts'
import { freePort } from '../support/free-port.ts'
import type { Cut, Trouble } from '../support/hrana-server.ts'
import { takeKeyPair } from '../support/key-pairs.ts'
import {
  audience,
  listenLocally,
  mintAt,
  postExchange,
  runCommand,
  type ServingProcess,
  startServing,
  subject,
  temporaryFolder,
  upstreamApiKey,
} from '../support/latchkey.ts'
import { testMasterKey } from '../support/server-kind.ts'
import { databaseFileAt } from '../support/sqld.ts'
import { until } from '../support/until.ts'

const killsUsual = 2
const kills = killsOr(killsUsual)
const nodesTotal = 3

const folder = temporaryFolder()
const file = join(folder.path, 'server.db')
const listeners: Listener[] = []
const env: Record<string, string> = { LATCHKEY_MASTER_KEY: testMasterKey, LATCHKEY_LISTEN: '127.0.0.1:0' }
let database: Bun.Subprocess
let nodes: ServingProcess[]
let managementKey: string
let apiKey: string
let policyId: string
let subjectToken: string
let port: number

const commitCuts: Record<Cut, number> = { before: 0, after: 0 }

async function startDatabase(): Promise<void> {
  const program = [process.execPath, join(import.meta.dirname, '../support/hrana-server.ts'), file, String(port)]
  const ipc = (cut: Cut) => {
    commitCuts[cut] += 1
  }
  const child = Bun.spawn(program, { stdout: 'pipe', stderr: 'inherit', ipc, detached: true })
  for await (const _ of child.stdout) break
  database = child
}

const startNode = () => startServing(['serve'], { cwd: folder.path, env })

async function killAndRestart(index: number): Promise<void> {
  await nodes[index]?.stop('SIGKILL')
  nodes[index] = await startNode()
}

/** Cuts the connections of the next three commits, and delays every response. */
function makeTrouble(kill: number): void {
  const delays = [0, 10, 40]
  const trouble: Partial<Trouble> = {
    delayMilliseconds: delays[kill % delays.length] ?? 0,
    commitCuts: kill % 2 === 0 ? ['after', 'before', 'after'] : ['before', 'after', 'before'],
  }
  database.send(trouble)
}

/** Kills the group of the process, in which a real server runs too. */
async function killDatabase(): Promise<void> {
  process.kill(-database.pid, 'SIGKILL')
  await database.exited
}

const urlAt = (index: number) => `http://${nodes[index]?.facts.listening}/v1`

async function post(index: number, path: string, body: object, credential: string): Promise<Response> {
  const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
  return fetch(`${urlAt(index)}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

beforeAll(async () => {
  port = await freePort()
  env.LATCHKEY_DATABASE_URL = `http://127.0.0.1:${port}`
  env.LATCHKEY_BASE_URL = 'http://latchkey.example/v1'
  env.LATCHKEY_INSECURE_ISSUERS = 'true'
  env.LATCHKEY_RATE_LIMIT = '0'
  let issuerUrl = ''
  const issuer = await listenLocally(await createTestIssuer(() => issuerUrl, takeKeyPair))
  issuerUrl = issuer.url
  const upstream = await listenLocally(createEchoUpstream(upstreamApiKey))
  listeners.push(issuer.listener, upstream.listener)
  env.LATCHKEY_UPSTREAM_URL = `${upstream.url}/v1`
  env.LATCHKEY_UPSTREAM_API_KEY = upstreamApiKey
  await startDatabase()
  const made = await runCommand(['init', '--json'], { cwd: folder.path, env })
  managementKey = (JSON.parse(made.stdout) as { key: string }).key
  nodes = await Promise.all(Array.from({ length: nodesTotal }, startNode))
  const create = async <Made>(path: string, body: object): Promise<Made> => {
    const response = await post(0, path, body, managementKey)
    if (!response.ok) throw new Error(await response.text())
    return (await response.json()) as Made
  }
  apiKey = (await create<{ key: string }>('/keys', { name: 'target' })).key
  await create('/workload-identity/issuers', { name: 'idp', issuer_url: issuerUrl })
  await create('/budgets', { name: 'all', windows: [{ per: 'lifetime', requests: 1_000_000, tokens: 1_000_000 }] })
  await create('/budgets', { name: 'sessions', each: 'session', windows: [{ per: 'day', requests: 2 }] })
  const named = { name: 'policy', issuer: 'idp', key: 'target', audience, subject }
  policyId = (await create<{ data: { id: string } }>('/workload-identity/policies', named)).data.id
  subjectToken = await mintAt(issuerUrl)
}, 60_000)
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop('SIGKILL')))
  await killDatabase()
  await Promise.all(listeners.map((listener) => listener.drain()))
  folder.remove()
})

/** What a node has counted of the budget. */
async function spentAt(index: number): Promise<Record<string, number>> {
  const response = await fetch(`${urlAt(index)}/budgets/all`, { headers: { authorization: `Bearer ${managementKey}` } })
  const { data } = (await response.json()) as { data: { spent: { unit: string; spent: number }[] } }
  return Object.fromEntries(data.spent.map(({ unit, spent }) => [unit, spent]))
}

type Answered = { exchanges: string[]; requests: string[]; changes: string[]; held: number }

/** Sends until asked to stop, and notes what was answered completely with success. */
async function send(answered: Answered, index: number, isOver: () => boolean): Promise<void> {
  const idOf = (response: Response) => response.headers.get('x-request-id') ?? ''
  // Each has two requests, one after the other: if the first one never gave back what it holds, the second would be refused.
  let session = crypto.randomUUID()
  for (let count = 0; !isOver(); count++) {
    try {
      const exchanged = await postExchange(urlAt(index), {
        federation_policy_id: policyId,
        subject_token: subjectToken,
      })
      await exchanged.text()
      if (exchanged.ok) answered.exchanges.push(idOf(exchanged))
      const body = { model: 'echo', messages: [{ role: 'user', content: 'x' }], stream: count % 2 === 0 }
      if (count % 2 === 0) session = crypto.randomUUID()
      const inferred = await post(index, '/chat/completions', { ...body, session_id: session }, apiKey)
      await inferred.text()
      if (inferred.ok) answered.requests.push(idOf(inferred))
      else session = crypto.randomUUID()
      if (inferred.status === 429) answered.held += 1
      const name = `key-${index}-${crypto.randomUUID()}`
      const changed = await post(index, '/keys', { name }, managementKey)
      await changed.text()
      if (changed.ok) answered.changes.push(name)
    } catch {
      // The node was killed.
      session = crypto.randomUUID()
      await Bun.sleep(5)
    }
  }
}

test('what was answered is in the ledger once, and acknowledged changes are made once', async () => {
  const answered: Answered = { exchanges: [], requests: [], changes: [], held: 0 }
  let isOver = false
  const sending = [0, 1, 2, 0].map((index) => send(answered, index, () => isOver))
  const answeredTotal = () => answered.exchanges.length + answered.requests.length + answered.changes.length
  for (let kill = 0; kill < kills; kill++) {
    makeTrouble(kill)
    const before = answeredTotal()
    await until('20 responses', () => answeredTotal() >= before + 20, answeredTotal)
    if (kill % 5 === 1) {
      await killDatabase()
      await startDatabase()
    } else await killAndRestart(kill % nodesTotal)
  }
  makeTrouble(kills)
  const before = answeredTotal()
  await until('20 more responses', () => answeredTotal() >= before + 20, answeredTotal)
  isOver = true
  await Promise.all(sending)
  const spent = await Promise.all(nodes.map((_, index) => spentAt(index)))
  const verified = await runCommand(['usage', 'verify'], { cwd: folder.path, env })
  expect(verified.code).toBe(0)

  const [exchanges, requests, changes, recorded, totals, integrity, used] = readDatabaseFile(
    databaseFileAt(file),
    'select request_id as name, count(*) as times from exchange_audit group by 1',
    'select request_id as name, count(*) as times from usage group by 1',
    'select name, count(*) as times from api_keys group by 1',
    `select json_extract(after, '$.name') as name, count(*) as times from admin_changes where kind = 'key' group by 1`,
    `select count(*) = (select sum(requests) from day_totals) as requests,
            sum(total_tokens) = (select sum(total_tokens) from day_totals) as tokens
     from usage where id <= (select usage_id from usage_summed)`,
    'pragma integrity_check',
    'select count(*) as requests, sum(total_tokens) as tokens from usage',
  )
  for (const each of spent) expect<unknown>(each).toEqual({ ...used?.[0] })
  const timesOf = (rows: typeof exchanges, names: string[]) => {
    const times = new Map(rows?.map((row) => [row.name, row.times]))
    return [...new Set(names.map((name) => times.get(name) ?? 0))]
  }
  expect(answered.held).toBe(0)
  expect(answered.changes.length).toBeGreaterThan(0)
  expect(commitCuts.before).toBeGreaterThan(0)
  expect(commitCuts.after).toBeGreaterThan(0)
  expect(timesOf(exchanges, answered.exchanges)).toEqual([1])
  expect(timesOf(requests, answered.requests)).toEqual([1])
  expect(timesOf(changes, answered.changes)).toEqual([1])
  expect(timesOf(recorded, answered.changes)).toEqual([1])
  expect(requests?.filter(({ times }) => times !== 1)).toEqual([])
  expect(totals).toEqual([{ requests: 1, tokens: 1 }])
  expect(integrity).toEqual([{ integrity_check: 'ok' }])
  if (kills > killsUsual)
    console.log({
      kills,
      commitCuts,
      exchanges: answered.exchanges.length,
      requests: answered.requests.length,
      changes: answered.changes.length,
      verified: verified.stdout,
    })
}, 3_600_000)
