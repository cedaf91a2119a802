// `latchkey health`: the exit code says whether a server is ready, over its local socket, or the listen address of a node, or its URL.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type Installation, install } from '../support/installation.ts'
import { listenLocally } from '../support/latchkey.ts'
import { isServerKind } from '../support/server-kind.ts'

let installation: Installation
/** Where a command without a URL asks. */
let asked: string
beforeEach(async () => {
  installation = await install()
  const { listener } = await listenLocally(async () => new Response())
  await listener.drain()
  installation.env.LATCHKEY_LISTEN = `127.0.0.1:${listener.port}`
  asked = isServerKind
    ? `http://127.0.0.1:${listener.port}/readyz`
    : `no server listens on ${installation.databasePath}.sock`
})
afterEach(() => installation.remove())

test('without a server it is unreachable, exit code 1, and makes nothing', async () => {
  const stdout = expect.stringMatching(new RegExp(`^unreachable: ${asked}.*\n$`))
  expect(await installation.run('health')).toEqual({ code: 1, stdout, stderr: '' })
  const { code, stdout: json } = await installation.run('health', '--json')
  expect({ code, found: JSON.parse(json) as unknown }).toEqual({
    code: 1,
    found: { status: 'unreachable', failing: [], degraded: [], reason: expect.stringContaining(asked) },
  })
})

test('a server is ready where it is asked, and over its URL', async () => {
  const { baseUrl, serving } = await installation.serve()
  const ready = { code: 0, stdout: 'ready\n', stderr: '' }
  expect(await installation.run('health')).toEqual(ready)
  expect(await installation.run('health', '--url', baseUrl)).toEqual(ready)
  expect(await installation.run('health', '--url', `${new URL(baseUrl).origin}/`)).toEqual(ready)
  await serving.stop()
  expect(await installation.run('health', '--url', baseUrl)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^unreachable: http.*readyz: /),
  })
})

test('a URL at which something else responds is named with the status', async () => {
  const { url, listener } = await listenLocally(async () => new Response('hello', { status: 404 }))
  expect(await installation.run('health', '--url', `${url}/v1`)).toMatchObject({
    code: 1,
    stdout: `unreachable: ${url}/readyz responded with 404; use the base URL of the service\n`,
  })
  await listener.drain()
})

test('--wait returns as soon as a server that starts later is ready', async () => {
  const waiting = installation.run('health', '--wait', '60s')
  const { serving } = await installation.serve()
  expect(await waiting).toEqual({ code: 0, stdout: 'ready\n', stderr: '' })
  await serving.stop()
})

test('names the checks that fail, and a degraded server still counts as one that serves', async () => {
  const health = { current: { status: 'not_ready', failing: ['stopping', 'writer'], degraded: [] as string[] } }
  const { url, listener } = await listenLocally(async () => Response.json(health.current, { status: 503 }))
  expect(await installation.run('health', '--url', url)).toMatchObject({
    code: 1,
    stdout: 'not_ready: stopping, writer\n',
  })
  health.current = { status: 'degraded', failing: [], degraded: ['issuers'] }
  expect(await installation.run('health', '--url', url)).toMatchObject({ code: 0, stdout: 'degraded: issuers\n' })
  await listener.drain()
})

test('a URL or duration of another form is wrong usage', async () => {
  const wrong = await installation.run('health', '--url', 'llm.example.com')
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('is not a valid value for --url') })
  expect(await installation.run('health', '--wait', 'soon')).toMatchObject({ code: 2 })
})
