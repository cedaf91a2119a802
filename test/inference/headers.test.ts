// Which headers pass: to an inference server and back only what inference needs, and what an admin names for that
// server.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { selectReturned } from '../../src/inference/upstream/headers.ts'
import { answer, type Inference, question, startInference } from '../support/inference.ts'
import { type Row, startTestServer, type TestServer } from '../support/latchkey.ts'
import { openRawRequest } from '../support/raw-request.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'

let latchkey: Inference
let named: ScriptedUpstream
beforeAll(async () => {
  latchkey = await startInference()
  named = await startScriptedUpstream()
  const input = { name: 'named', base_url: named.url, models: ['named'], priority: 1, credential: 'named-secret' }
  await latchkey.admin('upstreams.add', input)
})
beforeEach(async () => {
  latchkey.reset()
  named.requests.length = 0
  named.answer.current = () => Response.json(answer)
  await latchkey.admin('upstreams.update', { upstream: 'named', forward_headers: [], return_headers: [] })
})
afterAll(async () => {
  await latchkey.stop()
  await named.stop()
})

const ask = (model: string, headers: Record<string, string> = {}) => latchkey.complete({ ...question, model }, headers)
/** What the runtime sends with every request, and what Latchkey sets. */
const always = ['accept', 'accept-encoding', 'authorization', 'connection', 'content-length', 'content-type', 'host']
const ours = [...always, 'user-agent', 'via', 'x-request-id']

describe('an upstream gets', () => {
  const needed = {
    accept: 'text/event-stream',
    'user-agent': 'agent/1',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    tracestate: 'a=b',
    'idempotency-key': 'once',
    'openai-beta': 'assistants=v2',
    'anthropic-version': '2023-06-01',
    'anthropic-beta': 'files-api',
    'x-session-id': 'session',
  }
  test('the headers that inference needs, as they were sent', async () => {
    await ask('asked-model', needed)
    expect(Object.fromEntries(latchkey.upstream.requests[0]?.headers ?? [])).toMatchObject(needed)
  })

  const kept = [
    'x-portkey-provider',
    'x-portkey-custom-host',
    'x-portkey-config',
    'x-portkey-api-key',
    'x-litellm-tags',
    'helicone-target-url',
    'openai-organization',
    'openai-project',
    'x-stainless-os',
    'accept-language',
    'referer',
    'cache-control',
    'x-forwarded-for',
    'x-forwarded-host',
    'forwarded',
    'x-real-ip',
    'cf-connecting-ip',
    'x-original-url',
    'x-http-method-override',
    'x-api-key',
    'cookie',
  ]
  test('nothing else of a request', async () => {
    await ask('asked-model', Object.fromEntries(kept.map((name) => [name, 'theirs'])))
    const names = [...(latchkey.upstream.requests[0]?.headers.keys() ?? [])]
    expect(names.filter((name) => !ours.includes(name))).toEqual([])
  })

  test('nothing of a request for its models, whose list is the same for everybody', async () => {
    const headers = { authorization: `Bearer ${latchkey.key.key}`, ...needed, 'x-portkey-provider': 'theirs' }
    await fetch(`${latchkey.server.baseUrl}/models`, { headers })
    const sent = Object.fromEntries(latchkey.upstream.requests[0]?.headers ?? [])
    expect(latchkey.upstream.requests[0]?.path).toBe('/v1/models')
    expect(Object.keys(sent).filter((name) => !ours.includes(name))).toEqual([])
    expect(JSON.stringify(sent)).not.toContain('agent/1')
  })

  test('the id of the request here, not one that the caller chose', async () => {
    const response = await ask('asked-model', { 'x-request-id': 'chosen' })
    expect(latchkey.upstream.requests[0]?.headers.get('x-request-id')).toBe(response.headers.get('x-request-id') ?? '')
  })

  test('no header that the caller names as one of its connection', async () => {
    const { socket, answer: whole } = openRawRequest(`${latchkey.server.baseUrl}/chat/completions`, 'POST', {
      authorization: `Bearer ${latchkey.key.key}`,
      connection: 'close, Idempotency-Key',
      'idempotency-key': 'once',
      'openai-beta': 'kept',
      'content-length': '2',
    })
    socket.write('{}')
    await whole
    socket.destroy()
    const sent = latchkey.upstream.requests[0]?.headers
    expect([sent?.get('idempotency-key'), sent?.get('openai-beta')]).toEqual([null, 'kept'])
  })

  test('more by name, that one alone and at once, until the name is taken back', async () => {
    const headers = { 'http-referer': 'https://app.example', 'x-title': 'app' }
    const sent = async (model: string, upstream: ScriptedUpstream) => {
      await ask(model, headers)
      const got = upstream.requests.at(-1)?.headers
      return [got?.get('http-referer') ?? null, got?.get('x-title') ?? null]
    }
    expect(await sent('named', latchkey.upstream)).toEqual([null, null])
    await latchkey.admin('upstreams.update', { upstream: 'named', forward_headers: ['HTTP-Referer'] })
    latchkey.upstream.answer.current = () => Response.json({}, { status: 503 })
    expect(await sent('named', named)).toEqual(['https://app.example', null])
    expect(latchkey.upstream.requests.at(-1)?.headers.has('http-referer')).toBe(false)
    await latchkey.admin('upstreams.update', { upstream: 'named', forward_headers: null })
    expect(await sent('named', named)).toEqual([null, null])
  })
})

describe('a caller gets', () => {
  const needed = {
    'content-type': 'application/json; charset=utf-8',
    'content-language': 'en',
    'retry-after': '7',
    'retry-after-ms': '7000',
    'x-should-retry': 'true',
    'request-id': 'req_1',
    'openai-processing-ms': '12',
    'openai-version': '2020-10-01',
    'x-ratelimit-limit-requests': '100',
    'x-ratelimit-remaining-tokens': '7',
    'x-ratelimit-reset': '1s',
    'anthropic-ratelimit-requests-remaining': '9',
    'ratelimit-policy': '"burst";q=100',
  }
  const kept = {
    'x-litellm-response-cost': '0.5',
    'x-litellm-key-spend': '12.5',
    'x-litellm-model-api-base': 'http://10.0.0.7:8000',
    'llm_provider-x-ratelimit-remaining-tokens': '7',
    'x-ratelimit': 'all',
    'x-accel-redirect': '/internal/secret',
    'x-accel-buffering': 'no',
    'x-sendfile': '/etc/passwd',
    authorization: 'Bearer upstream-secret',
    'x-api-key': 'upstream-secret',
    'set-cookie': 'a=b',
    'www-authenticate': 'Basic',
    server: 'vllm/0.9 on gpu-7',
    via: '1.1 gpu-7',
    'x-powered-by': 'Express',
    'openai-organization': 'acme',
    'anthropic-organization-id': 'acme',
    location: 'http://10.0.0.7/',
    link: '<http://10.0.0.7/>; rel=next',
    'cache-control': 'public, max-age=600',
    etag: '"a"',
    'access-control-allow-origin': '*',
    'strict-transport-security': 'max-age=1',
    'content-security-policy': 'sandbox',
    'clear-site-data': '*',
    'alt-svc': 'h2="elsewhere:443"',
    refresh: '0;url=http://elsewhere',
    'x-request-id': 'theirs',
  }
  const answers: [name: string, body: BodyInit, status: number][] = [
    ['an answer', JSON.stringify(answer), 200],
    ['an error', '{"error":{}}', 400],
  ]
  for (const [name, body, status] of answers)
    test(`of ${name} the headers that clients use, and nothing else`, async () => {
      latchkey.upstream.answer.current = () => new Response(body, { status, headers: { ...kept, ...needed } })
      const response = await ask('asked-model')
      expect(response.status).toBe(status)
      const headers = Object.fromEntries(response.headers)
      expect(headers).toMatchObject(needed)
      expect(headers['x-request-id']).not.toBe('theirs')
      const runtimes = ['content-length', 'date', 'transfer-encoding', 'x-request-id', 'connection', 'keep-alive']
      expect(Object.keys(headers).filter((key) => !(key in needed) && !runtimes.includes(key))).toEqual([])
    })

  test('of a stream the same', async () => {
    const headers = { ...kept, ...needed, 'content-type': 'text/event-stream' }
    latchkey.upstream.answer.current = () => new Response('data: [DONE]\n\n', { headers })
    const response = await latchkey.complete({ ...question, stream: true })
    for (const name of ['x-litellm-response-cost', 'x-accel-buffering', 'server'])
      expect(response.headers.has(name)).toBe(false)
    expect(response.headers.get('openai-processing-ms')).toBe('12')
  })

  test('of a list of models the same', async () => {
    latchkey.upstream.answer.current = () => Response.json({ object: 'list', data: [] }, { headers: { ...kept } })
    const single = await startTestServer({ upstreamUrl: latchkey.upstream.url })
    const { key } = await single.admin<Row & { key: string }>('keys.create', { name: 'app' })
    const response = await fetch(`${single.server.baseUrl}/models`, { headers: { authorization: `Bearer ${key}` } })
    expect(response.status).toBe(200)
    for (const name of Object.keys(kept).filter((each) => each !== 'x-request-id'))
      expect({ name, has: response.headers.has(name) }).toEqual({ name, has: false })
    await single.stop()
  })

  test('more by name, of the upstream that answers alone', async () => {
    const both = { 'x-inference-time': '5', 'llm_provider-region': 'eu' }
    const got = async () => {
      const { headers } = await ask('named')
      return [headers.get('x-inference-time'), headers.get('llm_provider-region')]
    }
    await latchkey.admin('upstreams.update', { upstream: 'named', return_headers: ['X-Inference-Time'] })
    latchkey.upstream.answer.current = () => Response.json({}, { headers: both })
    expect(await got()).toEqual([null, null])
    latchkey.upstream.answer.current = () => Response.json({}, { status: 503, headers: both })
    named.answer.current = () => Response.json(answer, { headers: both })
    expect(await got()).toEqual(['5', null])
    const more = { upstream: 'named', return_headers: ['x-inference-time', 'LLM_Provider-Region'] }
    expect(await latchkey.admin<Row>('upstreams.update', more)).toMatchObject({
      forward_headers: [],
      return_headers: ['x-inference-time', 'llm_provider-region'],
    })
    expect(await got()).toEqual(['5', 'eu'])
  })
})

describe('an admin cannot name', () => {
  let made = 0
  const add = (input: object) =>
    latchkey.admin('upstreams.add', { name: `u${made++}`, base_url: named.url, models: ['none'], ...input })
  const update = (input: object) => latchkey.admin('upstreams.update', { upstream: 'named', ...input })

  for (const [field, doing] of [
    ['forward_headers', 'forwarded'],
    ['return_headers', 'returned'],
  ])
    test(`a header that can never be ${doing}, with advice what to do instead`, async () => {
      for (const change of [add, update])
        await expect(change({ [String(field)]: ['x-title', 'X-Api-Key'] })).rejects.toMatchObject({
          code: 'invalid',
          message: expect.stringMatching(
            new RegExp(`^"X-Api-Key" can never be ${doing}: it may carry a credential; leave it out`),
          ),
        })
    })

  test('more headers than there can be, nor what is no name', async () => {
    const many = Array.from({ length: 33 }, (_, index) => `x-${index}`)
    await expect(add({ forward_headers: many })).rejects.toMatchObject({ code: 'invalid' })
    for (const name of ['', 'a b', 'x-*', 'x-title:', 'é', 'x'.repeat(65)])
      await expect(update({ return_headers: [name] })).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringContaining('1 to 64 letters, digits, hyphens or underscores'),
      })
  })

  test('the headers of the upstream of the settings', async () => {
    const change = { upstream: 'configured', forward_headers: ['x-title'] }
    await expect(latchkey.admin('upstreams.update', change)).rejects.toThrow('LATCHKEY_UPSTREAM_URL')
  })
})

test('a caller gets no header that the upstream names as one of its connection', async () => {
  const headers = { connection: 'close, X-RateLimit-A', 'x-ratelimit-a': '1', 'x-ratelimit-b': '2' }
  const got = selectReturned(new Headers(headers), () => true, [])
  expect([got['x-ratelimit-a'], got['x-ratelimit-b']]).toEqual([undefined, '2'])
})

describe('the credential of an upstream does not reach the caller', () => {
  const secret = 'named/secret+of="upstream"'
  let lone: TestServer
  let key = ''
  beforeAll(async () => {
    lone = await startTestServer()
    key = (await lone.admin<Row & { key: string }>('keys.create', { name: 'app' })).key
    await lone.admin('upstreams.add', { name: 'repeating', base_url: named.url, credential: secret })
  })
  afterAll(() => lone.stop())
  const call = (model = question.model) =>
    fetch(`${lone.server.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...question, model }),
    })
  const forms = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]
  forms.push(forms[1]?.replaceAll('/', '\\/') ?? '')
  const chunked = (text: string, size: number, status: number, type: string) => {
    const chunks = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const chunk = chunks.shift()
        if (chunk === undefined) controller.close()
        else controller.enqueue(new TextEncoder().encode(chunk))
      },
    })
    return new Response(body, { status, headers: { 'content-type': type } })
  }

  test('in a header that is returned, whatever the status', async () => {
    for (const status of [200, 429]) {
      const headers = { 'request-id': `for ${secret}!`, 'x-ratelimit-a': secret, 'retry-after': '1' }
      named.answer.current = () => Response.json(answer, { status, headers })
      const response = await call()
      const got = ['request-id', 'x-ratelimit-a', 'retry-after'].map((name) => response.headers.get(name))
      expect([response.status, got]).toEqual([status, ['for ***!', '***', '1']])
    }
  })

  test('in an error, short or in chunks that split it, as text or as events, in any spelling', async () => {
    const text = `[${forms.join(' | ')}] ${secret.slice(0, 9)} äöü`
    const clean = `[${forms.map(() => '***').join(' | ')}] ${secret.slice(0, 9)} äöü`
    for (const status of [400, 403, 500]) {
      named.answer.current = () => new Response(text, { status, headers: { 'content-type': 'text/plain' } })
      const response = await call()
      expect([response.status, await response.text()]).toEqual([status, clean])
    }
    for (const type of ['text/plain', 'text/event-stream'])
      for (const size of [1, 7, 40]) {
        named.answer.current = () => chunked(text, size, 403, type)
        expect([type, size, await (await call()).text()]).toEqual([type, size, clean])
      }
  })

  test('nor a token that was exchanged for it', async () => {
    const token = 'exchanged-token-of-upstream'
    const file = join(lone.folder, 'upstream.jwt')
    writeFileSync(file, 'eyJhbGciOiJub25lIn0.e30.c2ln')
    const exchange = { credential_exchange: { token_file: file }, models: ['exchanged'] }
    await lone.admin('upstreams.add', { name: 'exchanged', base_url: named.url, ...exchange })
    await lone.admin('upstreams.update', { upstream: 'repeating', models: ['named'] })
    named.answer.current = (request) =>
      request.url.endsWith('/oauth/token')
        ? Response.json({ access_token: token, token_type: 'Bearer', expires_in: 300 })
        : new Response(`refused: ${request.headers.get('authorization')}`, { status: 403 })
    expect(await (await call('exchanged')).text()).toBe('refused: Bearer ***')
    await lone.admin('upstreams.remove', { upstream: 'exchanged' })
    await lone.admin('upstreams.update', { upstream: 'repeating', models: ['*'] })
  })

  test('and a successful response passes as it is', async () => {
    const said = { ...answer, choices: [{ message: { content: secret } }] }
    named.answer.current = () => Response.json(said)
    expect(await (await call()).json()).toEqual(said)
  })

  test('and a credential too short to be a secret leaves errors readable', async () => {
    await lone.admin('upstreams.update', { upstream: 'repeating', credential: 'EMPTY' })
    named.answer.current = () => Response.json({ error: 'EMPTY prompt' }, { status: 400 })
    expect(await (await call()).json()).toEqual({ error: 'EMPTY prompt' })
  })
})
