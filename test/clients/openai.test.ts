// The openai client through Latchkey, with an access token and with an API key: answers, streams, errors, and the ledger afterward.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { decodeJwt } from 'jose'
import OpenAI, { APIError, AuthenticationError, InternalServerError, PermissionDeniedError } from 'openai'
import { listenLocally, type Row, startTestServer, upstreamApiKey } from '../support/latchkey.ts'
import { startWorkloadFederation, type WorkloadFederation } from '../support/workload-federation.ts'

const messages = [
  { role: 'system', content: 'answer with an echo' },
  { role: 'user', content: 'three plain words' },
] as const
/** The echo upstream counts words. */
const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }

let federation: WorkloadFederation
let clockAhead = 0
beforeAll(async () => {
  federation = await startWorkloadFederation({ dependencies: { now: () => Date.now() + clockAhead } })
})
afterAll(() => federation.stop())

const clientWith = (apiKey: string, baseURL = federation.server.baseUrl) =>
  new OpenAI({ apiKey, baseURL, maxRetries: 0 })

const ask = (client: OpenAI) => client.chat.completions.create({ model: 'echo', messages: [...messages] })

async function stream(client: OpenAI, stream_options?: { include_usage: boolean }) {
  const answer = await client.chat.completions.create({
    model: 'echo',
    messages: [...messages],
    stream: true,
    stream_options,
  })
  const chunks = []
  for await (const chunk of answer) chunks.push(chunk)
  const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')
  return { chunks, text, withUsage: chunks.filter((chunk) => chunk.usage != null) }
}

async function ledger(): Promise<Row[]> {
  const { data } = await federation.admin<{ data: Row[] }>('usage.requests')
  return data
}

async function lastUsage(): Promise<Row | undefined> {
  return (await ledger())[0]
}

/** What `call` fails with. */
async function failureOf(call: Promise<unknown>): Promise<APIError> {
  const error = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(error instanceof APIError)) throw new Error('It did not fail with an APIError', { cause: error })
  return error
}

describe('with an access token', () => {
  test('a chat completion is answered, and the ledger names policy, issuer, subject and token', async () => {
    const accessToken = await federation.accessToken('workload-es256')
    const answer = await ask(clientWith(accessToken))
    expect(answer.choices[0]?.message.content).toBe('three plain words')
    expect(answer.usage).toEqual(usage)
    expect(await lastUsage()).toMatchObject({
      key_id: federation.key.id,
      policy_id: federation.policies['workload-es256'].id,
      issuer_id: federation.issuer.id,
      issuer_url: federation.identityProvider.issuerUrl,
      subject: 'workload-es256',
      access_token_id: decodeJwt(accessToken).jti,
      endpoint: '/chat/completions',
      model: 'echo',
      status: 200,
      streamed: false,
      completed: true,
      usage_source: 'upstream',
      ...usage,
    })
  })

  test('a stream that asks for the usage ends with it', async () => {
    const { text, chunks, withUsage } = await stream(clientWith(await federation.accessToken()), {
      include_usage: true,
    })
    expect(text).toBe('three plain words')
    expect(withUsage).toHaveLength(1)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage })
    expect(await lastUsage()).toMatchObject({ streamed: true, completed: true, subject: 'workload-rs256', ...usage })
  })

  for (const stream_options of [undefined, { include_usage: false }]) {
    test(`a stream with stream_options ${JSON.stringify(stream_options)} has no usage, yet the ledger has`, async () => {
      const accessToken = await federation.accessToken()
      const { text, chunks, withUsage } = await stream(clientWith(accessToken), stream_options)
      expect(text).toBe('three plain words')
      expect(withUsage).toEqual([])
      expect(chunks.every((chunk) => chunk.choices.length === 1)).toBe(true)
      expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop')
      expect(await lastUsage()).toMatchObject({
        access_token_id: decodeJwt(accessToken).jti,
        streamed: true,
        completed: true,
        ...usage,
      })
    })
  }

  test('the stream helper of the client puts the answer together', async () => {
    const client = clientWith(await federation.accessToken())
    const runner = client.chat.completions.stream({ model: 'echo', messages: [...messages] })
    expect(await runner.finalContent()).toBe('three plain words')
  })

  test('models are listed', async () => {
    const page = await clientWith(await federation.accessToken()).models.list()
    expect(page.data.map(({ id }) => id)).toContain('echo')
  })

  test('requests count for the target key beside those made with the key itself', async () => {
    const requests = async () => {
      const { data } = await federation.admin<{ data: Row[] }>('usage.sum', { key: 'target' })
      return Number(data[0]?.requests ?? 0)
    }
    const before = await requests()
    await ask(clientWith(await federation.accessToken()))
    await ask(clientWith(federation.key.key))
    expect(await requests()).toBe(before + 2)
  })
})

test('with an inference key, plain and streamed answers come, and the ledger names no policy', async () => {
  const client = clientWith(federation.key.key)
  expect((await ask(client)).usage).toEqual(usage)
  const { text, withUsage } = await stream(client)
  expect(text).toBe('three plain words')
  expect(withUsage).toEqual([])
  for (const row of (await ledger()).slice(0, 2)) {
    const federated = { policy_id: null, issuer_id: null, subject: null, access_token_id: null }
    expect(row).toMatchObject({ key_id: federation.key.id, ...federated, ...usage })
  }
  expect((await client.models.list()).data).not.toEqual([])
})

describe('what the client throws', () => {
  test('is PermissionDeniedError for a management key, and nothing is counted', async () => {
    const { key } = await federation.admin<Row & { key: string }>('keys.create', { name: 'boss', kind: 'management' })
    const before = (await ledger()).length
    const calls: ((client: OpenAI) => Promise<unknown>)[] = [ask, stream, (client) => client.models.list()]
    for (const call of calls) {
      const failure = await failureOf(call(clientWith(key)))
      expect(failure).toBeInstanceOf(PermissionDeniedError)
      const metadata = { error_type: 'permission_denied' }
      expect(failure.error).toEqual({ code: 403, message: expect.stringContaining('Management keys'), metadata })
    }
    expect(await ledger()).toHaveLength(before)
  })

  test('is AuthenticationError for a key nobody made, a broken token and an expired one', async () => {
    const accessToken = await federation.accessToken()
    const before = (await ledger()).length
    clockAhead = 901_000
    for (const credential of [`sk-lk-v1-${'0'.repeat(64)}`, 'nonsense', accessToken]) {
      const failure = await failureOf(ask(clientWith(credential)))
      expect(failure).toBeInstanceOf(AuthenticationError)
      expect(failure.headers?.get('www-authenticate')).toContain('error="invalid_token"')
    }
    clockAhead = 0
    expect(await ledger()).toHaveLength(before)
    expect(await ask(clientWith(accessToken))).toHaveProperty('choices')
  })

  test('is AuthenticationError while the target key is disabled, also for tokens issued before', async () => {
    const client = clientWith(await federation.accessToken())
    await federation.admin('keys.disable', { key: 'target' })
    const failures = [await failureOf(ask(client)), await failureOf(ask(clientWith(federation.key.key)))]
    await federation.admin('keys.enable', { key: 'target' })
    for (const failure of failures) expect(failure).toBeInstanceOf(AuthenticationError)
    expect(await ask(client)).toHaveProperty('choices')
  })

  test('is InternalServerError with our own error when the inference server is away, and that is in the ledger', async () => {
    const gone = await listenLocally(async () => new Response())
    await gone.listener.drain()
    const server = await startTestServer({ upstreamUrl: gone.url })
    try {
      const { key } = await server.admin<Row & { key: string }>('keys.create', { name: 'lonely' })
      const failure = await failureOf(ask(clientWith(key, server.server.baseUrl)))
      expect(failure).toBeInstanceOf(InternalServerError)
      expect(failure).toMatchObject({ status: 502, error: { code: 502, message: expect.any(String) } })
      const { data } = await server.admin<{ data: Row[] }>('usage.requests')
      expect(data).toMatchObject([{ status: 502, completed: false, total_tokens: null, usage_source: 'none' }])
    } finally {
      await server.stop()
    }
  })
})

test("the caller's credential stays here and the upstream's does not come out", async () => {
  const seen: Headers[] = []
  const upstream = await listenLocally(async (request) => {
    seen.push(request.headers)
    return Response.json({ object: 'list', data: [] })
  })
  const server = await startTestServer({ upstreamUrl: upstream.url })
  try {
    const { key } = await server.admin<Row & { key: string }>('keys.create', { name: 'caller' })
    const { response } = await clientWith(key, server.server.baseUrl).models.list().withResponse()
    expect(seen[0]?.get('authorization')).toBe(`Bearer ${upstreamApiKey}`)
    expect(JSON.stringify([...(seen[0]?.entries() ?? [])])).not.toContain(key)
    expect(JSON.stringify([...response.headers])).not.toContain(upstreamApiKey)
  } finally {
    await server.stop()
    await upstream.listener.drain()
  }
})
