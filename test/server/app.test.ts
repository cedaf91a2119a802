// What holds for every answer of the service, whichever route it is: the request id, the error shape, methods and unknown paths.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { openRawRequest } from '../support/raw-request.ts'

let federation: Federation
beforeAll(async () => {
  federation = await startFederation()
})
afterAll(() => federation.stop())

const requestIdText = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const at = (path: string) => new URL(federation.server.baseUrl).origin + path
const bearer = () => ({ authorization: `Bearer ${federation.key.key}` })

const servedMessage =
  'Resource not found; below /v1 are /oauth/token, /oauth/jwks, /chat/completions, /completions, /responses, ' +
  '/messages, /embeddings, /rerank, /score, /classify, /pooling, /audio/speech, /audio/transcriptions, ' +
  '/audio/translations, /images/generations, /images/edits, /messages/count_tokens, /tokenize, /detokenize, ' +
  '/models, and more in /v1/openapi.json'

describe('404', () => {
  const paths = ['/', '/v1', '/v1/', '/v1/unknown', '/v1/%6fauth/jwks', '/v1/completions/x/y/z']
  for (const path of paths) {
    test(`${path} is not found, with or without a credential`, async () => {
      for (const headers of [{}, bearer()]) {
        const response = await fetch(at(path), { headers })
        expect(response.status).toBe(404)
        expect(await response.json()).toEqual({
          error: { code: 404, message: servedMessage, metadata: { error_type: expect.any(String) } },
        })
        expect(response.headers.get('content-type')).toBe('application/json')
      }
    })
  }

  const unserved = ['moderations', 'files', 'realtime', 'batches', 'vector_stores', 'audio/voices']
  test.each(unserved)('/v1/%s, which others serve, is answered with what is served', async (path) => {
    const response = await fetch(at(`/v1/${path}`), { method: 'POST', headers: bearer(), body: '{}' })
    expect(response.status).toBe(404)
    expect(await response.json()).toEqual({
      error: { code: 404, message: servedMessage, metadata: { error_type: expect.any(String) } },
    })
  })
})

describe('404 with the nearest path', () => {
  const rows: [path: string, nearest: string][] = [
    ['/oauth/token', '/v1/oauth/token'],
    ['/v1/v1/oauth/token', '/v1/oauth/token'],
    ['/v2/oauth/token', '/v1/oauth/token'],
    ['/v1/oauth/token/', '/v1/oauth/token'],
    ['/v1/OAUTH/TOKEN', '/v1/oauth/token'],
    ['/v1/v1/keys/0a1b/', '/v1/keys/{hash}'],
    ['/models/vendor/model', '/v1/models/{model}'],
    ['/api/v1/chat/completions', '/v1/chat/completions'],
    ['/v1/openai/v1/embeddings', '/v1/embeddings'],
    ['/anthropic/v1/messages', '/v1/messages'],
    ['/v1/completions/x', '/v1/completions'],
    ['/v1/chat/completion', '/v1/chat/completions'],
    ['/v1/audio/transcription', '/v1/audio/transcriptions'],
    ['/v1/image/generations', '/v1/images/generations'],
    ['/v1/messages/count-tokens', '/v1/messages/count_tokens'],
  ]
  for (const [path, nearest] of rows) {
    test(`${path} asks for ${nearest}`, async () => {
      const response = await fetch(at(path))
      expect(response.status).toBe(404)
      const message = `Resource not found; did you mean ${nearest}?`
      expect(await response.json()).toEqual({
        error: { code: 404, message, metadata: { error_type: expect.any(String) } },
      })
    })
  }
})

describe('405', () => {
  const rows: [method: string, path: string, allowed: string][] = [
    ['POST', '/v1/oauth/jwks', 'GET, HEAD'],
    ['DELETE', '/v1/models', 'GET, HEAD'],
    ['GET', '/v1/chat/completions', 'POST'],
    ['OPTIONS', '/v1/chat/completions', 'POST'],
  ]
  for (const [method, path, allowed] of rows) {
    test(`${method} ${path} receives what is allowed: ${allowed}`, async () => {
      const response = await fetch(at(path), { method })
      expect(response.status).toBe(405)
      expect(response.headers.get('allow')).toBe(allowed)
      expect(await response.json()).toEqual({
        error: {
          code: 405,
          message: `The method ${method} is not allowed here: use ${allowed.replace(/, (?=[A-Z]+$)/, ' or ')}`,
          metadata: { error_type: 'invalid_request' },
        },
      })
    })
  }
})

describe('HEAD', () => {
  test('answers as GET does, without the body', async () => {
    const get = await fetch(at('/v1/oauth/jwks'))
    const head = await fetch(at('/v1/oauth/jwks'), { method: 'HEAD' })
    expect(head.status).toBe(200)
    expect(await head.text()).toBe('')
    for (const name of ['content-type', 'cache-control', 'content-length'])
      expect(head.headers.get(name)).toBe(get.headers.get(name))
  })

  test('of an unknown path is 404 without a body', async () => {
    const head = await fetch(at('/v1/unknown'), { method: 'HEAD' })
    expect(head.status).toBe(404)
    expect(await head.text()).toBe('')
  })
})

describe('x-request-id', () => {
  const requests: [name: string, path: string, init: () => RequestInit][] = [
    ['200', '/v1/oauth/jwks', () => ({})],
    ['a forwarded 200', '/v1/models', () => ({ headers: bearer() })],
    ['400', '/v1/oauth/token', () => ({ method: 'POST' })],
    ['401', '/v1/models', () => ({})],
    ['404', '/unknown', () => ({})],
    ['405', '/v1/models', () => ({ method: 'PUT' })],
    ['HEAD', '/v1/oauth/jwks', () => ({ method: 'HEAD' })],
  ]
  test('is a UUIDv7 of our own on every answer, never one that the caller brought', async () => {
    const brought = crypto.randomUUID()
    const seen = new Set<string>()
    for (const [name, path, init] of requests) {
      const { headers, ...rest } = init()
      const response = await fetch(at(path), { ...rest, headers: { ...headers, 'x-request-id': brought } })
      const id = response.headers.get('x-request-id') ?? ''
      expect({ name, id }).toEqual({ name, id: expect.stringMatching(requestIdText) })
      seen.add(id)
    }
    expect(seen.size).toBe(requests.length)
    expect(seen.has(brought)).toBe(false)
  })

  test('is found again in the log of a refused request', async () => {
    const response = await fetch(at('/v1/models'), { headers: { authorization: 'Bearer nonsense' } })
    const lines = federation.logLines.filter((line) => line.includes(response.headers.get('x-request-id') ?? 'none'))
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'warn', status: 401, reason: 'token_invalid' })
  })
})

describe('500', () => {
  test('reports nothing of what went wrong; the log does', async () => {
    const { context } = federation.server
    const publish = context.signingKeys.jwks
    context.signingKeys.jwks = () => {
      throw new Error('secret detail')
    }
    const response = await fetch(at('/v1/oauth/jwks'))
    context.signingKeys.jwks = publish
    expect(response.status).toBe(500)
    expect(await response.json()).toEqual({
      error: { code: 500, message: 'Internal server error', metadata: { error_type: expect.any(String) } },
    })
    expect(federation.logLines.at(-1)).toContain('secret detail')
  })
})

describe('a request that is hardly one', () => {
  for (const host of ['a b:c', '', '[::1', 'a:99999']) {
    test(`with Host ${JSON.stringify(host)} is answered by its path alone`, async () => {
      const { key } = await federation.admin<Row & { key: string }>('keys.create', {
        name: `host ${host}`.trim(),
        kind: 'management',
      })
      for (const [path, status] of [
        ['/v1/oauth/jwks', 200],
        ['/v1/none', 404],
        ['/v1/keys?offset=0', 200],
        ['/v1/keys?offset=x', 400],
        ['/v1/presets?limit=x', 400],
        ['/v1/workload-identity/policies?limit=x', 400],
      ] as const) {
        const { socket, answer } = openRawRequest(at(path), 'GET', { host, authorization: `Bearer ${key}` })
        expect((await answer).status).toBe(status)
        socket.destroy()
      }
    })
  }

  test('with a credential in its path keeps it out of the log', async () => {
    const secrets = [federation.key.key, await federation.mint()]
    const late = `${'a/'.repeat(110)}${federation.key.key}`
    expect((await fetch(at(`/${late}`))).status).toBe(404)
    expect(federation.logLines.at(-1)).not.toContain('sk-lk')
    for (const secret of secrets) expect((await fetch(at(`/v1/keys/x/${secret}`))).status).toBe(404)
    const log = federation.logLines.join('')
    expect(log).toContain('"path":"/v1/keys/x/…"')
    for (const secret of secrets) expect(log).not.toContain(secret)
  })
})
