// Lists of models from inference servers that stall, never end or send too much: neither the other lists nor the
// service wait for them.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { type Inference, startInference } from '../../support/inference.ts'
import { type Row, startTestServer } from '../../support/latchkey.ts'
import { openRawRequest } from '../../support/raw-request.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../../support/scripted-upstream.ts'

let latchkey: Inference
let bad: ScriptedUpstream
beforeAll(async () => {
  latchkey = await startInference()
  bad = await startScriptedUpstream()
  await latchkey.admin('upstreams.add', { name: 'bad', base_url: bad.url, models: ['bad/*'] })
})
beforeEach(() => {
  latchkey.reset()
  bad.requests.length = 0
  latchkey.upstream.answer.current = () => Response.json({ data: [{ id: 'good' }] })
})
afterAll(async () => {
  await latchkey.stop()
  await bad.stop()
})

/** Begins to answer and never ends. With `drips` it sends a space from time to time. */
function stalling({ drips = false } = {}): Response {
  let timer: ReturnType<typeof setInterval> | undefined
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(Buffer.from('{"data":'))
      if (drips) timer = setInterval(() => controller.enqueue(Buffer.from(' ')), 500)
    },
    cancel: () => clearInterval(timer),
  })
  return new Response(body, { headers: { 'content-type': 'application/json' } })
}
const ask = async (path: string, { credential = latchkey.key.key, ...others }: Record<string, string> = {}) => {
  const headers = { authorization: `Bearer ${credential}`, ...others }
  const response = await fetch(latchkey.server.baseUrl + path, { headers })
  const { data } = (await response.json()) as { data?: Row[] }
  return { status: response.status, ids: data?.map(({ id }) => id) }
}
const check = async () => {
  const { data } = await latchkey.admin<{ data: (Row & { problem: string })[] }>('upstreams.check', { upstream: 'bad' })
  return data[0]
}

test('a key for a preset that does not exist sees no model of a single inference server', async () => {
  const lone = await startTestServer({ upstreamUrl: latchkey.upstream.url })
  const input = { name: 'narrow', allowed_presets: ['absent'] }
  const { key } = await lone.admin<Row & { key: string }>('keys.create', input)
  const response = await fetch(`${lone.server.baseUrl}/models`, { headers: { authorization: `Bearer ${key}` } })
  expect([response.status, await response.json()]).toEqual([200, { object: 'list', data: [] }])
  await lone.stop()
})

describe('an inference server that stalls after the head of its answer', () => {
  test('is left out of the list, and its response is not awaited any longer', async () => {
    bad.answer.current = () => stalling({ drips: true })
    const answers = await Promise.all(['/models', '/models/good', '/models/bad/x'].map((path) => ask(path)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 504])
    expect(answers[0]?.ids).toEqual(['good'])
    // Who comes later does not wait for it again.
    expect((await ask('/models')).ids).toEqual(['good'])
    expect(bad.requests).toHaveLength(1)
  })
})

describe('an inference server that sends', () => {
  const endless = () => {
    const chunk = Buffer.alloc(256 * 1024, ' ')
    return new Response(new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(chunk) }))
  }
  const inflating = () =>
    new Response(gzipSync(Buffer.alloc(64 * 1024 * 1024, ' ')), { headers: { 'content-encoding': 'gzip' } })
  for (const [name, answer, problem] of [
    ['without end', endless, 'sent a response of more than 4194304 bytes'],
    ['what inflates', inflating, 'is encoded'],
    ['no list', () => Response.json({ data: {} }), 'not a list of models'],
    ['null', () => Response.json(null), 'not a list of models'],
  ] as const)
    test(`${name} is left out of the list, and a check says why`, async () => {
      bad.answer.current = answer
      expect((await ask('/models')).ids).toEqual(['good'])
      expect(await check()).toMatchObject({ ok: false, models: null })
      expect((await check())?.problem).toContain(problem)
    })

  test('models without a name has those that have one', async () => {
    bad.answer.current = () => Response.json({ data: [null, 1, { id: 5 }, { id: 'bad/x' }] })
    expect((await ask('/models')).ids).toEqual(['good', 'bad/x'])
    expect(await check()).toMatchObject({ ok: true, models: 1 })
  })
})

describe('what an inference server lists', () => {
  let made = 0
  const createKey = async (bounds: object = {}) =>
    (await latchkey.admin<Row & { key: string }>('keys.create', { name: `lister-${made++}`, ...bounds })).key
  const listing = (...ids: string[]) => Response.json({ data: ids.map((id) => ({ id, object: 'model' })) })
  const asked = () => [latchkey.upstream.requests.length, bad.requests.length]
  beforeEach(() => {
    latchkey.upstream.answer.current = () => listing('good', 'other')
    bad.answer.current = () => listing('bad/x')
  })

  test('is requested once in a few seconds, for every caller and path', async () => {
    const bounded = await createKey({ allowed_models: ['good', 'bad/*'] })
    const first = await Promise.all([ask('/models'), ask('/models', { credential: bounded }), ask('/models/good')])
    expect(first.map(({ ids }) => ids)).toEqual([['good', 'other', 'bad/x'], ['good', 'bad/x'], undefined])
    latchkey.upstream.answer.current = () => listing('new')
    expect((await ask('/models')).ids).toEqual(['good', 'other', 'bad/x'])
    expect((await ask('/models/bad/x', { credential: bounded })).status).toBe(200)
    expect(asked()).toEqual([1, 1])
    latchkey.reset()
    latchkey.upstream.answer.current = () => listing('new')
    expect((await ask('/models')).ids).toEqual(['new', 'bad/x'])
  })

  test('is asked for at once when the inference server was changed', async () => {
    await ask('/models')
    bad.answer.current = () => listing('bad/y')
    await latchkey.admin('upstreams.update', { upstream: 'bad', priority: 50 })
    expect((await ask('/models')).ids).toEqual(['good', 'other', 'bad/y'])
    expect(asked()).toEqual([1, 2])
  })

  test('is not asked for again at once when that failed', async () => {
    bad.answer.current = () => new Response('no', { status: 500 })
    for (const path of ['/models', '/models', '/models/bad/x']) await ask(path)
    // The other one, whose list lacks the model, is asked for it.
    expect(asked()).toEqual([2, 1])
    latchkey.reset()
    bad.answer.current = () => listing('bad/x')
    expect((await ask('/models/bad/x')).status).toBe(200)
  })

  test('contains one model, which is not requested separately', async () => {
    const headers = { authorization: `Bearer ${latchkey.key.key}` }
    const response = await fetch(`${latchkey.server.baseUrl}/models/bad/x`, { headers })
    expect([response.status, await response.json()]).toEqual([200, { id: 'bad/x', object: 'model' }])
    for (const { requests } of [latchkey.upstream, bad])
      expect(requests.map(({ path }) => path)).toEqual(['/v1/models'])
  })

  test('reaches the others though the client left for whom it was asked', async () => {
    const reached = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    bad.answer.current = async () => {
      reached.resolve()
      await gate.promise
      return listing('bad/x')
    }
    const leaving = new AbortController()
    const headers = { authorization: `Bearer ${latchkey.key.key}` }
    const left = fetch(`${latchkey.server.baseUrl}/models`, { headers, signal: leaving.signal })
    await reached.promise
    const staying = ask('/models')
    leaving.abort()
    await expect(left).rejects.toThrow()
    gate.resolve()
    expect((await staying).ids).toEqual(['good', 'other', 'bad/x'])
    expect(bad.requests).toHaveLength(1)
  })

  test('takes nothing of the request that it was asked for', async () => {
    await ask('/models', { 'user-agent': 'mine/1', 'x-session-id': 's', accept: 'text/html', traceparent: '00-1-2-3' })
    const headers = JSON.stringify([...(bad.requests[0]?.headers ?? [])])
    for (const value of ['mine/1', '"s"', 'text/html', '00-1-2-3']) expect(headers).not.toContain(value)
  })

  test('is not waited for by a request of another Latchkey, which may be what it waits for', async () => {
    bad.answer.current = async () => {
      if (bad.requests.length > 1) return listing('bad/inner')
      // As when the two list each other.
      const { ids = [] } = await ask('/models', { via: '1.1 latchkey-00000000' })
      return listing(...ids)
    }
    expect((await ask('/models')).ids).toEqual(['good', 'other', 'bad/inner'])
  })

  test('is there for a caller without a Host, and for others after it', async () => {
    const request = openRawRequest(`${latchkey.server.baseUrl}/models`, 'GET', {
      host: '[::1',
      authorization: `Bearer ${latchkey.key.key}`,
    })
    expect((await request.answer).status).toBe(200)
    request.socket.destroy()
    expect((await ask('/models')).ids).toEqual(['good', 'other', 'bad/x'])
  })

  test('is not kept for others where a Via went along, which the inference server may refuse', async () => {
    const via = '1.1 latchkey-00000000'
    bad.answer.current = ({ headers }) =>
      headers.get('via')?.includes('00000000') === true ? new Response('', { status: 431 }) : listing('bad/x')
    expect((await ask('/models', { via })).ids).toEqual(['good', 'other'])
    expect((await ask('/models')).ids).toEqual(['good', 'other', 'bad/x'])
    expect((await ask('/models', { via })).ids).toEqual(['good', 'other', 'bad/x'])
    expect(asked()).toEqual([2, 2])
  })

  test('counts under the rate of the key, as every request does', async () => {
    const credential = await createKey({ requests_per_minute: 3 })
    for (const path of ['/models', '/models/good', '/models/none'])
      expect((await ask(path, { credential })).status).not.toBe(429)
    for (const path of ['/models', '/models/good', '/models/@preset/none'])
      expect((await ask(path, { credential })).status).toBe(429)
    expect((await latchkey.complete(undefined, { authorization: `Bearer ${credential}` })).status).toBe(429)
  })
})

describe('a model that is not listed', () => {
  /** As Ollama does: it lists `tiny:latest`, and knows it as `tiny` too. */
  const knowing = (name: string, listed: string) => (request: Request) => {
    const { pathname } = new URL(request.url)
    if (pathname === '/v1/models')
      return Response.json({ object: 'list', data: listed === '' ? null : [{ id: listed }] })
    if (pathname === `/v1/models/${name}`) return Response.json({ id: decodeURIComponent(name), object: 'model' })
    return Response.json({ error: { message: 'not found' } }, { status: 404 })
  }
  const show = async (model: string, credential = latchkey.key.key) => {
    const headers = { authorization: `Bearer ${credential}` }
    const response = await fetch(`${latchkey.server.baseUrl}/models/${model}`, { headers })
    return { status: response.status, body: (await response.json()) as Row }
  }
  const pathsOf = ({ requests }: ScriptedUpstream) => requests.map(({ path }) => path)

  test('is shown as the upstream that serves it describes it', async () => {
    latchkey.upstream.answer.current = knowing('tiny', 'tiny:latest')
    expect(await show('tiny')).toEqual({ status: 200, body: { id: 'tiny', object: 'model' } as Row })
    expect([pathsOf(latchkey.upstream), pathsOf(bad)]).toEqual([['/v1/models', '/v1/models/tiny'], []])
    latchkey.upstream.answer.current = knowing('none', '')
    bad.answer.current = knowing('bad/a%20b', '')
    expect(await show('bad/a%20b')).toEqual({ status: 200, body: { id: 'bad/a b', object: 'model' } as Row })
  })

  test('is a 404 where no upstream knows it, and a failure where one cannot say', async () => {
    latchkey.upstream.answer.current = knowing('tiny', 'tiny:latest')
    expect(await show('other')).toMatchObject({
      status: 404,
      body: { error: { message: 'No inference server serves the model "other": use one of GET /models' } },
    })
    const answerNow = latchkey.upstream.answer.current
    latchkey.upstream.answer.current = (request) =>
      request.url.endsWith('/models') ? answerNow(request) : new Response(null, { status: 302 })
    expect((await show('other')).status).toBe(502)
  })

  test('is not asked for with a name that leads elsewhere, nor for a key that may not use it', async () => {
    latchkey.upstream.answer.current = knowing('tiny', 'tiny:latest')
    for (const model of ['a%2F..%2F..%2Fsecret', 'a%2F%2Fb', '..%5Cb', 'a%2F%252e%252e%2Fb'])
      expect((await show(model)).status).toBe(404)
    const bounds = { name: 'bounded to tiny:latest', allowed_models: ['tiny:latest'] }
    const { key } = await latchkey.admin<Row & { key: string }>('keys.create', bounds)
    expect((await show('tiny', key)).status).toBe(403)
    expect(pathsOf(latchkey.upstream)).toEqual(['/v1/models'])
  })

  test('has a name of any letters, of which none ends the path', async () => {
    latchkey.upstream.answer.current = knowing('a%3Fb%23c', 'tiny:latest')
    expect((await show('a%3Fb%23c')).body.id).toBe('a?b#c')
  })
})
