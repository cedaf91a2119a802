// The official client, @openrouter/sdk, pointed at Latchkey: exchange, published keys, chat, and how it decodes what we refuse.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { OpenRouter } from '@openrouter/sdk'
import type { ChatResult, ChatStreamChunk, TokenExchangeRequest } from '@openrouter/sdk/models'
import { ForbiddenResponseError, OAuthErrorResponse, UnauthorizedResponseError } from '@openrouter/sdk/models/errors'
import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify } from 'jose'
import { listenLocally, type Row } from '../support/latchkey.ts'
import { latchkeyAudience, startWorkloadFederation, type WorkloadFederation } from '../support/workload-federation.ts'

// The client would send it where a test means to send no credential.
delete process.env.OPENROUTER_API_KEY

let federation: WorkloadFederation
beforeAll(async () => {
  federation = await startWorkloadFederation()
})
afterAll(() => federation.stop())

const clientWith = (apiKey?: string | (() => Promise<string>)) =>
  new OpenRouter({ serverURL: federation.server.baseUrl, apiKey, retryConfig: { strategy: 'none' } })

function exchange(subjectToken: string, fields: Partial<TokenExchangeRequest> = {}) {
  const tokenExchangeRequest = {
    grantType: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subjectTokenType: 'urn:ietf:params:oauth:token-type:jwt',
    federationPolicyId: federation.policies['workload-rs256'].id,
    subjectToken,
    ...fields,
  } as const
  return clientWith().oAuth.createOauthToken({ tokenExchangeRequest })
}

async function failureOf(call: PromiseLike<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  )
}

describe('createOauthToken', () => {
  test('exchanges a token of the identity provider', async () => {
    const answer = await exchange(await federation.subjectToken('workload-rs256'))
    expect(answer).toEqual({
      accessToken: expect.any(String),
      issuedTokenType: 'urn:ietf:params:oauth:token-type:access_token',
      tokenType: 'Bearer',
      expiresIn: 900,
      scope: 'inference',
    })
    expect(decodeJwt(answer.accessToken)).toMatchObject({ sub: 'workload-rs256', client_id: federation.key.id })
  })

  test('may name the type and the scope that it wants', async () => {
    const answer = await exchange(await federation.subjectToken('workload-rs256'), {
      requestedTokenType: 'urn:ietf:params:oauth:token-type:access_token',
      scope: 'inference',
    })
    expect(answer.scope).toBe('inference')
  })

  test('needs no credential, and one that it sends is ignored', async () => {
    const subjectToken = await federation.subjectToken('workload-rs256')
    const tokenExchangeRequest = {
      grantType: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subjectTokenType: 'urn:ietf:params:oauth:token-type:jwt',
      federationPolicyId: federation.policies['workload-rs256'].id,
      subjectToken,
    } as const
    const answer = await clientWith('nonsense').oAuth.createOauthToken({ tokenExchangeRequest })
    expect(answer.accessToken).toBeString()
  })

  test('throws OAuthErrorResponse with invalid_grant for a token that the policy does not accept', async () => {
    const failure = await failureOf(exchange(await federation.subjectToken('workload-rs256', 'https://elsewhere.test')))
    expect(failure).toBeInstanceOf(OAuthErrorResponse)
    expect(failure).toMatchObject({
      statusCode: 400,
      error: 'invalid_grant',
      errorDescription: expect.stringContaining('not accepted'),
    })
    expect((failure as OAuthErrorResponse).body).not.toContain('access_token')
    const { data } = await federation.admin<{ data: Row[] }>('audit.list', { limit: 1 })
    expect(data).toMatchObject([{ outcome: 'refused', reason: 'audience_mismatch', subject: 'workload-rs256' }])
  })

  test('throws OAuthErrorResponse with invalid_request for what is not a JWT', async () => {
    const failure = await failureOf(exchange('nonsense'))
    expect(failure).toBeInstanceOf(OAuthErrorResponse)
    expect(failure).toMatchObject({ statusCode: 400, error: 'invalid_request', errorDescription: expect.any(String) })
  })

  test('throws OAuthErrorResponse with temporarily_unavailable when the keys of the issuer are unavailable', async () => {
    const gone = await listenLocally(async () => new Response())
    await gone.listener.drain()
    await federation.admin('issuers.add', {
      name: 'gone',
      issuer_url: 'https://gone.test',
      jwks_url: `${gone.url}/jwks`,
    })
    const policy = await federation.admin('policies.create', {
      name: 'gone',
      issuer: 'gone',
      key: 'target',
      audience: latchkeyAudience,
      subject: 'workload-rs256',
    })
    const [header, payload, signature] = (await federation.subjectToken('workload-rs256')).split('.')
    const claims = JSON.parse(Buffer.from(payload ?? '', 'base64url').toString()) as object
    const ofGone = Buffer.from(JSON.stringify({ ...claims, iss: 'https://gone.test' })).toString('base64url')
    const failure = await failureOf(exchange([header, ofGone, signature].join('.'), { federationPolicyId: policy.id }))
    expect(failure).toBeInstanceOf(OAuthErrorResponse)
    expect(failure).toMatchObject({ statusCode: 503, error: 'temporarily_unavailable' })
    expect((failure as OAuthErrorResponse).headers.get('retry-after')).toBe('1')
  })
})

test('listOauthJwks gives the keys that verify what createOauthToken issued', async () => {
  const { accessToken } = await exchange(await federation.subjectToken('workload-rs256'))
  const jwks = await clientWith().oAuth.listOauthJwks()
  expect(jwks.keys).not.toEqual([])
  const keys = createLocalJWKSet(jwks as JSONWebKeySet)
  const { payload } = await jwtVerify(accessToken, keys, { typ: 'at+jwt', issuer: federation.server.baseUrl })
  expect(payload.federation_policy_id).toBe(federation.policies['workload-rs256'].id)
})

describe('chat.send', () => {
  const question = { model: 'echo', messages: [{ role: 'user' as const, content: 'two words' }] }

  test('answers a client whose apiKey is a function that exchanges', async () => {
    const client = clientWith(async () => (await exchange(await federation.subjectToken('workload-rs256'))).accessToken)
    const answer = (await client.chat.send({ chatRequest: { ...question, stream: false } })) as ChatResult
    expect(answer.choices[0]?.message.content).toBe('two words')
    expect(answer.usage).toMatchObject({ promptTokens: 2, completionTokens: 2, totalTokens: 4 })
    const { data } = await federation.admin<{ data: Row[] }>('usage.requests', { limit: 1 })
    expect(data).toMatchObject([{ subject: 'workload-rs256', issuer_id: federation.issuer.id, total_tokens: 4 }])
  })

  test('streams', async () => {
    const client = clientWith(await federation.accessToken())
    const answer = await client.chat.send({ chatRequest: { ...question, stream: true } })
    const chunks: ChatStreamChunk[] = []
    for await (const chunk of answer as AsyncIterable<ChatStreamChunk>) chunks.push(chunk)
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('two words')
    expect(chunks.every((chunk) => chunk.usage === undefined)).toBe(true)
  })

  test('shows the routing metadata that the client asks for, with and without a stream', async () => {
    const client = clientWith(federation.key.key)
    const asked = { xOpenRouterMetadata: 'enabled' } as const
    const answer = (await client.chat.send({ ...asked, chatRequest: { ...question, stream: false } })) as ChatResult
    const expected = { attempt: 1, isByok: false, region: null, requested: 'echo', strategy: 'direct' }
    expect(answer.openrouterMetadata).toMatchObject(expected)
    const stream = await client.chat.send({ ...asked, chatRequest: { ...question, stream: true } })
    const chunks: ChatStreamChunk[] = []
    for await (const chunk of stream as AsyncIterable<ChatStreamChunk>) chunks.push(chunk)
    expect(chunks.at(-1)?.openrouterMetadata).toMatchObject(expected)
    expect(chunks.slice(0, -1).every((chunk) => chunk.openrouterMetadata === undefined)).toBe(true)
  })

  test('throws UnauthorizedResponseError without a credential and with a wrong one', async () => {
    for (const [apiKey, message] of [
      [undefined, 'Missing Authentication header'],
      ['nonsense', 'Invalid credentials'],
    ] as const) {
      const failure = await failureOf(clientWith(apiKey).chat.send({ chatRequest: { ...question, stream: false } }))
      expect(failure).toBeInstanceOf(UnauthorizedResponseError)
      expect((failure as UnauthorizedResponseError).error).toMatchObject({ code: 401, message })
    }
  })

  test('throws ForbiddenResponseError with a management key', async () => {
    const { key } = await federation.admin<Row & { key: string }>('keys.create', { name: 'boss', kind: 'management' })
    const failure = await failureOf(clientWith(key).chat.send({ chatRequest: { ...question, stream: false } }))
    expect(failure).toBeInstanceOf(ForbiddenResponseError)
    expect((failure as ForbiddenResponseError).error.code).toBe(403)
  })
})

test('getGeneration shows a request to the key that made it, and to no other', async () => {
  const { key, server } = federation
  const asked = await fetch(`${server.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'Hello' }] }),
  })
  await asked.text()
  const id = asked.headers.get('x-request-id') ?? ''
  const { data } = await clientWith(key.key).generations.getGeneration({ id })
  expect(data).toMatchObject({ id, model: 'echo', tokensPrompt: 1, tokensCompletion: 1, cancelled: false })
  const { key: other } = await federation.admin<Row & { key: string }>('keys.create', { name: 'stranger' })
  for (const call of [
    clientWith(other).generations.getGeneration({ id }),
    clientWith(key.key).generations.getGeneration({ id: crypto.randomUUID() }),
  ])
    expect(await failureOf(call)).toMatchObject({ statusCode: 404 })
})
