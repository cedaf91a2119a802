// What official clients do when a budget refuses: 402 ends their retries, and 429 `budget_held` is retried and succeeds.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { HTTPClient, OpenRouter } from '@openrouter/sdk'
import OpenAI from 'openai'
import { answer, type Inference, startInference } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'
import { until } from '../support/until.ts'

type Key = Row & { key: string }

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

const messages = [{ role: 'user' as const, content: 'hello' }]
const message = {
  ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn', stop_sequence: null },
  ...{ content: [{ type: 'text', text: 'hi' }], usage: { input_tokens: 3, output_tokens: 4 } },
}
const completion = {
  ...{ ...answer, id: 'chatcmpl-1', object: 'chat.completion', created: 1, system_fingerprint: null },
  choices: [{ index: 0, finish_reason: 'stop', logprobs: null, message: { role: 'assistant', content: 'hi' } }],
}

/** A call of a client that counts its attempts. */
type Call = (key: string, fetch: typeof globalThis.fetch) => Promise<unknown>
const baseUrl = () => latchkey.server.baseUrl
const calls: [client: string, response: object, call: Call][] = [
  [
    'openai',
    completion,
    (apiKey, fetch) =>
      new OpenAI({ apiKey, baseURL: baseUrl(), fetch }).chat.completions.create({ model: 'm', messages }),
  ],
  [
    '@anthropic-ai/sdk',
    message,
    (authToken, fetch) =>
      new Anthropic({ authToken, apiKey: null, baseURL: baseUrl().replace(/\/v1$/, ''), fetch }).messages.create({
        ...{ model: 'm', max_tokens: 10, messages },
      }),
  ],
  [
    // It retries 5xx alone, unless the caller wants more.
    '@openrouter/sdk',
    completion,
    (apiKey, fetch) =>
      new OpenRouter({
        ...{ apiKey, serverURL: baseUrl(), httpClient: new HTTPClient({ fetcher: fetch }) },
        retryConfig: {
          strategy: 'backoff',
          backoff: { initialInterval: 100, maxInterval: 1_000, exponent: 2, maxElapsedTime: 30_000 },
        },
      }).chat.send({ chatRequest: { model: 'm', messages } }, { retryCodes: ['429', '5XX'] }),
  ],
]

let made = 0
async function createKey(windows: object[]): Promise<Key> {
  const name = `retries${made++}`
  const key = await latchkey.admin<Key>('keys.create', { name, queue_seconds: 0 })
  await latchkey.admin('budgets.create', { name, applies_to: { keys: [name] }, windows })
  return key
}

/** The statuses that a client got, in order. */
function counting(): { fetch: typeof globalThis.fetch; statuses: number[] } {
  const statuses: number[] = []
  const counted = async (...asked: Parameters<typeof globalThis.fetch>) => {
    const response = await globalThis.fetch(...asked)
    statuses.push(response.status)
    return response
  }
  return { fetch: Object.assign(counted, globalThis.fetch), statuses }
}

describe.each(calls)('%s', (_client, response, call) => {
  test('does not retry 402', async () => {
    const { key } = await createKey([{ per: 'day', requests: 0 }])
    const { fetch, statuses } = counting()
    const failed = await call(key, fetch).then(
      () => undefined,
      (error: { status?: number; statusCode?: number }) => error.status ?? error.statusCode,
    )
    expect([failed, statuses]).toEqual([402, [402]])
    expect(latchkey.upstream.requests).toHaveLength(0)
  })

  test('retries 429 when others hold the rest of a budget, and succeeds', async () => {
    const { key } = await createKey([{ per: 'day', tokens: 10 }])
    const { promise, resolve } = Promise.withResolvers<void>()
    latchkey.upstream.answer.current = async () => {
      await promise
      return Response.json(response)
    }
    const running = latchkey.complete({ model: 'm', messages }, { authorization: `Bearer ${key}` })
    await until('one runs', () => latchkey.upstream.requests.length === 1)
    const { fetch, statuses } = counting()
    const called = call(key, fetch)
    await until('it is refused', () => statuses.length === 1)
    resolve()
    await (await running).arrayBuffer()
    expect(await called).toBeObject()
    expect(statuses).toEqual([429, 200])
  })
})
