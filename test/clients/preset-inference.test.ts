// Presets used by real clients: @openrouter/sdk, openai and Anthropic's. The first drops fields that it does not know, `preset` among them, so
// that it names a preset in `model`.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import type { OpenRouter } from '@openrouter/sdk'
import type { ChatResult, ChatStreamChunk } from '@openrouter/sdk/models'
import OpenAI, { BadRequestError, NotFoundError, PermissionDeniedError } from 'openai'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { type Federation, listenLocally, type Row, startFederation, upstreamApiKey } from '../support/latchkey.ts'
import { createPreset, failureOf, officialClient, question } from '../support/official-client.ts'

type Fields = Record<string, unknown>
let latchkey: Federation
let upstream: Awaited<ReturnType<typeof listenLocally>>
/** What the echo upstream was sent. */
const sent: Fields[] = []
let management: OpenRouter
let reader: OpenRouter
beforeAll(async () => {
  const echo = createEchoUpstream(upstreamApiKey)
  upstream = await listenLocally(async (request, peer) => {
    if (request.method === 'POST') sent.push((await request.clone().json()) as Fields)
    return echo(request, peer)
  })
  latchkey = await startFederation({ upstreamUrl: `${upstream.url}/v1` })
  const create = async (name: string, kind: string) =>
    (await latchkey.admin<Row & { key: string }>('keys.create', { name, kind })).key
  management = clientWith(await create('admin', 'management'))
  reader = clientWith(latchkey.key.key)
})
beforeEach(() => {
  sent.length = 0
})
afterAll(async () => {
  await latchkey.stop()
  await upstream.listener.drain()
})

const clientWith = (apiKey?: string) => officialClient(latchkey.server.baseUrl, apiKey)
const lastVersion = async () =>
  (await latchkey.admin<{ data: Row[] }>('usage.requests', { limit: 1 })).data[0]?.preset_version

const completed = { temperature: 0.5, messages: [{ role: 'system', content: 'Be brief' }, question] }
const inModel: [form: string, model: string][] = [
  ['@preset/slug', 'own'],
  ['@preset/slug@1', 'own'],
  ['vendor/theirs@preset/slug', 'vendor/theirs'],
]

describe.each(inModel)('the model %s', (form, model) => {
  test('is taken from the OpenRouter client, plain and streamed', async () => {
    const slug = await createPreset(management)
    const chatRequest = { model: form.replace('slug', slug), messages: [question] }
    const answer = (await reader.chat.send({ chatRequest: { ...chatRequest, stream: false } })) as ChatResult
    expect(answer.choices[0]?.message.content).toBe('two words')
    expect(answer.model).toBe(model)
    const chunks: ChatStreamChunk[] = []
    const stream = await reader.chat.send({ chatRequest: { ...chatRequest, stream: true } })
    for await (const chunk of stream as AsyncIterable<ChatStreamChunk>) chunks.push(chunk)
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('two words')
    expect(chunks.some((chunk) => chunk.usage !== undefined)).toBe(false)
    expect(sent).toMatchObject([
      { ...completed, model },
      { ...completed, model, stream: true },
    ])
    expect(await lastVersion()).toBe(`${slug}@1`)
  })

  test('is taken from the openai and the Anthropic client', async () => {
    const slug = await createPreset(management)
    const named = form.replace('slug', slug)
    const openai = new OpenAI({ apiKey: latchkey.key.key, baseURL: latchkey.server.baseUrl, maxRetries: 0 })
    const answer = await openai.chat.completions.create({ model: named, messages: [question] })
    expect(answer.choices[0]?.message.content).toBe('two words')
    const response = await openai.responses.create({ model: named, input: 'two words' })
    expect(response.output_text).toBe('two words')
    const anthropic = new Anthropic({
      apiKey: latchkey.key.key,
      baseURL: latchkey.server.baseUrl.replace(/\/v1$/, ''),
      maxRetries: 0,
    })
    const message = await anthropic.messages.create({ model: named, max_tokens: 9, messages: [question] })
    expect(message.content).toMatchObject([{ type: 'text', text: 'two words' }])
    expect(sent).toEqual([
      { ...completed, model },
      { temperature: 0.5, model, instructions: 'Be brief', input: 'two words' },
      { temperature: 0.5, model, max_tokens: 9, system: 'Be brief', messages: [question] },
    ])
    expect(await lastVersion()).toBe(`${slug}@1`)
  })
})

test('the OpenRouter client drops a preset that stands beside the model', async () => {
  const chatRequest = {
    model: 'theirs',
    messages: [question],
    stream: false as const,
    preset: await createPreset(management),
  }
  await reader.chat.send({ chatRequest })
  expect(sent).toEqual([{ model: 'theirs', messages: [question], stream: false }])
  expect(await lastVersion()).toBeNull()
})

describe('the openai client', () => {
  const openai = (apiKey = latchkey.key.key) => new OpenAI({ apiKey, baseURL: latchkey.server.baseUrl, maxRetries: 0 })

  test('names a preset beside the model, plain and streamed', async () => {
    const slug = await createPreset(management)
    const body = { model: 'theirs', messages: [question], preset: slug }
    const answer = await openai().chat.completions.create(body)
    expect(answer.choices[0]?.message.content).toBe('two words')
    const chunks = []
    for await (const chunk of await openai().chat.completions.create({ ...body, stream: true })) chunks.push(chunk)
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('two words')
    expect(chunks.every((chunk) => chunk.usage == null && chunk.choices.length === 1)).toBe(true)
    expect(sent.map(({ model, temperature, preset }) => [model, temperature, preset])).toEqual([
      ['theirs', 0.5, undefined],
      ['theirs', 0.5, undefined],
    ])
    expect(await lastVersion()).toBe(`${slug}@1`)
  })

  test('lists presets as models, and finds one', async () => {
    const slug = await createPreset(management)
    const { data } = await openai().models.list()
    expect(data.map(({ id }) => id)).toContain('echo')
    expect(data.map(({ id }) => id)).toContain(`@preset/${slug}`)
    expect(await openai().models.retrieve(`@preset/${slug}`)).toMatchObject({ id: `@preset/${slug}`, object: 'model' })
  })

  test('throws what says which preset there is not, which are allowed, and what is wrong', async () => {
    const ask = (body: { model: string; preset?: string }, apiKey?: string) =>
      failureOf(openai(apiKey).chat.completions.create({ messages: [question], ...body }))
    const absent = await ask({ model: '@preset/nobody-made-it' })
    expect(absent).toBeInstanceOf(NotFoundError)
    expect(absent).toMatchObject({
      error: {
        code: 404,
        message: 'The preset "nobody-made-it" does not exist or is not active: use one of GET /presets',
        metadata: { error_type: expect.any(String) },
      },
    })
    const { key } = await latchkey.admin<Row & { key: string }>('keys.create', {
      name: 'narrow',
      allowed_presets: ['x'],
    })
    const refused = await ask({ model: 'theirs' }, key)
    expect(refused).toBeInstanceOf(PermissionDeniedError)
    expect(refused).toMatchObject({ error: { message: 'This key may only use the presets: x; name one of them' } })
    expect(await ask({ model: '@preset/a', preset: 'b' })).toBeInstanceOf(BadRequestError)
    expect(sent).toEqual([])
  })
})
