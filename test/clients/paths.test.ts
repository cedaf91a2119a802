// Every path of inference with the clients that know it, with a key and with an access token: what comes back, and what is in the ledger.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'

let federation: Federation
let accessToken: string
beforeAll(async () => {
  federation = await startFederation()
  const reply = await federation.exchange(await federation.mint())
  accessToken = ((await reply.json()) as { access_token: string }).access_token
})
afterAll(() => federation.stop())

const lastUsage = async () => (await federation.admin<{ data: Row[] }>('usage.requests', { limit: 1 })).data[0]
const credentials = { 'a key': () => federation.key.key, 'an access token': () => accessToken }

for (const [name, credential] of Object.entries(credentials)) {
  describe(`with ${name}`, () => {
    const openai = () => new OpenAI({ apiKey: credential(), baseURL: federation.server.baseUrl, maxRetries: 0 })
    const baseURL = () => federation.server.baseUrl.replace(/\/v1$/, '')
    const anthropic = () => new Anthropic({ authToken: credential(), apiKey: null, baseURL: baseURL(), maxRetries: 0 })

    test('openai completes', async () => {
      const answer = await openai().completions.create({ model: 'echo', prompt: 'two words' })
      expect(answer.choices[0]?.text).toBe('two words')
      expect(await lastUsage()).toMatchObject({ endpoint: '/completions', prompt_tokens: 2, completion_tokens: 2 })
      const stream = await openai().completions.create({ model: 'echo', prompt: 'two words', stream: true })
      let text = ''
      for await (const chunk of stream) text += chunk.choices[0]?.text ?? ''
      expect(text).toBe('two words')
      expect(await lastUsage()).toMatchObject({ streamed: true, completed: true, total_tokens: 4 })
    })

    test('openai embeds', async () => {
      const answer = await openai().embeddings.create({ model: 'echo', input: ['one', 'two words'] })
      expect(answer.data.map(({ embedding }) => embedding[0])).toEqual([1, 2])
      expect(await lastUsage()).toMatchObject({ endpoint: '/embeddings', prompt_tokens: 3, completion_tokens: null })
    })

    test('openai gets responses', async () => {
      const answer = await openai().responses.create({ model: 'echo', input: 'two words', instructions: 'be brief' })
      expect(answer.output_text).toBe('two words')
      const counted = { endpoint: '/responses', prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 }
      expect(await lastUsage()).toMatchObject({ ...counted, streamed: false })
      const stream = await openai().responses.create({
        model: 'echo',
        input: 'two words',
        instructions: 'be brief',
        stream: true,
      })
      const types: string[] = []
      for await (const event of stream) types.push(event.type)
      expect(types.at(-1)).toBe('response.completed')
      expect(await lastUsage()).toMatchObject({ ...counted, streamed: true, completed: true })
    })

    test('anthropic gets messages', async () => {
      const messages = [{ role: 'user' as const, content: 'two words' }]
      const body = { model: 'echo', max_tokens: 10, system: 'be brief', messages }
      const answer = await anthropic().messages.create(body)
      expect(answer.content).toMatchObject([{ type: 'text', text: 'two words' }])
      const counted = { endpoint: '/messages', prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 }
      expect(await lastUsage()).toMatchObject({ ...counted, streamed: false })
      const streamed = await anthropic().messages.stream(body).finalMessage()
      expect(streamed.content).toMatchObject([{ type: 'text', text: 'two words' }])
      expect(await lastUsage()).toMatchObject({ ...counted, streamed: true, completed: true })
    })

    test('rerank ranks', async () => {
      const response = await fetch(`${federation.server.baseUrl}/rerank`, {
        method: 'POST',
        headers: { authorization: `Bearer ${credential()}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'echo', query: 'which', documents: ['one', 'two words'] }),
      })
      expect(((await response.json()) as { results: unknown[] }).results).toHaveLength(2)
      expect(await lastUsage()).toMatchObject({ endpoint: '/rerank', total_tokens: 4, model: 'echo' })
    })
  })
}

test('anthropic may send its key the way it does by default', async () => {
  const baseURL = federation.server.baseUrl.replace(/\/v1$/, '')
  const client = new Anthropic({ apiKey: federation.key.key, baseURL, maxRetries: 0 })
  const answer = await client.messages.create({
    model: 'echo',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'hi' }],
  })
  expect(answer.content).toMatchObject([{ text: 'hi' }])
})

test('what tools and their calls say passes through untouched', async () => {
  const client = new OpenAI({ apiKey: federation.key.key, baseURL: federation.server.baseUrl, maxRetries: 0 })
  const tools = [
    { type: 'function' as const, function: { name: 'time', parameters: { type: 'object', properties: {} } } },
  ]
  const answer = await client.chat.completions.create({
    model: 'echo',
    tools,
    messages: [
      { role: 'user', content: 'time' },
      { role: 'assistant', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'time', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'c1', content: 'half past' },
    ],
  })
  expect(answer.choices[0]?.message.content).toBe('half past')
})
