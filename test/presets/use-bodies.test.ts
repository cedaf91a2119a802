// What a preset in use makes of a body, over HTTP: whose field wins, system prompts, tools, fallbacks and streams. What is compared is
// the body that a scripted upstream gets; the rules by themselves are held in apply.test.ts.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { answer, deltaOf, eventOf, streamReply, usage, usageEvent } from '../support/inference.ts'
import {
  bodyOf,
  type Fields,
  type InferencePath,
  inferencePaths,
  type PresetServer,
  startPresets,
} from '../support/presets.ts'

let latchkey: PresetServer
beforeAll(async () => {
  latchkey = await startPresets()
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

const user = { role: 'user', content: 'hello' }
const system = { role: 'system', content: 'Be brief' }
const tool = (name: string, description: string) => ({ type: 'function', function: { name, description } })

/** The body that the upstream got for a request with this preset. */
async function sentWith(preset: Fields, path: InferencePath, body: Fields = bodyOf[path]): Promise<Fields> {
  const slug = await latchkey.savePreset({ model: 'own', ...preset })
  latchkey.reset()
  const response = await latchkey.infer(path, { preset: slug, ...body })
  expect({ status: response.status, body: await response.json() }).toEqual({ status: 200, body: answer })
  expect(latchkey.upstream.requests).toHaveLength(1)
  return latchkey.sent()[0] ?? {}
}

describe('a field', () => {
  const rows: [path: InferencePath, name: string, preset: unknown, name: string, request: unknown][] = [
    ['/chat/completions', 'temperature', 1, 'temperature', 0],
    ['/chat/completions', 'stop', ['a', 'b'], 'stop', []],
    ['/chat/completions', 'provider', { order: ['a'], zdr: true }, 'provider', { order: ['b'] }],
    ['/chat/completions', 'logprobs', true, 'logprobs', false],
    ['/completions', 'max_completion_tokens', 50, 'max_tokens', 9],
    ['/completions', 'logit_bias', { 1: 5 }, 'logit_bias', {}],
    ['/responses', 'max_tokens', 50, 'max_output_tokens', 9],
    ['/responses', 'response_format', { type: 'json_object' }, 'text', { format: { type: 'text' } }],
    ['/messages', 'stop', 'a', 'stop_sequences', ['b']],
    ['/messages', 'max_completion_tokens', 50, 'max_tokens', 9],
    ['/embeddings', 'provider', { order: ['a'] }, 'provider', { order: ['b'] }],
    ['/rerank', 'provider', { order: ['a'] }, 'provider', { order: ['b'] }],
  ]
  test.each(rows)(
    'to %s: the %s of the preset fills in, and the request wins',
    async (path, kept, value, name, other) => {
      const preset = { [kept]: value }
      const plain = await sentWith({}, path)
      const filled = (await sentWith(preset, path))[name]
      expect(plain).not.toHaveProperty(name)
      expect(filled).not.toBeUndefined()
      expect(filled).not.toEqual(other)
      expect(await sentWith(preset, path, { ...bodyOf[path], [name]: other })).toEqual({ ...plain, [name]: other })
      expect(await sentWith(preset, path, { ...bodyOf[path], [name]: null })).toEqual({ ...plain, [name]: filled })
    },
  )

  test('of a single request is not taken from the preset', async () => {
    const own = { user: 'u', metadata: { a: 'b' }, session_id: 's', trace: { trace_id: 't' }, debug: {} }
    const ofOne = { ...own, stream: true, stream_options: { include_usage: true }, prompt: 'p' }
    expect(await sentWith(ofOne, '/chat/completions')).toEqual({ model: 'own', ...bodyOf['/chat/completions'] })
    expect(latchkey.upstream.requests[0]?.headers.get('x-session-id')).toBeNull()
    const sent = await sentWith(ofOne, '/chat/completions', { ...bodyOf['/chat/completions'], ...own })
    expect(sent).toEqual({ model: 'own', ...bodyOf['/chat/completions'], ...own })
    expect(latchkey.upstream.requests[0]?.headers.get('x-session-id')).toBe('s')
  })

  test('that is unknown passes', async () => {
    const sent = await sentWith({}, '/chat/completions', { messages: [user], guided_regex: 'a+', __proto__x: [{}] })
    expect(sent).toEqual({ model: 'own', messages: [user], guided_regex: 'a+', __proto__x: [{}] })
  })
})

describe('the system prompt', () => {
  const preset = { messages: [system, { role: 'developer', content: [{ type: 'text', text: 'And kind' }] }] }
  const prompt = 'Be brief\n\nAnd kind'
  const assistant = { role: 'assistant', content: 'yes' }
  const rows: [path: InferencePath, what: string, request: Fields, sent: Fields][] = [
    [
      '/chat/completions',
      'is put in front',
      { messages: [user, assistant, user] },
      { messages: [{ ...system, content: prompt }, user, assistant, user] },
    ],
    ['/chat/completions', 'gives way to a system message', { messages: [user, system] }, {}],
    ['/chat/completions', 'gives way to a developer message', { messages: [{ role: 'developer', content: 'x' }] }, {}],
    ['/messages', 'becomes system', { messages: [user] }, { system: prompt }],
    ['/messages', 'becomes system where that is null', { messages: [user], system: null }, { system: prompt }],
    ['/messages', 'gives way to system', { messages: [user], system: [{ type: 'text', text: 'x' }] }, {}],
    ['/responses', 'becomes instructions', { input: 'x' }, { instructions: prompt }],
    ['/responses', 'becomes instructions of a list', { input: [user] }, { instructions: prompt }],
    [
      '/responses',
      'becomes instructions where these are null',
      { input: 'x', instructions: null },
      { instructions: prompt },
    ],
    ['/responses', 'gives way to instructions', { input: 'x', instructions: 'y' }, {}],
    ['/responses', 'gives way to a system message', { input: [system, user] }, {}],
    ['/completions', 'has no place', { prompt: 'x' }, {}],
    ['/embeddings', 'has no place', { input: 'x' }, {}],
    ['/rerank', 'has no place', { query: 'x', documents: [] }, {}],
  ]
  test.each(rows)('in %s %s', async (path, _, request, sent) => {
    expect(await sentWith(preset, path, request)).toEqual({ model: 'own', ...request, ...sent })
  })
})

describe('tools are united, the preset’s first, and those of one name as the request has them', () => {
  const preset = { tools: [tool('a', 'preset'), tool('b', 'preset'), { type: 'openrouter:web_search' }] }
  const search = { type: 'openrouter:web_search' }
  const inResponses = (name: string, description: string) => ({ type: 'function', name, description })
  const schema = { type: 'object', properties: {} }
  const inMessages = (name: string, description: string) => ({ name, description, input_schema: schema })
  const rows: [path: InferencePath, request: Fields[], sent: Fields[]][] = [
    [
      '/chat/completions',
      [tool('c', 'request'), tool('a', 'request')],
      [tool('a', 'request'), tool('b', 'preset'), search, tool('c', 'request')],
    ],
    [
      '/responses',
      [inResponses('b', 'request'), inResponses('c', 'request')],
      [inResponses('a', 'preset'), inResponses('b', 'request'), search, inResponses('c', 'request')],
    ],
    [
      '/messages',
      [inMessages('b', 'request'), inMessages('c', 'request')],
      [inMessages('a', 'preset'), inMessages('b', 'request'), search, inMessages('c', 'request')],
    ],
    ['/chat/completions', [], preset.tools],
  ]
  test.each(rows)('in %s', async (path, tools, sent) => {
    expect(await sentWith(preset, path, { ...bodyOf[path], tools })).toEqual({
      model: 'own',
      ...bodyOf[path],
      tools: sent,
    })
  })
})

describe('fallbacks', () => {
  const failFor = (...models: string[]) => {
    latchkey.upstream.answer.current = () => {
      const { model } = latchkey.sent().at(-1) ?? {}
      return models.includes(model as string) ? new Response('no', { status: 500 }) : Response.json(answer)
    }
  }
  const messages = [user]
  const rows: [what: string, request: Fields, tried: string[]][] = [
    ['of the preset follow its model', {}, ['own', 'b', 'c']],
    ["of the preset follow the request's model", { model: 'mine' }, ['mine', 'b', 'c']],
    ['of the request take their place', { models: ['x', 'c'] }, ['x', 'c']],
    ['that are null are those of the preset', { models: null }, ['own', 'b', 'c']],
    [
      'of the request follow the model of the preset that it asks for',
      { model: '@preset/', models: ['c'] },
      ['own', 'c'],
    ],
  ]
  test.each(rows)('%s', async (_, { model, ...request }, tried) => {
    const slug = await latchkey.savePreset({ model: 'own', models: ['b', 'c'], temperature: 0.5 })
    latchkey.reset()
    failFor('own', 'b', 'mine', 'x')
    const named = model === '@preset/' ? { model: `@preset/${slug}` } : { preset: slug, model }
    const response = await latchkey.infer('/chat/completions', { ...request, ...named, messages })
    expect(response.status).toBe(200)
    expect(latchkey.sent()).toEqual(tried.map((model) => ({ model, temperature: 0.5, messages })))
    expect(await latchkey.usageOf(response)).toMatchObject([
      { status: 200, model_asked: tried[0], preset_version: `${slug}@1`, total_tokens: 7 },
    ])
  })

  test('are absent where the request lists none, and the model stays', async () => {
    expect(await sentWith({ models: ['b'] }, '/chat/completions', { messages, models: [] })).toEqual({
      model: 'own',
      messages,
    })
    const nulls = { models: null, seed: null, user: null }
    expect(await sentWith({}, '/chat/completions', { messages, ...nulls })).toEqual({
      model: 'own',
      messages,
      user: null,
    })
    const slug = await latchkey.savePreset({ models: [] })
    latchkey.reset()
    const response = await latchkey.infer('/chat/completions', { preset: slug, messages })
    expect(response.status).toBe(400)
    expect(latchkey.upstream.requests).toEqual([])
  })

  test.each(inferencePaths)('of the preset work on %s', async (path) => {
    const slug = await latchkey.savePreset({ model: 'own', models: ['b'] })
    latchkey.reset()
    failFor('own')
    expect((await latchkey.infer(path, { ...bodyOf[path], model: `@preset/${slug}` })).status).toBe(200)
    expect(latchkey.sent()).toEqual(['own', 'b'].map((model) => ({ ...bodyOf[path], model })))
  })
})

describe('a stream', () => {
  const events = `${deltaOf('a')}${deltaOf('b')}`
  const done = eventOf('[DONE]')
  async function stream(path: InferencePath, body: Fields) {
    const slug = await latchkey.savePreset({ model: 'own', models: ['b'], top_p: 0.5 })
    latchkey.reset()
    latchkey.upstream.answer.current = () => streamReply(`${events}${usageEvent}${done}`)
    const response = await latchkey.infer(path, { ...bodyOf[path], ...body, stream: true, model: `@preset/${slug}` })
    const text = await response.text()
    expect(response.status).toBe(200)
    expect(await latchkey.usageOf(response)).toMatchObject([
      { streamed: true, completed: true, preset_version: `${slug}@1`, ...usage },
    ])
    expect(latchkey.upstream.requests[0]?.body).not.toContain('@preset')
    return { text, sent: latchkey.sent() }
  }
  const filled = { model: 'own', top_p: 0.5, stream: true }

  for (const path of ['/chat/completions', '/completions'] as const) {
    test(`of ${path} reports the usage to a client that asks for it`, async () => {
      const stream_options = { include_usage: true }
      expect(await stream(path, { stream_options })).toEqual({
        text: `${events}${usageEvent}${done}`,
        sent: [{ ...bodyOf[path], ...filled, stream_options }],
      })
    })

    test.each([{}, { stream_options: null }, { stream_options: { include_usage: false, x: 1 } }])(
      `of ${path} with %j is asked for the usage, which is withheld`,
      async (options: Fields) => {
        const asked = options.stream_options as Fields | null | undefined
        expect(await stream(path, options)).toEqual({
          text: `${events}${done}`,
          sent: [{ ...bodyOf[path], ...filled, stream_options: { ...asked, include_usage: true } }],
        })
      },
    )
  }

  test.each(['/responses', '/messages'] as const)('of %s is asked for nothing more, and passes whole', async (path) => {
    expect(await stream(path, {})).toEqual({
      text: `${events}${usageEvent}${done}`,
      sent: [{ ...bodyOf[path], ...filled }],
    })
  })
})
