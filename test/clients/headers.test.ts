// What official clients say and hear in headers, through Latchkey: what they act on arrives, and what describes the installation does not.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { OpenRouter } from '@openrouter/sdk'
import OpenAI, { APIError } from 'openai'
import { type Inference, question, startInference, streamReply } from '../support/inference.ts'

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7/
const completion = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'asked-model',
  system_fingerprint: 'fp',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop', logprobs: null }],
}
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'asked-model',
  content: [{ type: 'text', text: 'hi' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
}
const messages = [{ role: 'user' as const, content: 'hello' }]
const sent = () => Object.fromEntries(latchkey.upstream.requests.at(-1)?.headers ?? [])
/** What a hosted service sends with an answer, as recorded: the first are the client's, the others are about the account and its servers. */
const openaiHeaders = {
  'openai-processing-ms': '212',
  'openai-version': '2020-10-01',
  'x-ratelimit-limit-requests': '10000',
  'x-ratelimit-remaining-tokens': '199981',
  'x-ratelimit-reset-tokens': '5ms',
}
const accountHeaders = {
  'openai-organization': 'acme',
  'openai-project': 'proj_1',
  'anthropic-organization-id': 'acme',
  'cf-ray': '1',
  server: 'cloudflare',
  'set-cookie': '__cf_bm=1',
  'x-request-id': 'req_theirs',
}

describe('openai', () => {
  const client = (options: object = {}) =>
    new OpenAI({ apiKey: latchkey.key.key, baseURL: latchkey.server.baseUrl, maxRetries: 0, ...options })

  test('shows the request id of Latchkey, and the rates and times of the upstream', async () => {
    latchkey.upstream.answer.current = () =>
      Response.json(completion, { headers: { ...accountHeaders, ...openaiHeaders } })
    const asking = client({ organization: 'org', project: 'proj' }).chat.completions.create({ model: 'm', messages })
    const { response, request_id } = await asking.withResponse()
    expect(request_id).toMatch(uuid)
    const headers = Object.fromEntries(response.headers)
    expect(headers).toMatchObject(openaiHeaders)
    for (const name of Object.keys(accountHeaders).filter((each) => each !== 'x-request-id'))
      expect({ name, has: name in headers }).toEqual({ name, has: false })
    expect(sent()).toMatchObject({ 'user-agent': expect.stringContaining('OpenAI'), 'x-request-id': request_id })
    expect(Object.keys(sent()).filter((name) => /stainless|organization|project/.test(name))).toEqual([])
  })

  test('tries again when the upstream says, and at once', async () => {
    let asked = 0
    latchkey.upstream.answer.current = () => {
      asked += 1
      const headers = { 'retry-after-ms': '1', 'retry-after': '3600' }
      return asked === 1 ? Response.json({ error: {} }, { status: 429, headers }) : Response.json(completion)
    }
    await client({ maxRetries: 1 }).chat.completions.create({ model: 'm', messages })
    expect(asked).toBe(2)
  })

  test('does not try again where the upstream says that it helps nothing', async () => {
    const headers = { 'x-should-retry': 'false' }
    latchkey.upstream.answer.current = () => Response.json({ error: {} }, { status: 503, headers })
    const refused = await client({ maxRetries: 3 })
      .chat.completions.create({ model: 'm', messages })
      .catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(APIError)
    expect((refused as APIError).requestID).toMatch(uuid)
    expect(latchkey.upstream.requests).toHaveLength(1)
  })

  test('streams, and passes on what it is asked to', async () => {
    latchkey.upstream.answer.current = () =>
      streamReply('data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n')
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const headers = { 'Idempotency-Key': 'once', 'OpenAI-Beta': 'assistants=v2', traceparent }
    const stream = await client().chat.completions.create({ model: 'm', messages, stream: true }, { headers })
    let text = ''
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
    expect(text).toBe('hi')
    expect(sent()).toMatchObject({
      'idempotency-key': 'once',
      'openai-beta': 'assistants=v2',
      traceparent,
    })
  })
})

describe('anthropic', () => {
  const client = () => {
    const baseURL = latchkey.server.baseUrl.replace(/\/v1$/, '')
    return new Anthropic({ apiKey: latchkey.key.key, baseURL, maxRetries: 0 })
  }

  test('says its version and betas, and shows the request id of the upstream', async () => {
    const headers = { ...accountHeaders, 'request-id': 'req_1', 'anthropic-ratelimit-tokens-remaining': '7' }
    latchkey.upstream.answer.current = () => Response.json(message, { headers })
    const asking = client().beta.messages.create({ model: 'm', max_tokens: 9, messages, betas: ['one', 'two'] })
    const { response, request_id } = await asking.withResponse()
    expect(request_id).toBe('req_1')
    expect(response.headers.get('anthropic-ratelimit-tokens-remaining')).toBe('7')
    expect(response.headers.has('anthropic-organization-id')).toBe(false)
    expect(sent()).toMatchObject({
      'anthropic-version': expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      'anthropic-beta': 'one,two',
    })
    expect(JSON.stringify(sent())).not.toContain(latchkey.key.key)
  })
})

describe('@openrouter/sdk', () => {
  test('completes, without naming the app that it is given', async () => {
    latchkey.upstream.answer.current = () => Response.json(completion, { headers: openaiHeaders })
    const client = new OpenRouter({
      serverURL: latchkey.server.baseUrl,
      apiKey: latchkey.key.key,
      httpReferer: 'https://app',
    })
    const chatRequest = { model: question.model, messages }
    const result = (await client.chat.send({ chatRequest })) as { choices: { message: { content: string } }[] }
    expect(result.choices[0]?.message.content).toBe('hi')
    expect(sent()['http-referer']).toBeUndefined()
  })
})
