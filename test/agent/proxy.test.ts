// The local proxy: what it adds, what it refuses, and that both directions stream, whatever happens to the token meanwhile.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { holdToken } from '../../src/agent/held-token.ts'
import { type LocalListener, listenAt } from '../../src/agent/listener.ts'
import { createProxy } from '../../src/agent/proxy.ts'
import { Fault } from '../../src/fault.ts'
import { openRawRequest } from '../support/raw-request.ts'
import { holdStream, type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'

type Agent = LocalListener & { url: string }
const clock = { now: 1_800_000_000_000 }
let issued = 0
let exchangeFault: Fault | undefined
let exchangePause: (() => Promise<void>) | undefined
let upstream: ScriptedUpstream
let open: Agent
let guarded: Agent

async function startAgent(baseUrl: string, secret?: string): Promise<Agent> {
  const exchange = async () => {
    if (exchangeFault !== undefined) throw exchangeFault
    await exchangePause?.()
    issued += 1
    return { text: `token-${issued}`, issuedAt: clock.now, expiresAt: clock.now + 900_000 }
  }
  const token = holdToken({ exchange, now: () => clock.now })
  const listener = await listenAt({ hostname: '127.0.0.1', port: 0 }, (port) =>
    createProxy({ url: baseUrl, token, rules: { port, secret } }),
  )
  return { ...listener, url: `http://127.0.0.1:${listener.port}` }
}

beforeAll(async () => {
  upstream = await startScriptedUpstream()
  open = await startAgent(upstream.url)
  guarded = await startAgent(upstream.url, 'local-secret')
})
afterAll(async () => {
  await Promise.all([open.stop(0), guarded.stop(0)])
  await upstream.stop()
})
beforeEach(() => {
  upstream.requests.length = 0
  upstream.answer.current = () => Response.json({ ok: true })
  exchangeFault = undefined
  exchangePause = undefined
})

const post = (body: BodyInit, init: RequestInit = {}) =>
  fetch(`${open.url}/v1/chat/completions`, { method: 'POST', body, ...init })
const bearers = () => upstream.requests.map(({ headers }) => headers.get('authorization'))

describe('a request', () => {
  test('gets the access token in place of the credentials of the client, and loses what is for one connection', async () => {
    const headers = {
      authorization: 'Bearer sk-own',
      'x-api-key': 'sk-own',
      connection: 'x-hop',
      'x-hop': '1',
      'x-kept': '2',
    }
    const { socket, answer } = openRawRequest(`${open.url}/v1/models?limit=1`, 'GET', headers)
    expect((await answer).status).toBe(200)
    socket.destroy()
    const [request] = upstream.requests
    expect(request?.path).toBe('/v1/models')
    expect(request?.headers.get('authorization')).toMatch(/^Bearer token-\d+$/)
    expect(request?.headers.get('x-kept')).toBe('2')
    for (const name of ['x-api-key', 'x-hop']) expect(request?.headers.get(name)).toBeNull()
    expect(JSON.stringify([...(request?.headers ?? [])])).not.toContain('sk-own')
  })

  test('reaches the same place with and without /v1, with its query', async () => {
    const paths: string[] = []
    upstream.answer.current = (request) => {
      paths.push(new URL(request.url).pathname + new URL(request.url).search)
      return Response.json({})
    }
    await (await fetch(`${open.url}/v1/messages?beta=true&x=a%20b`)).text()
    await (await fetch(`${open.url}/messages?beta=true&x=a%20b`)).text()
    expect(paths).toEqual(Array(2).fill('/v1/messages?beta=true&x=a%20b'))
  })

  test('arrives whole, with a length, in chunks, and when it is too long to keep', async () => {
    for (const bytes of [10, 1024 * 1024, 1024 * 1024 + 1, 3_000_000]) {
      expect((await post('x'.repeat(bytes))).status).toBe(200)
      const chunks = new Blob(['y'.repeat(bytes)]).stream()
      expect((await post(chunks as ReadableStream<Uint8Array<ArrayBuffer>>)).status).toBe(200)
      expect(upstream.requests.splice(0).map(({ body }) => [body[0], body.length])).toEqual([
        ['x', bytes],
        ['y', bytes],
      ])
    }
  })
})

describe('a response', () => {
  test('passes byte for byte, compressed or not, with its headers', async () => {
    const bytes = gzipSync('compressed')
    upstream.answer.current = () =>
      new Response(bytes, {
        status: 201,
        headers: { 'content-encoding': 'gzip', 'x-request-id': 'r-1', 'x-hop': '1', connection: 'x-hop' },
      })
    const { socket, answer } = openRawRequest(`${open.url}/v1/models`, 'GET', { 'accept-encoding': 'gzip' })
    const { status, headers, body } = await answer
    socket.destroy()
    expect([status, headers.get('x-request-id'), headers.get('content-encoding')]).toEqual([201, 'r-1', 'gzip'])
    expect(body).toBe(bytes.toString('latin1'))
  })

  test('streams: each part arrives before the next is sent, also while the token expires and is replaced', async () => {
    const stream = holdStream()
    upstream.answer.current = () => stream.response
    stream.send('one')
    const reader = (await post('{}')).body?.getReader()
    const read = async () => new TextDecoder().decode((await reader?.read())?.value)
    expect(await read()).toBe('one')
    const before = bearers()[0]
    clock.now += 3_600_000
    upstream.answer.current = () => Response.json({})
    await (await post('{}')).text()
    expect(bearers()[1]).not.toBe(before)
    stream.send('two')
    expect(await read()).toBe('two')
    stream.end()
    expect((await reader?.read())?.done).toBe(true)
  })

  test('without a body ends', async () => {
    for (const status of [204, 304]) {
      upstream.answer.current = () => new Response(null, { status })
      expect((await fetch(`${open.url}/v1/models`, { headers: { 'if-none-match': '"a"' } })).status).toBe(status)
    }
    upstream.answer.current = () => Response.json({})
    expect(await (await fetch(`${open.url}/v1/models`, { method: 'HEAD' })).text()).toBe('')
  })

  test('that breaks off ends the connection of the client, so that it is not taken for a whole one', async () => {
    const broken = createHttpServer((_request, response) => {
      response.writeHead(200)
      response.write('part')
      setImmediate(() => response.destroy())
    })
    await new Promise<void>((done) => broken.listen(0, '127.0.0.1', done))
    const agent = await startAgent(`http://127.0.0.1:${(broken.address() as AddressInfo).port}/v1`)
    await expect(fetch(`${agent.url}/v1/models`).then((response) => response.text())).rejects.toThrow()
    await agent.stop(0)
    broken.close()
  })
})

test('a client that goes away ends the call, before the response and within it', async () => {
  const stream = holdStream()
  upstream.answer.current = () => stream.response
  const within = new AbortController()
  stream.send('one')
  const response = await post('{}', { signal: within.signal })
  await response.body?.getReader().read()
  within.abort()
  await stream.left
  const left = Promise.withResolvers<void>()
  upstream.answer.current = (request) => {
    request.signal.addEventListener('abort', () => left.resolve())
    return left.promise.then(() => Response.json({}))
  }
  const before = new AbortController()
  const asking = post('{}', { signal: before.signal })
  await until('the call', () => upstream.requests.length === 2)
  before.abort()
  await expect(asking).rejects.toThrow()
  await left.promise
})

test('a client that goes away while the agent waits for its token causes no call', async () => {
  const asked = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  exchangePause = () => {
    asked.resolve()
    return held.promise
  }
  const agent = await startAgent(upstream.url)
  const { socket } = openRawRequest(`${agent.url}/v1/models`, 'GET', {})
  await asked.promise
  socket.destroy()
  // Responses on later connections prove that the agent has had time to notice.
  for (let count = 0; count < 5; count++) await (await fetch(`${agent.url}/livez`, { keepalive: false })).text()
  held.resolve()
  await until('the token', async () => (await fetch(`${agent.url}/readyz`)).status === 200)
  expect((await fetch(`${agent.url}/v1/second`)).status).toBe(200)
  expect(upstream.requests.map(({ path }) => path)).toEqual(['/v1/second'])
  await agent.stop(0)
})

describe('after a 401', () => {
  /** Refuses one token, and serves others. */
  const refuse = (token: string | null | undefined) => {
    upstream.answer.current = (request) =>
      request.headers.get('authorization') === token
        ? new Response('refused', { status: 401 })
        : Response.json({ ok: true })
  }
  const currentToken = async () => {
    await (await post('{}')).text()
    return bearers().at(-1)
  }

  test('a request is repeated once with a new token, and the client sees the second response alone', async () => {
    const old = await currentToken()
    clock.now += 60_000
    refuse(old)
    upstream.requests.length = 0
    const response = await post('{"a":1}')
    expect([response.status, await response.json()]).toEqual([200, { ok: true }])
    expect(upstream.requests.map(({ body }) => body)).toEqual(['{"a":1}', '{"a":1}'])
    expect(bearers()[0]).toBe(old ?? '')
  })

  test('100 requests at once cause one exchange', async () => {
    refuse(await currentToken())
    clock.now += 60_000
    const before = issued
    const responses = await Promise.all(Array.from({ length: 100 }, () => post('{}').then(({ status }) => status)))
    expect(responses).toEqual(Array(100).fill(200))
    expect(issued - before).toBe(1)
  })

  test('a body that is not kept is not repeated, and neither is a request with a token that was just issued', async () => {
    const old = await currentToken()
    refuse(old)
    const young = await post('{}')
    expect([young.status, await young.text()]).toEqual([401, 'refused'])
    clock.now += 60_000
    upstream.requests.length = 0
    expect((await post('x'.repeat(1024 * 1024 + 1))).status).toBe(401)
    expect(upstream.requests).toHaveLength(1)
  })
})

describe('a hostile server', () => {
  test('gets nobody to follow a redirect', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      upstream.answer.current = () => new Response(null, { status, headers: { location: 'http://127.0.0.1:1/steal' } })
      const response = await post('{}', { redirect: 'manual' })
      expect([response.status, response.headers.get('location')]).toEqual([502, null])
      expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining('a redirect') } })
    }
  })

  test('fills no memory with 1 GB: the agent reads as fast as its client', async () => {
    const chunk = new Uint8Array(64 * 1024)
    let sent = 0
    const left = Promise.withResolvers<void>()
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += chunk.byteLength
        controller.enqueue(chunk)
        if (sent >= 1e9) controller.close()
      },
      cancel: () => left.resolve(),
    })
    upstream.answer.current = () => new Response(body)
    const received = await new Promise<IncomingMessage>((resolve) => {
      openPaused(`${open.url}/v1/models`, resolve)
    })
    await (await fetch(`${open.url}/livez`)).text()
    const before = sent
    for (let count = 0; count < 20; count++) await (await fetch(`${open.url}/livez`)).text()
    expect(sent).toBeLessThan(50e6)
    expect(sent - before).toBeLessThan(20e6)
    received.destroy()
    await left.promise
  })
})

test('a server that is not there is a 502, and a refused exchange says why', async () => {
  const agent = await startAgent('http://127.0.0.1:1/v1')
  const lost = await fetch(`${agent.url}/v1/models`)
  expect([lost.status, await lost.json()]).toEqual([
    502,
    { error: { code: 502, message: 'The Latchkey server could not be reached' } },
  ])
  expect((await fetch(`${agent.url}/readyz`)).status).toBe(200)
  await agent.stop(0)
  exchangeFault = new Fault('forbidden', 'The subject token was not accepted (request id r-1)')
  const refused = await startAgent(upstream.url)
  const answer = await fetch(`${refused.url}/v1/models`)
  expect([answer.status, await answer.json()]).toEqual([403, { error: { code: 403, message: exchangeFault.message } }])
  expect((await fetch(`${refused.url}/readyz`)).status).toBe(503)
  expect((await fetch(`${refused.url}/livez`)).status).toBe(200)
  expect(upstream.requests).toEqual([])
  await refused.stop(0)
})

describe('refuses', () => {
  const statusOf = async (headers: Record<string, string>, { agent = open, target = '/v1/models' } = {}) => {
    const { socket, answer } = openRawRequest(agent.url, 'GET', headers, target)
    const { status } = await answer
    socket.destroy()
    return status
  }
  const own = () => `127.0.0.1:${open.port}`

  test('names that a foreign page pointed at this machine, and serves those of this machine', async () => {
    for (const host of [
      'evil.example.com',
      `evil.example.com:${open.port}`,
      '127.0.0.1',
      '127.0.0.1:1',
      `127.0.0.1.evil.com:${open.port}`,
      `localhost:${open.port}.evil.com`,
      `user@${own()}`,
      '',
    ])
      expect({ host, status: await statusOf({ host }) }).toEqual({
        host,
        status: host === '' ? expect.any(Number) : 403,
      })
    for (const host of [own(), `localhost:${open.port}`, `[::1]:${open.port}`])
      expect(await statusOf({ host })).toBe(200)
    expect(upstream.requests).toHaveLength(3)
  })

  test('pages in browsers, with or without the secret', async () => {
    const pages: [name: string, value: string][] = [
      ['origin', 'https://evil.example.com'],
      ['origin', 'null'],
      ['origin', open.url],
      ['sec-fetch-site', 'cross-site'],
      ['sec-fetch-site', 'none'],
    ]
    for (const [name, value] of pages) {
      expect({ name, value, status: await statusOf({ [name]: value }) }).toEqual({ name, value, status: 403 })
      const known = { host: `127.0.0.1:${guarded.port}`, authorization: 'Bearer local-secret' }
      expect(await statusOf({ ...known, [name]: value }, { agent: guarded })).toBe(403)
    }
    const asks = { origin: 'https://evil.example.com', 'access-control-request-method': 'POST' }
    const preflight = openRawRequest(`${open.url}/v1/models`, 'OPTIONS', asks)
    const { status, headers } = await preflight.answer
    expect([status, headers.get('access-control-allow-origin')]).toEqual([403, null])
    preflight.socket.destroy()
    expect(upstream.requests).toEqual([])
  })

  test('paths that lead out of the base URL', async () => {
    for (const target of [
      '/v1/../admin',
      '/v1/%2e%2e/admin',
      '/../admin',
      '/v1/a/./b',
      '/v1\\..\\admin',
      'http://127.0.0.1:1/v1/models',
      '//127.0.0.1:1/v1/models',
    ])
      expect({ target, status: await statusOf({}, { target }) }).toEqual({
        target,
        status: target.startsWith('//') ? 200 : 400,
      })
    for (const { path } of upstream.requests) expect(path).toStartWith('/v1/')
  })

  test('a request without the secret, where one is set; the health paths need none', async () => {
    const asks = (headers: Record<string, string>, path = '/v1/models') => fetch(`${guarded.url}${path}`, { headers })
    for (const headers of [
      {},
      { authorization: 'Bearer wrong' },
      { authorization: 'Basic local-secret' },
      { 'x-api-key': 'local' },
    ])
      expect((await asks(headers as Record<string, string>)).status).toBe(401)
    expect(upstream.requests).toEqual([])
    expect((await asks({ authorization: 'Bearer local-secret' })).status).toBe(200)
    expect((await asks({ 'x-api-key': 'local-secret' })).status).toBe(200)
    for (const path of ['/livez', '/readyz']) expect((await asks({}, path)).status).toBe(200)
    expect(JSON.stringify(upstream.requests.map(({ headers }) => [...headers]))).not.toContain('local-secret')
  })
})

test('stops after the running requests, and takes nothing more', async () => {
  const stream = holdStream()
  upstream.answer.current = () => stream.response
  const agent = await startAgent(upstream.url)
  stream.send('one')
  const response = await fetch(`${agent.url}/v1/models`)
  const stopped = agent.stop(30_000)
  await expect(fetch(`${agent.url}/livez`, { keepalive: false })).rejects.toThrow()
  stream.end()
  expect(await response.text()).toBe('one')
  await stopped
})

/** Opens a response and reads nothing of its body. */
function openPaused(url: string, resolve: (response: IncomingMessage) => void): void {
  void import('node:http').then(({ get }) => get(url, (response) => resolve(response.pause())))
}
