// What a caller might do to spend nothing, reach further or see more, and what an inference server might do to those in
// front of it.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { answer, eventOf, type Inference, question, startInference, streamReply, usage } from '../support/inference.ts'
import { listenLocally, type Row, startTestServer } from '../support/latchkey.ts'
import { openRawRequest } from '../support/raw-request.ts'

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

type Key = Row & { key: string }
let made = 0
const create = (bounds: object = {}) => latchkey.admin<Key>('keys.create', { name: `k${made++}`, ...bounds })
const answers = (make: () => Response) => {
  latchkey.upstream.answer.current = make
}
const post = (path: string, body: object, key = latchkey.key.key) =>
  fetch(latchkey.server.baseUrl + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
const idOf = (response: Response) => response.headers.get('x-request-id')
const rowOf = async (response: Response) => {
  await response.text()
  return (await latchkey.usageOf(response))[0]
}

describe('what was used is known', () => {
  test('of an answer of many megabytes, whose usage stands at its end', async () => {
    const data = Array.from({ length: 40 }, () => ({ embedding: 'x'.repeat(256 * 1024) }))
    answers(() => Response.json({ object: 'list', data, model: 'm', usage: { ...usage, cost: 2 } }))
    expect(await rowOf(await post('/embeddings', { model: 'm', input: 'x' }))).toMatchObject({ ...usage, cost: 2 })
  })

  test('of one whose usage stands before what is long', async () => {
    const data = Array.from({ length: 80 }, () => ({ embedding: 'x'.repeat(256 * 1024) }))
    answers(() => Response.json({ model: 'm', object: 'list', usage: { ...usage, cost: 2 }, data }))
    expect(await rowOf(await post('/embeddings', { model: 'm', input: 'x' }))).toMatchObject({ ...usage, cost: 2 })
  })

  test('of an event of many megabytes', async () => {
    const response = { model: 'm', metadata: 'x'.repeat(6_000_000), usage: { input_tokens: 3, output_tokens: 4 } }
    answers(() => streamReply(eventOf({ type: 'response.completed', response })))
    const row = await rowOf(await post('/responses', { model: 'm', stream: true }))
    expect(row).toMatchObject({ completed: true, prompt_tokens: 3, total_tokens: 7 })
  })

  test('of a stream that begins with a byte order mark', async () => {
    answers(() => streamReply(`\ufeff${eventOf({ model: 'm', choices: [], usage })}${eventOf('[DONE]')}`))
    const row = await rowOf(await post('/chat/completions', { ...question, stream: true }))
    expect(row).toMatchObject(usage)
  })

  test('of a response with a cost and no tokens', async () => {
    answers(() => Response.json({ results: [], usage: { search_units: 1, cost: 0.002 } }))
    expect(await rowOf(await post('/rerank', { model: 'm' }))).toMatchObject({ cost: 0.002, total_tokens: null })
  })

  test('and stays so, however absurd an upstream counts', async () => {
    for (const reported of [
      { cost: 5_000_000 },
      { cost: -1 },
      { prompt_tokens: 1e9, completion_tokens: 1e9 },
      { cost: '1' },
    ]) {
      answers(() => Response.json({ usage: { ...usage, ...reported } }))
      await (await post('/chat/completions', question)).text()
    }
    expect(await latchkey.admin<object>('usage.verify')).toEqual({ ok: true, data: [] })
    const { data } = await latchkey.admin<{ data: { usage: number }[] }>('keys.list')
    for (const key of data) expect(key.usage).toBeLessThan(1_000)
  })
})

test('a price and a count that are each allowed make no cost that cannot be read again', async () => {
  await latchkey.admin('prices.set', { prices: [{ model: 'real-*', prompt: 1_000_000, completion: 1_000_000 }] })
  answers(() => Response.json({ model: 'real-x', usage: { prompt_tokens: 1e9, completion_tokens: 1e9 } }))
  expect(await rowOf(await post('/chat/completions', question))).toMatchObject({ prompt_tokens: 1e9, cost: null })
  expect(await latchkey.admin<object>('usage.verify')).toEqual({ ok: true, data: [] })
  await latchkey.admin('prices.remove', { model: 'real-*' })
})

describe('a caller is refused', () => {
  for (const [name, body] of [
    ['another case of model', { Model: 'secret', model: 'meta/a' }],
    ['another case of models', { MODELS: ['secret'], model: 'meta/a' }],
    ['a letter that only looks small', { ſtream: true, model: 'meta/a' }],
  ] as const)
    test(`${name}, which some inference servers take for the same`, async () => {
      expect((await post('/chat/completions', body)).status).toBe(400)
      expect(latchkey.upstream.requests).toHaveLength(0)
    })

  for (const body of [
    '{"model":"secret","model":"meta/a"}',
    '{"mod\\u0065l":"secret","model":"meta/a"}',
    '{"model":"m","stream":true,"stream":false}',
    '{"model":"m","stream":true,"stream_options":{"include_usage":true},"stream_options":{}}',
  ])
    test(`a member named twice, of which inference servers take this one or that: ${body}`, async () => {
      expect((await latchkey.complete(body)).status).toBe(400)
      expect(latchkey.upstream.requests).toHaveLength(0)
    })

  test('the same within a message, which decides nothing, is not', async () => {
    const body = '{"model":"m","messages":[{"role":"user","role":"user","content":"hi"}]}'
    expect((await latchkey.complete(body)).status).toBe(200)
  })

  for (const [name, body] of [
    ['levels', `{"model":"m","x":${'['.repeat(5_000_000)}${']'.repeat(5_000_000)}}`],
    ['objects', `${'{"a":'.repeat(5_000_000)}1${'}'.repeat(5_000_000)}`],
    ['values', `{"model":"m","x":[${'{},'.repeat(5_000_000)}1]}`],
  ] as const)
    test(`a body of millions of ${name}, before anybody else has to wait`, async () => {
      const { key } = await create({ allowed_models: ['m'] })
      const startedAt = process.cpuUsage()
      const response = await latchkey.complete(body, { authorization: `Bearer ${key}` })
      expect([response.status, (await response.text()).includes('at most')]).toEqual([400, true])
      // Measured were some 100; it was up to 19,000.
      const { user, system } = process.cpuUsage(startedAt)
      expect((user + system) / 1_000).toBeLessThan(3_000)
    })

  for (const climbing of ['..%2f..%2fmetrics', '%2e%2e%2fadmin', 'a%2f..%2f..%2fx', 'a%2f%2fb', '.'])
    test(`the model ${climbing}, whose path climbs out of the models`, async () => {
      latchkey.upstream.answer.current = () => Response.json({ data: [{ id: 'm' }] })
      const { socket, answer } = openRawRequest(`${latchkey.server.baseUrl}/models/${climbing}`, 'GET', {
        authorization: `Bearer ${latchkey.key.key}`,
      })
      expect((await answer).status).toBeOneOf([404, 405])
      socket.destroy()
      for (const { path } of latchkey.upstream.requests) expect(path).toBe('/v1/models')
    })

  for (const [name, change, status] of [
    ['a model that was taken away', { allowed_models: ['ok'] }, 403],
    ['a budget that was', { limit: 0 }, 402],
  ] as const)
    test(`${name} while its body was on the way`, async () => {
      const { key, id } = await create()
      const body = JSON.stringify(question)
      const { socket, answer } = openRawRequest(`${latchkey.server.baseUrl}/chat/completions`, 'POST', {
        authorization: `Bearer ${key}`,
        'content-length': String(body.length),
      })
      socket.write(body.slice(0, 10))
      await (await latchkey.complete()).text()
      await latchkey.admin('keys.update', { key: id, ...change })
      latchkey.upstream.requests.length = 0
      socket.write(body.slice(10))
      expect((await answer).status).toBe(status)
      expect(latchkey.upstream.requests).toHaveLength(0)
    })

  test('an invalid time as the end of a key', async () => {
    await expect(create({ expires_at: '2030-W01-1' })).rejects.toMatchObject({ code: 'invalid' })
  })
})

describe('an inference server', () => {
  test('that encodes though it was asked not to is not taken apart', async () => {
    const headers = { 'content-encoding': 'gzip', 'content-type': 'application/json' }
    answers(() => new Response(gzipSync(Buffer.alloc(64 * 1024 * 1024)), { headers }))
    const response = await post('/chat/completions', question)
    expect([response.status, (await response.text()).length < 300]).toEqual([502, true])
  })

  test('that redirects sends nobody anywhere', async () => {
    answers(() => Response.redirect('http://10.0.0.1/internal'))
    const response = await fetch(`${latchkey.server.baseUrl}/chat/completions`, {
      method: 'POST',
      redirect: 'manual',
      headers: { authorization: `Bearer ${latchkey.key.key}` },
      body: JSON.stringify(question),
    })
    expect([response.status, response.headers.get('location')]).toEqual([502, null])
  })

  test('passes no credential or policy to a caller', async () => {
    const kept = { 'x-ratelimit-remaining': '7' }
    const own = {
      authorization: 'Bearer own',
      'x-api-key': 'own',
      'clear-site-data': '*',
      'strict-transport-security': 'x',
      'alt-svc': 'h2="elsewhere:443"',
      refresh: '0;url=http://elsewhere',
    }
    answers(() => Response.json({}, { headers: { ...own, ...kept } }))
    const { headers } = await post('/chat/completions', question)
    for (const name of Object.keys(own)) expect({ name, value: headers.get(name) }).toEqual({ name, value: null })
    expect(headers.get('x-ratelimit-remaining')).toBe('7')
  })

  test('that is this service itself is asked once', async () => {
    const { key } = await create()
    const asked: string[] = []
    const counting = await listenLocally(async (request) => {
      const { method, url, headers, body } = request
      const { pathname } = new URL(url)
      asked.push(`${method} ${pathname}`)
      return asked.length > 20
        ? new Response(null, { status: 508 })
        : fetch(new URL(pathname, latchkey.server.baseUrl), { method, headers, body })
    })
    const itself = {
      name: 'itself',
      base_url: `${counting.url}/v1`,
      models: ['round'],
      priority: 1,
      credential: key,
    }
    await latchkey.admin('upstreams.add', itself)
    answers(() => Response.json({}, { status: 503 }))
    const response = await post('/chat/completions', { ...question, model: 'round' })
    expect(response.status).toBe(502)
    // One row: the looped request was not forwarded again.
    const { data } = await latchkey.admin<{ data: Row[] }>('usage.requests', { limit: 10 })
    expect(data.filter(({ model_asked }) => model_asked === 'round')).toMatchObject([{ request_id: idOf(response) }])

    answers(() => Response.json({ data: [{ id: 'a' }] }))
    const headers = { authorization: `Bearer ${latchkey.key.key}` }
    const head = await fetch(`${latchkey.server.baseUrl}/models`, { method: 'HEAD', headers })
    expect(head.status).toBe(200)
    expect(asked).toEqual(['POST /v1/chat/completions', 'GET /v1/models'])
    await latchkey.admin('upstreams.remove', { upstream: 'itself' })
    await counting.listener.drain()
  })

  test('that is another Latchkey is not a forwarding loop', async () => {
    const settings = { LATCHKEY_UPSTREAM_API_KEY: latchkey.key.key }
    const front = await startTestServer({ upstreamUrl: latchkey.server.baseUrl, settings })
    const { key } = await front.admin<Key>('keys.create', { name: 'front' })
    const headers = { authorization: `Bearer ${key}`, via: '1.0 proxy' }
    const body = JSON.stringify(question)
    const response = await fetch(`${front.server.baseUrl}/chat/completions`, { method: 'POST', headers, body })
    expect([response.status, await response.json()]).toEqual([200, answer])
    const via = latchkey.upstream.requests[0]?.headers.get('via') ?? ''
    expect(via).toMatch(/^1\.0 proxy, 1\.1 latchkey-[0-9a-f]{8}, 1\.1 latchkey-[0-9a-f]{8}$/)
    expect(new Set(via.split(', ')).size).toBe(3)
    await front.stop()
  })
})

test('what is never forwarded leaves no row, and the log names the key', async () => {
  const bare = await startTestServer()
  const { key, id } = await bare.admin<Key>('keys.create', { name: 'k' })
  const ask = async (model: string) => {
    const headers = { authorization: `Bearer ${key}` }
    const body = JSON.stringify({ ...question, model })
    return (await fetch(`${bare.server.baseUrl}/chat/completions`, { method: 'POST', headers, body })).status
  }
  expect(await ask('x')).toBe(503)
  await bare.admin('upstreams.add', { name: 'some', base_url: latchkey.upstream.url, models: ['some'] })
  expect(await ask('x')).toBe(404)
  expect(await bare.admin<object>('usage.requests')).toMatchObject({ data: [] })
  expect(bare.logLines.filter((line) => line.includes(id))).toHaveLength(2)
  await bare.stop()
})

test('a header that asks for an answer only if it is another one, or for a part of it, goes no further', async () => {
  const conditional = {
    'if-match': '"a"',
    'if-none-match': '"a"',
    'if-modified-since': 'Sat, 21 Nov 2026 00:00:00 GMT',
    'if-unmodified-since': 'Sat, 21 Nov 2026 00:00:00 GMT',
    'if-range': '"a"',
    range: 'bytes=0-1',
  }
  answers(() => Response.json({ data: [] }, { headers: { etag: '"a"' } }))
  const headers = { authorization: `Bearer ${latchkey.key.key}`, ...conditional }
  expect((await fetch(`${latchkey.server.baseUrl}/models`, { headers })).status).toBe(200)
  expect((await latchkey.complete(question, conditional)).status).toBe(200)
  for (const { headers } of latchkey.upstream.requests)
    for (const name of Object.keys(conditional))
      expect({ name, value: headers.get(name) }).toEqual({ name, value: null })
})

describe('the numbers of a body', () => {
  const numbers = '"seed":9223372036854775807, "x":[1.0,-0,1e400]'
  const asksForUsage = '"stream_options":{"include_usage":true}'
  for (const [name, sent, forwarded] of [
    ['with models: null', `{"model":5,"models":null,${numbers}}`, `{"model":5,"models":null,${numbers}}`],
    ['with a list of models', `{"models":["m"],${numbers}}`, `{${numbers},"model":"m"}`],
    ['of a stream', `{"stream":true,${numbers}}`, `{"stream":true,${numbers},${asksForUsage}}`],
    [
      'of a stream with options',
      `{"stream_options":{"include_usage":false},"stream":true,${numbers}}`,
      `{"stream":true,${numbers},${asksForUsage}}`,
    ],
    [
      'of a stream with both',
      `{"stream_options":null,"model":"m","stream":true,"models":["n"],${numbers}}`,
      `{"model":"m","stream":true,${numbers},${asksForUsage}}`,
    ],
  ] as const)
    test(`${name} go on as they came`, async () => {
      await (await latchkey.complete(sent)).text()
      expect(latchkey.upstream.requests[0]?.body).toBe(forwarded)
    })
})
