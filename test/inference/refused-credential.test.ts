// An upstream that refuses the credential of this server: the caller, whose own credential is good, must not see a 401, or it would exchange again.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { type Inference, question, startInference } from '../support/inference.ts'

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
beforeEach(() => {
  latchkey.reset()
  latchkey.logLines.length = 0
})
afterAll(() => latchkey.stop())

const message = 'The inference server refuses the credential of this server: its administrator must renew it'
const refusal = { error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } }
function refuse(status: number): void {
  const headers = { 'www-authenticate': 'Bearer' }
  latchkey.upstream.answer.current = () => Response.json(refusal, { status, headers })
}
const linesOf = (event: string) =>
  latchkey.logLines.map((line) => JSON.parse(line) as Record<string, unknown>).filter((line) => line.event === event)

describe('a 401 of the upstream', () => {
  test('is a 502 for the caller, without a challenge, and the log names the upstream', async () => {
    refuse(401)
    const response = await latchkey.complete()
    expect([response.status, await response.json()]).toEqual([
      502,
      { error: { code: 502, message, metadata: { error_type: expect.any(String) } } },
    ])
    expect(response.headers.get('www-authenticate')).toBeNull()
    expect(linesOf('upstream_refused')).toMatchObject([{ upstream: 'configured', status: 401 }])
    expect(linesOf('request_failed')).toMatchObject([{ status: 502 }])
    expect(String(linesOf('request_failed')[0]?.reason)).toContain('upstream_refused, upstream configured')
    expect(await latchkey.usageOf(response)).toMatchObject([{ status: 502, upstream: 'configured', completed: false }])
  })

  test('is a 502 of the list of models too', async () => {
    refuse(401)
    for (const path of ['/models', '/models/any']) {
      const headers = { authorization: `Bearer ${latchkey.key.key}` }
      const response = await fetch(latchkey.server.baseUrl + path, { headers })
      expect([response.status, await response.json()]).toEqual([
        502,
        { error: { code: 502, message, metadata: { error_type: expect.any(String) } } },
      ])
    }
    expect(linesOf('upstream_models_failed')).toMatchObject([{ upstream: 'configured' }])
  })

  test('is a server error for the official clients, which do not try again', async () => {
    refuse(401)
    const { baseUrl } = latchkey.server
    const openai = new OpenAI({ apiKey: latchkey.accessToken, baseURL: baseUrl })
    const messages = [{ role: 'user' as const, content: 'hi' }]
    const openaiError = await openai.chat.completions.create({ model: 'm', messages }).catch((error) => error)
    expect(openaiError).toBeInstanceOf(OpenAI.InternalServerError)
    const anthropic = new Anthropic({ authToken: latchkey.accessToken, apiKey: null, baseURL: baseUrl.slice(0, -3) })
    const anthropicError = await anthropic.messages
      .create({ model: 'm', max_tokens: 9, messages })
      .catch((error) => error)
    const error = { type: 'error', error: { type: 'api_error', code: 502, message } }
    expect(anthropicError).toMatchObject({ status: 502, error })
    expect(latchkey.upstream.requests).toHaveLength(2)
  })
})

test('a 403 of the upstream passes with its body, and only a 403 of Latchkey must not be stored', async () => {
  refuse(403)
  const theirs = await latchkey.complete(question)
  expect([theirs.status, await theirs.json()]).toEqual([403, refusal])
  expect(theirs.headers.get('cache-control')).toBeNull()
  const { key } = await latchkey.admin<{ id: string; key: string }>('keys.create', {
    name: 'few',
    allowed_models: ['b'],
  })
  const ours = await latchkey.complete(question, { authorization: `Bearer ${key}` })
  expect([ours.status, ours.headers.get('cache-control')]).toEqual([403, 'no-store'])
})
