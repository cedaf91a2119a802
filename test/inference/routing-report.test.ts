// `openrouter_metadata` on request (reference: Routing metadata): where it stands in a response, what it says, and that nothing else changes.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { inspectJson } from '../../src/inference/json-inspector.ts'
import { reportInJson } from '../../src/inference/reported-response.ts'
import { reportRouting } from '../../src/inference/routing-report.ts'
import { eventOf, type Inference, startInference, streamReply, usage } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'

let latchkey: Inference
let next: ScriptedUpstream
beforeAll(async () => {
  latchkey = await startInference()
  next = await startScriptedUpstream()
  await latchkey.admin('upstreams.add', { name: 'next', base_url: next.url, priority: 1 })
})
beforeEach(async () => {
  latchkey.reset()
  next.answer.current = () => Response.json(answer)
  await latchkey.admin('organizations.update', { organization: 'default', upstream_headers: false })
})
afterAll(async () => {
  await latchkey.stop()
  await next.stop()
})

const answer = { id: 'a', model: 'served', choices: [], big: 1, usage }
const enabled = { 'x-openrouter-metadata': 'enabled' }
const minimal = {
  ...{ requested: 'asked', strategy: 'direct', region: null, summary: 'available=1, selected=latchkey', attempt: 1 },
  is_byok: false,
  endpoints: { total: 1, available: [{ model: 'asked', provider: 'latchkey', selected: true }] },
}

function ask(endpoint: string, headers: Record<string, string> = enabled, fields: object = {}): Promise<Response> {
  return fetch(latchkey.server.baseUrl + endpoint, {
    method: 'POST',
    headers: { authorization: `Bearer ${latchkey.key.key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'asked', ...fields }),
  })
}
const respondWith = (text: string, headers: Record<string, string> = { 'content-type': 'application/json' }) => {
  latchkey.upstream.answer.current = () => new Response(text, { headers })
}
const dataOf = (text: string): unknown[] =>
  [...text.matchAll(/^data: ?(\{.*)$/gm)].map(([, data]) => JSON.parse(data ?? '') as unknown)

describe('a JSON response', () => {
  for (const endpoint of ['/chat/completions', '/completions', '/responses', '/messages'])
    test(`of ${endpoint} has it as its last member`, async () => {
      const text = '{ "id":"a", "model":"served", "exact": 12345678901234567890.10 }\n'
      respondWith(text)
      const report = JSON.stringify(minimal)
      const expected = text.replace(' }\n', ` ,"openrouter_metadata":${report}}\n`)
      expect(JSON.parse(await (await ask(endpoint)).text())).toEqual(JSON.parse(expected))
      expect(await (await ask(endpoint)).text()).toStartWith(text.slice(0, -2))
    })

  test('of another path has none', async () => {
    respondWith('{"id":"a"}')
    for (const endpoint of ['/embeddings', '/rerank', '/messages/count_tokens', '/images/generations'])
      expect([endpoint, await (await ask(endpoint)).text()]).toEqual([endpoint, '{"id":"a"}'])
  })

  const headers: [name: string, headers: Record<string, string>, isReported: boolean][] = [
    ['in another case', { 'x-openrouter-metadata': 'Enabled' }, true],
    ['by the older name', { 'x-openrouter-experimental-metadata': 'enabled' }, true],
    [
      'by both names, of which the newer one counts',
      { ...enabled, 'x-openrouter-experimental-metadata': 'disabled' },
      true,
    ],
    ['disabled', { 'x-openrouter-metadata': 'disabled', 'x-openrouter-experimental-metadata': 'enabled' }, false],
    ['empty', { 'x-openrouter-metadata': '' }, false],
    ['an unknown value', { 'x-openrouter-metadata': 'true' }, false],
    ['absent', {}, false],
  ]
  for (const [name, sent, isReported] of headers)
    test(`${isReported ? 'has' : 'lacks'} it where the header is ${name}`, async () => {
      respondWith('{"id":"a"}')
      expect('openrouter_metadata' in ((await (await ask('/chat/completions', sent)).json()) as object)).toBe(
        isReported,
      )
    })

  const unreadable: [name: string, text: string, type: string][] = [
    ['an empty object', '{}', 'application/json'],
    ['a list', '[{}]', 'application/json'],
    ['nothing', '', 'application/json; charset=utf-8'],
    ['an object that is cut off', '{"a":{"b":1},', 'application/json; charset=utf-8'],
    ['text', '{"a":1}', 'text/plain'],
  ]
  for (const [name, text, type] of unreadable)
    test(`passes unchanged if it is ${name}`, async () => {
      respondWith(text, { 'content-type': type })
      expect(await (await ask('/chat/completions')).text()).toBe(text)
    })

  test('passes unchanged if it is an error', async () => {
    latchkey.upstream.answer.current = () => Response.json({ error: 'x' }, { status: 400 })
    expect(await (await ask('/chat/completions')).json()).toEqual({ error: 'x' })
  })

  test('has it, whatever its length, and its usage is recorded', async () => {
    respondWith(JSON.stringify({ text: 'x'.repeat(3_000_000), model: 'served', usage }))
    const response = await ask('/chat/completions')
    expect(await response.json()).toMatchObject({ usage, openrouter_metadata: minimal })
    expect(await latchkey.usageOf(response)).toMatchObject([{ total_tokens: 7, completed: true }])
  })

  test('has it in any division into chunks, with white space and nested objects at its end', () => {
    const json = fc.tuple(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom('', ' ', '\n\n', '\t\r\n '))
    fc.assert(
      fc.property(json, fc.array(fc.nat(200), { maxLength: 8 }), ([object, white], cuts) => {
        const bytes = Buffer.from(JSON.stringify(object, null, cuts.length % 3) + white)
        const report = reportRouting('m', [], [], { showsUpstreams: false })
        const inspector = reportInJson(inspectJson(), () => report)
        const ends = [...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].toSorted((a, b) => a - b)
        const passed = ends.map((end, index) => inspector.take(bytes.subarray(ends[index - 1] ?? 0, end)))
        const text = Buffer.concat([...passed, inspector.rest()]).toString()
        const isEmpty = Object.keys(object).length === 0
        // The member `__proto__` is one like any other.
        const expected = isEmpty
          ? '{}'
          : `${JSON.stringify(object).slice(0, -1)},"openrouter_metadata":${JSON.stringify(report)}}`
        expect(JSON.stringify(JSON.parse(text))).toBe(JSON.stringify(JSON.parse(expected)))
      }),
    )
  })
})

describe('a stream', () => {
  test('of chat completions or completions has it in one more event before [DONE]', async () => {
    const events = eventOf({ id: 'c1', model: 'served', choices: [{ delta: { content: 'data: [DONE]' } }] })
    const text = `${events}${eventOf({ choices: [], usage })}${eventOf('[DONE]')}`
    for (const [endpoint, object] of [
      ['/chat/completions', 'chat.completion.chunk'],
      ['/completions', 'text_completion'],
    ] as const) {
      latchkey.upstream.answer.current = () => streamReply(text)
      const response = await ask(endpoint, enabled, { stream: true, stream_options: { include_usage: true } })
      const sent = await response.text()
      const created = expect.any(Number)
      const added = { id: 'c1', object, created, model: 'served', choices: [], openrouter_metadata: minimal }
      expect(dataOf(sent).at(-1)).toEqual(added as never)
      expect(sent).toStartWith(text.slice(0, -eventOf('[DONE]').length))
      expect(sent).toEndWith(`\n\n${eventOf('[DONE]')}`)
      expect(await latchkey.usageOf(response)).toMatchObject([{ total_tokens: 7, completed: true }])
    }
  })

  const ended: [endpoint: string, events: [type: string, data: object][], where: (event: never) => unknown][] = [
    [
      '/messages',
      [
        ['message_start', { message: { id: 'm', model: 'served', usage: { input_tokens: 1, output_tokens: 1 } } }],
        ['message_stop', {}],
      ],
      (event: { openrouter_metadata: unknown }) => event.openrouter_metadata,
    ],
    [
      '/responses',
      [
        ['response.created', { response: { id: 'r', model: 'served' } }],
        ['response.completed', { response: { id: 'r', model: 'served', output: [{}] }, sequence_number: 9 }],
      ],
      (event: { response: { openrouter_metadata: unknown } }) => event.response.openrouter_metadata,
    ],
  ]
  for (const [endpoint, events, where] of ended)
    for (const lineEnd of ['\n', '\r\n'])
      test(`of ${endpoint} has it in its last event, with ${JSON.stringify(lineEnd)} at the end of lines`, async () => {
        const lines = events.map(([type, data]) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
        const text = lines.join('').replaceAll('\n', lineEnd)
        latchkey.upstream.answer.current = () => streamReply(text)
        const sent = await (await ask(endpoint, enabled, { stream: true })).text()
        const [first, last] = dataOf(sent.replaceAll('\r\n', '\n'))
        expect(where(last as never)).toEqual(minimal as never)
        expect(first).toEqual({ type: events[0]?.[0], ...events[0]?.[1] } as never)
        expect(sent.replace(/,"openrouter_metadata":.*?\]\}\}/, '')).toBe(text)
      })

  test('that ends without its last event passes unchanged', async () => {
    const text = eventOf({ model: 'served', choices: [{ delta: { content: 'a' } }] })
    latchkey.upstream.answer.current = () => streamReply(text)
    expect(await (await ask('/chat/completions', enabled, { stream: true })).text()).toBe(text)
  })
})

describe('the report', () => {
  const reportOf = async (fields: object) =>
    ((await (await ask('/chat/completions', enabled, fields)).json()) as { openrouter_metadata: object })
      .openrouter_metadata
  const failFirst = () => {
    latchkey.upstream.answer.current = () => Response.json({ error: 'busy' }, { status: 503 })
  }

  test('names no upstream and counts none, unless the organization allows it', async () => {
    failFirst()
    const report = await reportOf({ models: ['other'] })
    expect(report).toEqual({ ...minimal, strategy: 'fallback', attempt: 2 })
    expect(JSON.stringify(report)).not.toMatch(/next|configured/)
  })

  test('has the attempts and every place where the request could go', async () => {
    await latchkey.admin('organizations.update', { organization: 'default', upstream_headers: true })
    failFirst()
    expect(await reportOf({})).toEqual({
      ...minimal,
      attempt: 2,
      summary: 'available=2, selected=next',
      endpoints: {
        total: 2,
        available: [
          { model: 'asked', provider: 'configured', selected: false },
          { model: 'asked', provider: 'next', selected: true },
        ],
      },
      attempts: [
        { model: 'asked', provider: 'configured', status: 503 },
        { model: 'asked', provider: 'next', status: 200 },
      ],
    })
  })

  test('names the preset as the caller did', async () => {
    await latchkey.admin<Row>('presets.save', {
      preset: 'mine',
      dialect: 'chat',
      body: '{"model":"asked","messages":[{"role":"user","content":"x"}]}',
    })
    expect(await reportOf({ model: '@preset/mine' })).toMatchObject({ requested: '@preset/mine' })
  })

  test('lists at most 64 places, and counts all', () => {
    const upstreams = [{ name: 'one' }] as never
    const groups = Array.from({ length: 300 }, (_, index) => ({ model: `m${index}`, upstreams }))
    const { endpoints } = reportRouting('m0', groups, [], { showsUpstreams: true })
    expect([endpoints.total, endpoints.available.length]).toEqual([300, 64])
  })
})

test('GET /generation names the upstream only where the organization allows it', async () => {
  const response = await ask('/chat/completions')
  await response.text()
  const url = `${latchkey.server.baseUrl}/generation?id=${response.headers.get('x-request-id')}`
  const names: unknown[] = []
  for (const upstream_headers of [false, true]) {
    await latchkey.admin('organizations.update', { organization: 'default', upstream_headers })
    const shown = await fetch(url, { headers: { authorization: `Bearer ${latchkey.key.key}` } })
    names.push(((await shown.json()) as { data: { provider_name: unknown } }).data.provider_name)
  }
  expect(names).toEqual([null, 'configured'])
})
