// Inference over the wire (reference: Inference): what reaches the upstream, and what comes back to the caller.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  deltaOf,
  eventOf,
  type Inference,
  question,
  startInference,
  streamReply,
  type UsageRow,
  usageEvent,
} from '../support/inference.ts'
import { type Row, startTestServer } from '../support/latchkey.ts'
import { openRawRequest } from '../support/raw-request.ts'
import { holdStream } from '../support/scripted-upstream.ts'

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

describe('the upstream gets', () => {
  test("the client's own bytes, under the upstream's own credential", async () => {
    const body = `{ "model":"asked-model" , "messages":[], "unknown":1e2, "another":[ 1.0 ] }`
    expect((await latchkey.complete(body)).status).toBe(200)
    const [request] = latchkey.upstream.requests
    expect(request).toMatchObject({ method: 'POST', path: '/v1/chat/completions', body })
    expect(request?.headers.get('authorization')).toBe('Bearer upstream-secret')
  })

  test("nothing that carries the caller's credential or belongs to its connection", async () => {
    const dropped = {
      'x-api-key': 'k',
      'api-key': 'k',
      cookie: 'a=b',
      'proxy-authorization': 'Basic x',
      te: 'trailers',
      'x-hop': '1',
    }
    const kept = { 'x-session-id': 's', 'user-agent': 'agent/1', 'content-type': 'application/json' }
    const { socket, answer: whole } = openRawRequest(`${latchkey.server.baseUrl}/chat/completions`, 'POST', {
      authorization: `Bearer ${latchkey.accessToken}`,
      connection: 'keep-alive, x-hop',
      'content-length': '2',
      ...dropped,
      ...kept,
    })
    socket.write('{}')
    expect((await whole).status).toBe(200)
    socket.destroy()
    const headers = latchkey.upstream.requests[0]?.headers
    for (const name of Object.keys(dropped)) expect({ name, value: headers?.get(name) }).toEqual({ name, value: null })
    expect(Object.fromEntries(headers ?? [])).toMatchObject(kept)
    expect(JSON.stringify([...(headers ?? [])])).not.toContain(latchkey.accessToken)
    expect(headers?.get('host')).toBe(new URL(latchkey.upstream.url).host)
  })

  test('a wish for the usage of a stream, beside the other options of the client', async () => {
    latchkey.upstream.answer.current = () => streamReply(eventOf('[DONE]'))
    await latchkey.complete({ ...question, stream: true, stream_options: { other: 1 } })
    await latchkey.complete({ ...question, stream: true, stream_options: { include_usage: true } })
    const asked = latchkey.upstream.requests.map(({ body }) => JSON.parse(body).stream_options)
    expect(asked).toEqual([{ other: 1, include_usage: true }, { include_usage: true }])
  })

  test('the query parameter beta, and no other', async () => {
    const rows: [sent: string, got: string][] = [
      ['', ''],
      ['?beta=true', '?beta=true'],
      ['?model=x&beta=true&api-version=1', '?beta=true'],
      ['?beta=x%26model=y', ''],
      ['?Beta=true', ''],
    ]
    for (const [sent, got] of rows) {
      latchkey.upstream.requests.length = 0
      const response = await fetch(`${latchkey.server.baseUrl}/messages${sent}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${latchkey.key.key}` },
        body: JSON.stringify(question),
      })
      expect(response.status).toBe(200)
      expect(latchkey.upstream.requests).toMatchObject([{ path: '/v1/messages', query: got }])
    }
  })

  test('a stream request with its numbers as the client wrote them', async () => {
    latchkey.upstream.answer.current = () => streamReply(eventOf('[DONE]'))
    await latchkey.complete('{"stream":true,"seed":12345678901234567890,"y":1e400,"z":-0} \n')
    expect(latchkey.upstream.requests[0]?.body).toBe(
      '{"stream":true,"seed":12345678901234567890,"y":1e400,"z":-0,"stream_options":{"include_usage":true}}',
    )
  })

  const evasive = [
    { stream: 1 },
    { stream: 'true' },
    { Stream: true },
    { stream: true, Stream_Options: { include_usage: false } },
    { stream: true, stream_options: [1] },
    { stream: true, stream_options: 'abc' },
  ]
  for (const fields of evasive) {
    test(`nothing of a stream that another reader would not count: ${JSON.stringify(fields)}`, async () => {
      expect((await latchkey.complete({ ...question, ...fields })).status).toBe(400)
      expect(latchkey.upstream.requests).toEqual([])
    })
  }

  test('the options of a stream up to 32 of them', async () => {
    latchkey.upstream.answer.current = () => streamReply(eventOf('[DONE]'))
    const options = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`o${index}`, 1]))
    const ask = (count: number) => latchkey.complete({ ...question, stream: true, stream_options: options(count) })
    expect((await ask(32)).status).toBe(200)
    expect((await ask(33)).status).toBe(400)
    expect(latchkey.upstream.requests).toHaveLength(1)
  })

  test('nothing of a body that cannot be written again, with 400 instead of 500', async () => {
    const deep = `{"stream":true,"stream_options":{},"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`
    expect((await latchkey.complete(deep)).status).toBe(400)
    expect(latchkey.upstream.requests).toEqual([])
  })

  const broken: [body: string, problem: string][] = [
    ['', ': line 1, column 1: expected {, but the text ends'],
    ['[]', ', not a list'],
    ['null', ', not null'],
    ['{', ': line 1, column 2: expected a name in double quotes, or }, but the text ends'],
    ['"x"', ', not a text'],
    ['\ufeff{}', ': line 1, column 1: remove the byte order mark'],
    ['{"model": "a",\n "stream": True}', ': line 2, column 12: expected a value'],
  ]
  test('nothing of a body that is not a JSON object', async () => {
    for (const [body, problem] of broken) {
      const response = await latchkey.complete(body)
      expect(response.status).toBe(400)
      const message = `The body must be a JSON object${problem}`
      expect(await response.json()).toEqual({
        error: { code: 400, message, metadata: { error_type: expect.any(String) } },
      })
    }
    expect(latchkey.upstream.requests).toEqual([])
  })

  test('nothing from a management key', async () => {
    const { key } = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'admin', kind: 'management' })
    expect((await latchkey.complete(question, { authorization: `Bearer ${key}` })).status).toBe(403)
    expect(latchkey.upstream.requests).toEqual([])
  })

  test('nothing more from a key that was disabled between two requests', async () => {
    const { key } = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'brief' })
    const authorization = `Bearer ${key}`
    expect((await latchkey.complete(question, { authorization })).status).toBe(200)
    await latchkey.admin('keys.disable', { key: 'brief' })
    expect((await latchkey.complete(question, { authorization })).status).toBe(401)
    expect(latchkey.upstream.requests).toHaveLength(1)
  })
})

describe('the caller gets', () => {
  test('status, body and headers of an upstream error as they are, but no challenge and no cookie', async () => {
    const error = '{"error":{"message":"too many","type":"rate_limit"}}'
    const headers = {
      'retry-after': '7',
      'set-cookie': 'a=b',
      'www-authenticate': 'Basic',
      'content-type': 'application/json',
    }
    latchkey.upstream.answer.current = () => new Response(error, { status: 429, headers })
    const response = await latchkey.complete()
    expect(response.status).toBe(429)
    expect(await response.text()).toBe(error)
    expect(response.headers.get('retry-after')).toBe('7')
    expect(response.headers.get('set-cookie')).toBeNull()
    expect(response.headers.get('www-authenticate')).toBeNull()
    expect(await latchkey.usageOf(response)).toMatchObject([
      { status: 429, completed: true, total_tokens: null, usage_source: 'none' },
    ])
  })

  test('the usage event of a stream only when it asked for it', async () => {
    const delta = deltaOf('hi')
    latchkey.upstream.answer.current = () => streamReply(delta + usageEvent + eventOf('[DONE]'))
    const plain = await latchkey.complete({ ...question, stream: true })
    expect(await plain.text()).toBe(delta + eventOf('[DONE]'))
    const asking = await latchkey.complete({ ...question, stream: true, stream_options: { include_usage: true } })
    expect(await asking.text()).toBe(delta + usageEvent + eventOf('[DONE]'))
    for (const response of [plain, asking])
      expect(await latchkey.usageOf(response)).toMatchObject([{ streamed: true, completed: true, total_tokens: 7 }])
  })

  test('the usage of a stream as well where it is asked for as OpenRouter does', async () => {
    const whole = deltaOf('one') + usageEvent + eventOf('[DONE]')
    latchkey.upstream.answer.current = () => streamReply(whole)
    const rows: [more: object, hasUsage: boolean][] = [
      [{ usage: { include: true } }, true],
      [{ usage: { include: true }, stream_options: { include_usage: false } }, true],
      [{ usage: { include: false } }, false],
      [{ usage: { include: 'true' } }, false],
      [{ usage: true }, false],
      [{ usage: null }, false],
    ]
    for (const [more, hasUsage] of rows) {
      const response = await latchkey.complete({ ...question, stream: true, ...more })
      expect(await response.text()).toBe(hasUsage ? whole : deltaOf('one') + eventOf('[DONE]'))
      const asked = JSON.parse(latchkey.upstream.requests.at(-1)?.body ?? '') as object
      expect(asked).toMatchObject({ ...more, stream_options: { include_usage: true } })
      expect(await latchkey.usageOf(response)).toMatchObject([{ total_tokens: 7 }])
    }
  })

  test('the same of a stream whose media type is written in capitals', async () => {
    const headers = { 'content-type': 'Text/Event-Stream' }
    latchkey.upstream.answer.current = () => new Response(deltaOf('one') + usageEvent + eventOf('[DONE]'), { headers })
    const response = await latchkey.complete({ ...question, stream: true })
    expect(await response.text()).toBe(deltaOf('one') + eventOf('[DONE]'))
    expect(await latchkey.usageOf(response)).toMatchObject([{ total_tokens: 7, completed: true }])
  })

  test('each event as soon as the upstream sends it', async () => {
    const held = holdStream()
    latchkey.upstream.answer.current = () => held.response
    held.send(deltaOf('one'))
    const response = await latchkey.complete({ ...question, stream: true })
    const reader = response.body?.getReader()
    expect(Buffer.from((await reader?.read())?.value ?? '').toString()).toContain('one')
    held.send(deltaOf('two'))
    expect(Buffer.from((await reader?.read())?.value ?? '').toString()).toContain('two')
    held.end()
    expect((await reader?.read())?.done).toBe(true)
  })

  test('502 when the upstream cannot be reached, and 503 when no upstream is configured', async () => {
    for (const [upstreamUrl, status] of [
      ['http://127.0.0.1:1/v1', 502],
      [undefined, 503],
    ] as const) {
      const server = await startTestServer({ upstreamUrl })
      const { key } = await server.admin<Row & { key: string }>('keys.create', { name: 'app' })
      const init = { method: 'POST', headers: { authorization: `Bearer ${key}` }, body: '{}' }
      const response = await fetch(`${server.server.baseUrl}/chat/completions`, init)
      expect(response.status).toBe(status)
      const text = await response.text()
      expect(JSON.parse(text)).toEqual({
        error: { code: status, message: expect.any(String), metadata: { error_type: expect.any(String) } },
      })
      expect(text).not.toContain('127.0.0.1')
      const { data } = await server.admin<{ data: UsageRow[] }>('usage.requests')
      // What is never forwarded leaves no row.
      expect(data).toMatchObject(upstreamUrl === undefined ? [] : [{ status, completed: false }])
      await server.stop()
    }
  })
})

test('a key that is deleted while its request is on the way infers nothing any more', async () => {
  const { key, id } = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'leaver' })
  const body = JSON.stringify(question)
  const { socket, answer } = openRawRequest(`${latchkey.server.baseUrl}/chat/completions`, 'POST', {
    authorization: `Bearer ${key}`,
    'content-length': String(body.length),
  })
  socket.write(body.slice(0, 10))
  // A response on another connection shows that the server has had time to read the first.
  await (await latchkey.complete()).text()
  await latchkey.admin('keys.delete', { key: id })
  latchkey.upstream.requests.length = 0
  socket.write(body.slice(10))
  expect((await answer).status).toBe(401)
  expect(latchkey.upstream.requests).toHaveLength(0)
})
