// A request whose body takes long is judged on what was true when the body had arrived, not when the request began.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { audience, mintAt, type Row, subject, type TestServer } from '../support/latchkey.ts'
import { type Nodes, startNodes } from '../support/nodes.ts'
import { until } from '../support/until.ts'

let cluster: Nodes
let slow: TestServer
let key: Row & { key: string }
let policy: Row
let skipped = 0
beforeAll(async () => {
  cluster = await startNodes(1)
  slow = await cluster.add({}, { monotonic: () => performance.now() + skipped })
  key = await slow.admin<Row & { key: string }>('keys.create', { name: 'target' })
  await slow.admin('issuers.add', { name: 'idp', issuer_url: cluster.issuerUrl })
  policy = await slow.admin('policies.create', { name: 'policy', issuer: 'idp', key: 'target', audience, subject })
})
afterAll(() => cluster.stop())

/** Sends a request, and its body only after `meanwhile`. Returns the status line. */
async function sendSlowly(path: string, headers: string[], body: string, meanwhile: () => Promise<unknown>) {
  const { port } = slow.server.address
  const socket: Socket = connect(port, '127.0.0.1')
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk.toString()
  })
  const refreshes = () =>
    slow.server.context.reportMetrics().then((text) => /look_duration_seconds_count (\d+)/.exec(text)?.[1])
  const before = await refreshes()
  const all = [`POST /v1${path} HTTP/1.1`, 'host: localhost', `content-length: ${body.length}`, ...headers]
  socket.write(`${all.join('\r\n')}\r\n\r\n${body.slice(0, 5)}`)
  await until('the refresh of the request', async () => (await refreshes()) !== before)
  await meanwhile()
  socket.write(body.slice(5))
  await until('a response', () => received.includes('\r\n'))
  socket.destroy()
  return received.slice(0, received.indexOf('\r\n'))
}

const formOf = async () =>
  new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    federation_policy_id: policy.id,
    subject_token: await mintAt(cluster.issuerUrl),
  }).toString()
const disable = async () => {
  await cluster.nodes[0]?.admin('keys.update', { key: 'target', disabled: true })
  skipped += 1_000
}
const enable = () => cluster.nodes[0]?.admin('keys.update', { key: 'target', disabled: false })

test('an inference request of a key that another node disables meanwhile is refused', async () => {
  const body = JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }] })
  const headers = [`authorization: Bearer ${key.key}`, 'content-type: application/json']
  expect(await sendSlowly('/chat/completions', headers, body, disable)).toContain(' 401 ')
  await enable()
  expect(await sendSlowly('/chat/completions', headers, body, async () => {})).toContain(' 200 ')
})

test('an exchange for a key that another node disables meanwhile is refused', async () => {
  const form = await formOf()
  const headers = ['content-type: application/x-www-form-urlencoded']
  expect(await sendSlowly('/oauth/token', headers, form, async () => {})).toContain(' 200 ')
  expect(await sendSlowly('/oauth/token', headers, form, disable)).toContain(' 400 ')
  await enable()
})

test('an exchange is refused with 503 when its node loses the database meanwhile', async () => {
  const { trouble } = cluster.database
  const away = async () => {
    trouble.isPartitioned = true
    skipped += 1_000
  }
  const headers = ['content-type: application/x-www-form-urlencoded']
  expect(await sendSlowly('/oauth/token', headers, await formOf(), away)).toContain(' 503 ')
  trouble.isPartitioned = false
})
