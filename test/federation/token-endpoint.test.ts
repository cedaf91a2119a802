// The token endpoint over the wire (reference: Token exchange; Token endpoint errors), outcome by outcome, each row one change in a valid
// exchange. The kinds of 400 have their own files, and so have lifetimes.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { auditOf, expectIssued, expectNoStore, expectRefused } from '../support/exchange-outcome.ts'
import { audience, exchangeFields, mintAt, postExchange, startFederation, subject } from '../support/latchkey.ts'
import { issuerUrl, type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'
import { chunkOf, openRawRequest } from '../support/raw-request.ts'
import { signToken } from '../support/subject-token.ts'
import { formOfLength, formType, goodForm, postForm, tokenOfLength } from '../support/token-request.ts'

let latchkey: PastedIssuer
let url = ''
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  url = `${latchkey.server.baseUrl}/oauth/token`
})
afterAll(() => latchkey.stop())

describe('200', () => {
  test('the answer has the five fields, and the audit shows who got which token', async () => {
    const token = await latchkey.sign({ jti: 'jti-1' })
    const { reply, audit } = await expectIssued(latchkey, await latchkey.exchange(token), token)
    expect(reply).toEqual({
      access_token: expect.any(String),
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: 900,
      scope: 'inference',
    })
    const claims = decodeJwt(reply.access_token)
    expect(decodeProtectedHeader(reply.access_token)).toEqual({ alg: 'ES256', typ: 'at+jwt', kid: expect.any(String) })
    expect(claims).toEqual({
      iss: latchkey.server.baseUrl,
      aud: latchkey.server.baseUrl,
      sub: subject,
      client_id: latchkey.key.id,
      scope: 'inference',
      iat: Math.floor(latchkey.clock.now / 1_000),
      exp: Math.floor(latchkey.clock.now / 1_000) + 900,
      jti: expect.any(String),
      federation_policy_id: latchkey.policy.id,
      federation_issuer_id: latchkey.issuer.id,
    })
    expect(audit).toMatchObject({
      policy_id: latchkey.policy.id,
      policy_named: latchkey.policy.id,
      issuer_id: latchkey.issuer.id,
      key_id: latchkey.key.id,
      subject,
      subject_token_id: 'jti-1',
      subject_token_sha256: createHash('sha256').update(token).digest('hex'),
      access_token_id: String(claims.jti),
      access_token_expires_at: new Date(Number(claims.exp) * 1_000).toISOString(),
    })
  })

  const edge = {
    long: 's'.repeat(512),
    astral: '𝕏'.repeat(512),
    skew: () => Math.floor(latchkey.clock.now / 1_000) + 30,
  }
  const goodTokens: [name: string, token: () => Promise<string>][] = [
    ['signed with RS256', () => signToken(latchkey.pairs.rs, latchkey.claims())],
    ['without a kid where one key fits', () => signToken(latchkey.pairs.rs, latchkey.claims(), { kid: undefined })],
    [
      'with jwk, jku, x5u and x5c beside the right kid',
      () => latchkey.sign({}, { jwk: latchkey.pairs.rs.publicJwk, jku: 'https://evil.example', x5u: 'x', x5c: ['x'] }),
    ],
    ['with several audiences', () => latchkey.sign({ aud: ['elsewhere', audience] })],
    ['with nbf and iat at the clock skew', () => latchkey.sign({ nbf: edge.skew(), iat: edge.skew() })],
    ['without iat', () => latchkey.sign({ iat: undefined })],
    ['with an exp that is a fraction', () => latchkey.sign({ exp: latchkey.clock.now / 1_000 + 60.5 })],
    ['with an aud value of 512 astral characters', () => latchkey.sign({ aud: [audience, edge.astral] })],
    ['with 16 scopes of 512', () => latchkey.sign({ scopes: Array(16).fill(edge.long) })],
    [
      'with scopes and token_type of wrong types that no rule looks at',
      () => latchkey.sign({ scopes: 1, token_type: [] }),
    ],
    ['of exactly 16,384 bytes', () => tokenOfLength(latchkey, 16_384)],
  ]
  for (const [name, make] of goodTokens) {
    test(`a token ${name} is accepted`, async () => {
      const token = await make()
      await expectIssued(latchkey, await latchkey.exchange(token), token)
    })
  }

  test('a subject of 512 astral characters is accepted and stands whole in the audit', async () => {
    const rules = { issuer: 'idp', key: 'target', audience, subject: edge.astral }
    const { id } = await latchkey.admin('policies.create', { name: 'astral', ...rules })
    const token = await latchkey.sign({ sub: edge.astral })
    const { reply, audit } = await expectIssued(latchkey, await latchkey.exchange(token, { federation_policy_id: id }))
    expect(decodeJwt(reply.access_token).sub).toBe(edge.astral)
    expect(audit.subject).toBe(edge.astral)
  })

  const goodForms: [name: string, body: () => Promise<string>, headers?: Record<string, string>][] = [
    [
      'audience and resource, repeated',
      async () => `${await goodForm(latchkey)}&audience=a&audience=b&resource=c&resource=d`,
    ],
    ['unknown fields, repeated', async () => `${await goodForm(latchkey)}&client_id=a&x=1&x=2`],
    ['optional fields left out', () => goodForm(latchkey, { scope: undefined, requested_token_type: undefined })],
    ['optional fields left empty', () => goodForm(latchkey, { scope: '', requested_token_type: '' })],
    ['a charset', () => goodForm(latchkey), { 'content-type': `${formType}; charset=UTF-8` }],
    ['an Authorization header', () => goodForm(latchkey), { authorization: 'Basic bm9ib2R5Og==' }],
    ['a body of 32,767 bytes', () => formOfLength(latchkey, 32_767)],
  ]
  for (const [name, make, headers] of goodForms) {
    test(`a request with ${name} is accepted`, async () => {
      await expectIssued(latchkey, await postForm(latchkey, await make(), headers))
    })
  }

  test('two organizations that trust the same issuer, subject and audience are distinguished by the policy id', async () => {
    await latchkey.admin('organizations.create', { name: 'twin' })
    const key = await latchkey.admin('keys.create', { organization: 'twin', name: 'target' })
    const jwks = { keys: [latchkey.pairs.es.publicJwk] }
    await latchkey.admin('issuers.add', { organization: 'twin', name: 'idp', issuer_url: issuerUrl, jwks })
    const rules = { name: 'policy', issuer: 'idp', key: 'target', audience, subject }
    const policy = await latchkey.admin('policies.create', { organization: 'twin', ...rules })
    const token = await latchkey.sign()
    const theirs = await expectIssued(latchkey, await latchkey.exchange(token, { federation_policy_id: policy.id }))
    const ours = await expectIssued(latchkey, await latchkey.exchange(token))
    expect(decodeJwt(theirs.reply.access_token).client_id).toBe(key.id)
    expect(decodeJwt(ours.reply.access_token).client_id).toBe(latchkey.key.id)
  })
})

describe('405', () => {
  for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    test(`${method} is refused and leaves no audit record`, async () => {
      const response = await fetch(url, { method })
      expect(response.status).toBe(405)
      expect(response.headers.get('allow')).toBe('POST')
      expectNoStore(response)
      const body = await response.text()
      const refusal = {
        error: 'invalid_request',
        error_description: expect.any(String),
        request_id: response.headers.get('x-request-id'),
      }
      expect(body === '' ? '' : JSON.parse(body)).toEqual(method === 'HEAD' ? '' : refusal)
      expect(await auditOf(latchkey, response)).toEqual([])
    })
  }
})

describe('413', () => {
  const expected = { status: 413, error: 'invalid_request', reason: 'body_too_large' }

  test('a body of 32,768 bytes is refused', async () => {
    const body = await formOfLength(latchkey, 32_768)
    const token = new URLSearchParams(body).get('subject_token') ?? ''
    await expectRefused(latchkey, await postForm(latchkey, body), expected, token)
  })

  test('a chunked body is accepted with 32,767 bytes and refused at the 32,768th, though it has not ended', async () => {
    const headers = { 'content-type': formType, 'transfer-encoding': 'chunked' }
    const good = openRawRequest(url, 'POST', headers)
    good.socket.write(`${chunkOf(await formOfLength(latchkey, 32_767))}0\r\n\r\n`)
    expect((await good.answer).status).toBe(200)
    good.socket.destroy()

    const endless = openRawRequest(url, 'POST', headers)
    endless.socket.write(chunkOf(await formOfLength(latchkey, 32_768)))
    const answer = await endless.answer
    endless.socket.destroy()
    await expectRefused(latchkey, new Response(answer.body, answer), expected)
  })

  test('a Content-Length of 32,768 is refused before the body arrives', async () => {
    const request = openRawRequest(url, 'POST', { 'content-type': formType, 'content-length': '32768' })
    const answer = await request.answer
    request.socket.destroy()
    await expectRefused(latchkey, new Response(answer.body, answer), expected)
  })
})

describe('503 temporarily_unavailable', () => {
  test('keys that are unavailable are reported as such, with Retry-After and nothing about the issuer', async () => {
    const gone = 'http://127.0.0.1:1'
    const federation = await startFederation()
    await federation.admin('issuers.add', { name: 'gone', issuer_url: gone })
    const rules = { name: 'gone', issuer: 'gone', key: 'target', audience, subject }
    const { id } = await federation.admin('policies.create', rules)
    const token = await mintAt(federation.issuerUrl, { iss: gone })
    const response = await postExchange(federation.server.baseUrl, { federation_policy_id: id, subject_token: token })
    const expected = { status: 503, error: 'temporarily_unavailable', reason: 'issuer_keys_unavailable' }
    const { text } = await expectRefused(federation, response, { ...expected, extraHeaders: ['retry-after'] }, token)
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    for (const secret of ['127.0.0.1', 'gone', id]) expect(text).not.toContain(secret)
    await federation.stop()
  })
})

describe('500 server_error', () => {
  test('something unforeseen is reported without any detail', async () => {
    const broken = await startWithPastedIssuer()
    broken.server.context.registry.issuers.clear()
    const token = await broken.sign()
    const expected = { status: 500, error: 'server_error', reason: 'unforeseen' }
    const { text } = await expectRefused(broken, await broken.exchange(token), expected, token)
    for (const secret of ['registry', broken.policy.id, ' at ', '.ts']) expect(text).not.toContain(secret)
    await broken.stop()
  })

  test('a token whose audit record cannot be written is not handed out', async () => {
    const broken = await startWithPastedIssuer()
    broken.server.context.writer.appendAudit = () => Promise.reject(new Error('disk full at sector 7'))
    const response = await broken.exchange(await broken.sign())
    expect(response.status).toBe(500)
    expectNoStore(response)
    const text = await response.text()
    expect(JSON.parse(text)).toEqual({
      error: 'server_error',
      error_description: expect.any(String),
      request_id: response.headers.get('x-request-id'),
    })
    expect(text).not.toContain('sector')
    await broken.stop()
  })
})

describe('429', () => {
  test('after so many exchanges from one address, with the time to wait; others go on, and it passes', async () => {
    const settings = { LATCHKEY_RATE_LIMIT: '60', LATCHKEY_RATE_BURST: '2', LATCHKEY_TRUSTED_PROXIES: '127.0.0.1' }
    let now = Date.now()
    const limited = await startFederation({ settings, dependencies: { now: () => now } })
    const token = await limited.mint()
    const from = (client: string) =>
      fetch(`${limited.server.baseUrl}/oauth/token`, {
        method: 'POST',
        headers: { 'x-forwarded-for': client },
        body: exchangeFields({ federation_policy_id: limited.policy.id, subject_token: token }),
      })
    expect((await from('203.0.113.1')).status).toBe(200)
    expect((await from('203.0.113.1')).status).toBe(200)
    const refused = await from('203.0.113.1')
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('1')
    expectNoStore(refused)
    expect(await refused.json()).toEqual({
      error: 'invalid_request',
      error_description: expect.stringMatching(/later/),
      request_id: refused.headers.get('x-request-id'),
    })
    expect((await from('203.0.113.2')).status).toBe(200)
    now += 1_000
    expect((await from('203.0.113.1')).status).toBe(200)
    const { data } = await limited.admin<{ data: { client_address: string }[] }>('audit.list')
    expect(data.map((row) => row.client_address)).toEqual(['203.0.113.1', '203.0.113.2', '203.0.113.1', '203.0.113.1'])
    await limited.stop()
  })
})
