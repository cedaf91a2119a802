// One walk over every inference path (reference: Inference): what holds on one holds on all, with one row in the table of
// paths as the only difference.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type InferencePath, inferencePaths, type Target } from '../../src/values/inference-paths.ts'
import { type Inference, startInference, type UsageRow } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'

let latchkey: Inference
let next: ScriptedUpstream
const keys: Record<string, string> = {}
/** A stored response of each key. */
const storedBy: Record<string, string> = {}
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
const answer = { id: 'resp_1', model: 'served', usage }

beforeAll(async () => {
  latchkey = await startInference()
  next = await startScriptedUpstream()
  await latchkey.admin('upstreams.add', { name: 'next', base_url: next.url, priority: 1 })
  const newKey = async (name: string, more: object = {}) => {
    keys[name] = (await latchkey.admin<Row & { key: string }>('keys.create', { name, ...more })).key
  }
  keys.usual = latchkey.key.key
  await newKey('other')
  await newKey('boss', { kind: 'management' })
  await newKey('limited', { allowed_models: ['allowed'] })
  await newKey('spent')
  await newKey('disabled')
  await latchkey.admin('keys.update', { key: 'disabled', disabled: true })
  await newKey('slow', { requests_per_minute: 1 })
  for (const name of ['usual', 'limited', 'slow', 'spent']) {
    const id = `resp_of_${name}`
    latchkey.upstream.answer.current = () => Response.json({ ...answer, id })
    const response = await send(inferencePaths.responses, name)
    expect([response.status, await response.json()]).toEqual([200, { ...answer, id }])
    storedBy[name] = id
  }
  await latchkey.admin('keys.update', { key: 'spent', limit: 0 })
})
beforeEach(() => {
  latchkey.reset()
  latchkey.upstream.answer.current = () => Response.json(answer)
  next.requests.length = 0
  next.answer.current = () => Response.json(answer)
})
afterAll(async () => {
  await latchkey.stop()
  await next.stop()
})

function bodyFor({ body }: InferencePath, fields: Record<string, unknown>): BodyInit | undefined {
  if (body === 'none') return undefined
  if (body === 'json') return JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], input: 'héllo', ...fields })
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, String(value))
  form.set('file', new Blob(['RIFF']), 'a.wav')
  return form
}

const pathFor = ({ endpoint }: InferencePath, id: string) => endpoint.replace('{response}', id)

function send(
  path: InferencePath,
  keyName: string | undefined,
  { fields = {}, id = storedBy[keyName ?? ''] ?? 'resp_unknown', signal }: Partial<Options> = {},
): Promise<Response> {
  const body = bodyFor(path, { model: 'allowed', ...fields })
  return fetch(latchkey.server.baseUrl + pathFor(path, id), {
    method: path.method,
    headers: {
      ...(keyName === undefined ? {} : { authorization: `Bearer ${keys[keyName]}` }),
      ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}),
    },
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
  })
}
type Options = { fields: Record<string, unknown>; id: string; signal: AbortSignal }

const rows = Object.entries(inferencePaths) as [Target, InferencePath][]
const nameOf = ({ method, endpoint }: InferencePath) => `${method} ${endpoint}`

for (const [, path] of rows) {
  describe(nameOf(path), () => {
    const isJson = path.body === 'json'
    const names = path.body !== 'none'

    test('passes to the upstream, with its credential, and into the ledger', async () => {
      const response = await send(path, 'usual')
      expect([response.status, await response.json()]).toEqual([200, answer])
      const [sent] = latchkey.upstream.requests
      const upstreamPath = (path.besideVersion ? '' : '/v1') + pathFor(path, storedBy.usual ?? '')
      expect([sent?.method, sent?.path, sent?.headers.get('authorization')]).toEqual([
        path.method,
        upstreamPath,
        'Bearer upstream-secret',
      ])
      expect(sent?.body.includes('allowed')).toBe(names)
      expect(await latchkey.usageOf(response)).toMatchObject([
        {
          endpoint: path.endpoint,
          key_id: latchkey.key.id,
          upstream: 'configured',
          model: 'served',
          model_asked: names ? 'allowed' : null,
          status: 200,
          completed: true,
          total_tokens: path.isCharged ? 7 : null,
          usage_source: path.isCharged ? 'upstream' : 'none',
        },
      ])
    })

    test('is refused without a usable credential, before the upstream is asked', async () => {
      const statuses: number[] = []
      for (const name of [undefined, 'boss', 'disabled']) statuses.push((await send(path, name)).status)
      expect(statuses).toEqual([401, 403, 401])
      expect(latchkey.upstream.requests).toEqual([])
    })

    test('is refused when the budget is spent', async () => {
      expect((await send(path, 'spent')).status).toBe(402)
      expect(latchkey.upstream.requests).toEqual([])
    })

    test('counts for the rate of its key', async () => {
      await latchkey.admin('keys.update', { key: 'slow', requests_per_minute: 1_000 })
      await latchkey.admin('keys.update', { key: 'slow', requests_per_minute: 1 })
      const statuses: number[] = []
      for (let asked = 0; asked < 3 && statuses.at(-1) !== 429; asked++)
        statuses.push((await send(path, 'slow')).status)
      expect(statuses.at(-1)).toBe(429)
    })

    if (names)
      test('is held to the allowed models wherever the body names one', async () => {
        expect((await send(path, 'limited')).status).toBe(200)
        latchkey.upstream.requests.length = 0
        const others: Record<string, unknown>[] = [
          { model: 'other' },
          { model: undefined },
          ...(isJson
            ? [
                { models: ['allowed', 'other'] },
                { fallbacks: [{ allowed: ['other'] }] },
                { plugins: [{ id: 'x', model: 'other' }] },
              ]
            : [{ fallbacks: 'other' }, { 'metadata[model]': 'other' }, { litellm_metadata: '{"model":"other"}' }]),
        ]
        for (const fields of others) {
          const response = await send(path, 'limited', { fields })
          expect({ fields, isRefused: [400, 403].includes(response.status) }).toEqual({ fields, isRefused: true })
        }
        expect(latchkey.upstream.requests).toEqual([])
      })

    test('is aborted at the upstream when the client leaves', async () => {
      const asked = Promise.withResolvers<void>()
      const aborted = Promise.withResolvers<Response>()
      latchkey.upstream.answer.current = (request) => {
        request.signal.addEventListener('abort', () => aborted.resolve(new Response()))
        asked.resolve()
        return aborted.promise
      }
      const leaving = new AbortController()
      const response = send(path, 'usual', { signal: leaving.signal })
      await asked.promise
      leaving.abort()
      await expect(response).rejects.toThrow()
      await aborted.promise
      const last = async () => (await latchkey.admin<{ data: UsageRow[] }>('usage.requests', { limit: 1 })).data[0]
      await until('the row', async () => (await last())?.client_left === true)
      expect(await last()).toMatchObject({ endpoint: path.endpoint, status: 499, completed: false })
    })

    test(names ? 'goes on to the next upstream after a failure' : 'stays at the upstream that has it', async () => {
      latchkey.upstream.answer.current = () => Response.json({ error: 'down' }, { status: 503 })
      const response = await send(path, 'usual')
      expect(response.status).toBe(names ? 200 : 503)
      expect(next.requests.map(({ body }) => body)).toEqual(names ? [latchkey.upstream.requests[0]?.body ?? ''] : [])
    })

    if (path.ofResponse)
      test('is a 404 for a response of another key, and for one that nobody made', async () => {
        const texts: string[] = []
        for (const id of [storedBy.usual, 'resp_none', 'resp_of_usual%2F..', '..%2Fmodels', 'x'.repeat(600)]) {
          const response = await send(path, 'other', { id: id ?? '' })
          expect(response.status).toBe(404)
          texts.push(await response.text())
        }
        expect(texts[1]).toBe(texts[0] ?? '')
        expect(latchkey.upstream.requests).toEqual([])
      })

    test('answers with errors in the form of its API', async () => {
      latchkey.upstream.answer.current = () => Response.error()
      next.answer.current = () => Response.error()
      const response = await send(path, undefined)
      const body = (await response.json()) as { type?: string; error: object }
      expect(body.type).toBe(path.errors === 'messages' ? 'error' : undefined)
      expect(body.error).toMatchObject({ code: 401, message: 'Missing Authentication header' })
    })
  })
}

describe('a stored response', () => {
  test('is not recorded when the upstream does not keep it or has refused the request', async () => {
    const answers: [fields: object, status: number][] = [
      [{ store: false }, 200],
      [{}, 400],
    ]
    for (const [index, [fields, status]] of answers.entries()) {
      const id = `resp_unkept_${index}`
      latchkey.upstream.answer.current = () => Response.json({ ...answer, id }, { status })
      await (await send(inferencePaths.responses, 'usual', { fields: fields as Record<string, unknown> })).text()
      expect((await send(inferencePaths.showResponse, 'usual', { id })).status).toBe(404)
    }
  })

  test('of a stream is recorded too, and stays with the key that had its id first', async () => {
    const events = [
      { type: 'response.created', response: { id: 'resp_streamed', model: 'served' } },
      { type: 'response.completed', response: { id: 'resp_streamed', model: 'served', usage } },
    ]
    const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
    for (const name of ['usual', 'other']) {
      latchkey.upstream.answer.current = () => new Response(text, { headers: { 'content-type': 'text/event-stream' } })
      await (await send(inferencePaths.responses, name, { fields: { stream: true } })).text()
    }
    latchkey.upstream.answer.current = () => Response.json(answer)
    const statuses: number[] = []
    for (const name of ['usual', 'other'])
      statuses.push((await send(inferencePaths.showResponse, name, { id: 'resp_streamed' })).status)
    expect(statuses).toEqual([200, 404])
  })

  test('is continued by its own key only, at the upstream that has it', async () => {
    const asked: [keyName: string, previous: unknown, status: number][] = [
      ['usual', storedBy.usual, 200],
      ['usual', null, 200],
      ['other', storedBy.usual, 404],
      ['other', 'resp_none', 404],
      ['usual', storedBy.slow, 404],
      ['usual', ['resp_of_usual'], 400],
      ['usual', '../models', 404],
    ]
    const refusals = new Set<string>()
    for (const [name, previous_response_id, status] of asked) {
      latchkey.upstream.requests.length = 0
      const response = await send(inferencePaths.responses, name, { fields: { previous_response_id } })
      expect([name, previous_response_id, response.status]).toEqual([name, previous_response_id, status])
      expect(latchkey.upstream.requests).toHaveLength(status === 200 ? 1 : 0)
      const text = await response.text()
      if (status === 404) refusals.add(text)
    }
    expect([...refusals]).toHaveLength(1)
    const folded = await send(inferencePaths.responses, 'other', { fields: { Previous_response_ID: storedBy.usual } })
    expect([folded.status, latchkey.upstream.requests]).toEqual([400, []])
    latchkey.upstream.answer.current = () => Response.json({ error: 'down' }, { status: 503 })
    const fields = { previous_response_id: storedBy.usual }
    expect((await send(inferencePaths.responses, 'usual', { fields })).status).toBe(503)
    expect(next.requests).toEqual([])
    expect((await send(inferencePaths.chat, 'other', { fields })).status).toBe(200)
  })

  test('is continued by a model of its upstream only', async () => {
    await latchkey.admin('upstreams.add', { name: 'elsewhere', base_url: next.url, models: ['far'], priority: 2 })
    next.answer.current = () => Response.json({ ...answer, id: 'resp_far' })
    await (
      await send(inferencePaths.responses, 'usual', {
        fields: { model: 'far', provider: { only: ['elsewhere'] } },
      })
    ).text()
    const previous_response_id = 'resp_far'
    const refused = await send(inferencePaths.responses, 'usual', { fields: { previous_response_id } })
    expect([refused.status, await refused.text()]).toEqual([404, expect.stringContaining('use the model that made it')])
    const fields = { previous_response_id, models: ['far', 'other'] }
    expect((await send(inferencePaths.responses, 'usual', { fields })).status).toBe(200)
    await latchkey.admin('upstreams.remove', { upstream: 'elsewhere' })
    expect((await send(inferencePaths.responses, 'usual', { fields })).status).toBe(404)
  })

  test('passes on the parameters of its lists, and no others', async () => {
    const url = `${latchkey.server.baseUrl}/responses/${storedBy.usual}/input_items?limit=2&order=asc&model=x&api_key=y`
    await fetch(url, { headers: { authorization: `Bearer ${keys.usual}` } })
    expect(latchkey.upstream.requests.map(({ path, query }) => path + query)).toEqual([
      '/v1/responses/resp_of_usual/input_items?limit=2&order=asc',
    ])
  })
})

describe('what is counted in units', () => {
  const audio = { 'content-type': 'audio/mpeg' }
  const rows: [name: string, target: Target, fields: object, reply: () => Response, unit: string, units: number][] = [
    ['characters to speak', 'speech', { input: 'hé😀' }, () => new Response('mp3', { headers: audio }), 'character', 3],
    ['images', 'images', { n: 2 }, () => Response.json({ data: [{}, {}] }), 'image', 2],
    ['images of a form', 'imageEdits', { n: 3 }, () => Response.json({ data: [] }), 'image', 3],
    [
      'seconds in the usage',
      'transcriptions',
      {},
      () => Response.json({ text: 'a', usage: { type: 'duration', seconds: 12 } }),
      'audio_second',
      12,
    ],
    ['verbose seconds', 'translations', {}, () => Response.json({ text: 'a', duration: '2.5' }), 'audio_second', 2.5],
  ]
  beforeAll(async () => {
    const price = { model: 'allowed', prompt: 0, completion: 0, character: 1_000_000, image: 2, audio_second: 4 }
    await latchkey.admin('prices.set', { prices: [price] })
  })
  const priceOf: Record<string, number> = { character: 1, image: 2, audio_second: 4 }

  for (const [name, target, fields, reply, unit, units] of rows)
    test(`has its price: ${name}`, async () => {
      latchkey.upstream.answer.current = reply
      const response = await send(inferencePaths[target], 'usual', { fields: fields as Record<string, unknown> })
      const text = await response.text()
      expect(text).toBe(await reply().text())
      const cost = units * (priceOf[unit] ?? 0)
      expect(await latchkey.usageOf(response)).toMatchObject([{ unit, units, cost, total_tokens: null }])
    })

  test('costs nothing when the upstream refuses', async () => {
    latchkey.upstream.answer.current = () => Response.json({ error: 'no' }, { status: 400 })
    const response = await send(inferencePaths.images, 'usual', { fields: { n: 2 } })
    await response.text()
    expect(await latchkey.usageOf(response)).toMatchObject([{ unit: null, units: null, cost: null }])
  })
})
