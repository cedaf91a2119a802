// The token endpoint over the wire (interface §4.1 and §7.1, decisions §1), outcome by outcome, each row one change in a valid
// exchange. 400 invalid_grant has a file of its own, and so have lifetimes.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { auditOf, expectIssued, expectNoStore, expectNoTokenText, expectRefused } from '../support/exchange-outcome.ts'
import { audience, exchangeFields, mintAt, postExchange, startFederation, subject } from '../support/latchkey.ts'
import { issuerUrl, type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'
import { chunkOf, openRawRequest } from '../support/raw-request.ts'
import { encodePart, signInput, signToken } from '../support/subject-token.ts'

const formType = 'application/x-www-form-urlencoded'
let latchkey: PastedIssuer
let url = ''
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  url = `${latchkey.server.baseUrl}/oauth/token`
})
afterAll(() => latchkey.stop())

async function goodForm(fields: Record<string, string | undefined> = {}): Promise<URLSearchParams> {
  return exchangeFields({ federation_policy_id: latchkey.policy.id, subject_token: await latchkey.sign(), ...fields })
}

function post(body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { 'content-type': formType, ...headers }, body })
}

/** A good form brought to a length in bytes by a field that is ignored. */
async function formOfLength(bytes: number): Promise<string> {
  const form = `${await goodForm()}&pad=`
  return form + 'x'.repeat(bytes - form.length)
}

/** A good token of exactly this many bytes, its room taken up by header and payload. */
async function tokenOfLength(bytes: number): Promise<string> {
  for (let headerPad = 0; headerPad < 4; headerPad++) {
    const header = encodePart({ alg: 'ES256', kid: 'es', x: 'x'.repeat(headerPad) })
    const room = bytes - header.length - '..'.length - 86
    const bare = JSON.stringify(latchkey.claims({ pad: '' })).length
    const payload = encodePart(latchkey.claims({ pad: 'p'.repeat(Math.floor((room * 3) / 4) - bare) }))
    if (payload.length === room) return signInput(latchkey.pairs.es, `${header}.${payload}`)
  }
  throw new Error(`No token of ${bytes} bytes`)
}

describe('200', () => {
  test('the answer has the five fields, and the audit tells who got which token', async () => {
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
    ['of exactly 16,384 bytes', () => tokenOfLength(16_384)],
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
    ['audience and resource, repeated', async () => `${await goodForm()}&audience=a&audience=b&resource=c&resource=d`],
    ['unknown fields, repeated', async () => `${await goodForm()}&client_id=a&x=1&x=2`],
    [
      'optional fields left out',
      async () => String(await goodForm({ scope: undefined, requested_token_type: undefined })),
    ],
    ['optional fields left empty', async () => String(await goodForm({ scope: '', requested_token_type: '' }))],
    ['a charset', async () => String(await goodForm()), { 'content-type': `${formType}; charset=UTF-8` }],
    ['an Authorization header', async () => String(await goodForm()), { authorization: 'Basic bm9ib2R5Og==' }],
    ['a body of 32,767 bytes', () => formOfLength(32_767)],
  ]
  for (const [name, make, headers] of goodForms) {
    test(`a request with ${name} is accepted`, async () => {
      await expectIssued(latchkey, await post(await make(), headers))
    })
  }

  test('two organizations that trust the same issuer, subject and audience are told apart by the policy id', async () => {
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

type Row = [name: string, body: () => Promise<string>, reason: string, headers?: Record<string, string>]
const withFields = (fields: Record<string, string | undefined>) => async () => String(await goodForm(fields))
const withToken = (change: (token: string) => string) => async () =>
  String(await goodForm({ subject_token: change(await latchkey.sign()) }))
const accessToken = 'urn:ietf:params:oauth:token-type:access_token'
const required = ['grant_type', 'subject_token_type', 'federation_policy_id', 'subject_token']
const single = [...required, 'requested_token_type', 'scope']

const badRequests: Row[] = [
  ...required.map((name): Row => [`no ${name}`, withFields({ [name]: undefined }), 'field_missing']),
  ...required.map((name): Row => [`an empty ${name}`, withFields({ [name]: '' }), 'field_missing']),
  ...single.map((name): Row => [`${name} twice`, async () => `${await goodForm()}&${name}=x`, 'field_repeated']),
  ['the same scope twice', async () => `${await goodForm()}&scope=inference`, 'field_repeated'],
  ['no body', async () => '', 'field_missing'],
  ['JSON', async () => '{}', 'content_type', { 'content-type': 'application/json' }],
  ['a form called text', withFields({}), 'content_type', { 'content-type': 'text/plain' }],
  ['a type that only begins well', withFields({}), 'content_type', { 'content-type': `${formType}2` }],
  ['another charset', withFields({}), 'content_type', { 'content-type': `${formType}; charset=utf-16` }],
  ['a compressed body', withFields({}), 'content_encoding', { 'content-encoding': 'gzip' }],
  ['broken percent-encoding', async () => `${await goodForm()}&scope=%zz`, 'form_malformed'],
  ['a field that is not UTF-8', async () => `${await goodForm()}&x=%ff`, 'form_malformed'],
  ['another subject_token_type', withFields({ subject_token_type: accessToken }), 'subject_token_type'],
  [
    'an id_token',
    withFields({ subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' }),
    'subject_token_type',
  ],
  [
    'another requested_token_type',
    withFields({ requested_token_type: 'urn:ietf:params:oauth:token-type:jwt' }),
    'requested_token_type',
  ],
  ['an actor_token', withFields({ actor_token: 'x' }), 'actor_token'],
  [
    'a token of 16,385 bytes',
    async () => String(await goodForm({ subject_token: await tokenOfLength(16_385) })),
    'subject_token_too_large',
  ],
  ['a token that is none', withFields({ subject_token: 'x' }), 'subject_token_not_jwt'],
  ['two parts', withToken((token) => token.replace(/\.[^.]+$/, '')), 'subject_token_not_jwt'],
  ['four parts', withToken((token) => `${token}.AAAA`), 'subject_token_not_jwt'],
  ['a JWE', withToken((token) => `${token}.AAAA.AAAA`), 'subject_token_not_jwt'],
  ['an empty header', withToken((token) => token.replace(/^[^.]+/, '')), 'subject_token_not_jwt'],
  ['padding', withToken((token) => `${token}==`), 'subject_token_not_jwt'],
  ['white space before', withToken((token) => ` ${token}`), 'subject_token_not_jwt'],
  ['a line feed after', withToken((token) => `${token}\n`), 'subject_token_not_jwt'],
  ['the alphabet of base64', withToken((token) => `${token.slice(0, -3)}+/A`), 'subject_token_not_jwt'],
  ['loose trailing bits', withToken(loosenLastCharacter), 'subject_token_not_jwt'],
  [
    'a payload that is a list',
    withFields({ subject_token: `${encodePart({ alg: 'ES256' })}.${encodePart('[]')}.AAAA` }),
    'subject_token_not_jwt',
  ],
  [
    'a header that is no JSON',
    withFields({ subject_token: `${encodePart('{')}.${encodePart('{}')}.AAAA` }),
    'subject_token_not_jwt',
  ],
  [
    'a payload that is not UTF-8',
    withFields({ subject_token: `${encodePart({})}.${encodePart(Uint8Array.of(0x7b, 0xff, 0x7d))}.AAAA` }),
    'subject_token_not_jwt',
  ],
]

/** The same signature bytes under another spelling: an ES256 signature ends in a character with four loose bits. */
function loosenLastCharacter(token: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const other = token.slice(0, -1) + alphabet[alphabet.indexOf(token.slice(-1)) + 1]
  expect(Buffer.from(other, 'base64url')).toEqual(Buffer.from(token, 'base64url'))
  return other
}

async function expectPostRefused(body: string, expected: Parameters<typeof expectRefused>[2], headers = {}) {
  const token = new URLSearchParams(body).get('subject_token') ?? ''
  return expectRefused(latchkey, await post(body, headers), expected, token)
}

describe('400 invalid_request', () => {
  for (const [name, make, reason, headers] of badRequests) {
    test(`a request with ${name} is refused`, async () => {
      await expectPostRefused(await make(), { status: 400, error: 'invalid_request', reason }, headers)
    })
  }

  test('a token in the field of the policy reaches neither log nor audit', async () => {
    const token = await latchkey.sign()
    const response = await post(String(await goodForm({ federation_policy_id: token, subject_token: 'x' })))
    expect(response.status).toBe(400)
    expectNoTokenText(JSON.stringify(await auditOf(latchkey, response)), token)
    expectNoTokenText(latchkey.logLines.join(''), token)
  })
})

describe('400 unsupported_grant_type', () => {
  for (const grant of ['client_credentials', 'urn:ietf:params:oauth:grant-type:jwt-bearer', 'URN:x']) {
    test(`the grant ${grant} is refused, whatever else is missing`, async () => {
      const expected = { status: 400, error: 'unsupported_grant_type', reason: 'grant_type' }
      await expectPostRefused(`grant_type=${grant}`, expected)
      await expectPostRefused(String(await goodForm({ grant_type: grant })), expected)
    })
  }
})

describe('400 invalid_scope', () => {
  for (const scope of ['admin', 'inference admin', 'Inference', ' inference', 'inference inference']) {
    test(`the scope ${JSON.stringify(scope)} is refused`, async () => {
      const expected = { status: 400, error: 'invalid_scope', reason: 'scope' }
      await expectPostRefused(String(await goodForm({ scope })), expected)
    })
  }
})

describe('405', () => {
  for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    test(`${method} is refused and leaves no audit record`, async () => {
      const response = await fetch(url, { method })
      expect(response.status).toBe(405)
      expect(response.headers.get('allow')).toBe('POST')
      expectNoStore(response)
      const body = await response.text()
      if (method === 'HEAD') expect(body).toBe('')
      else expect(JSON.parse(body)).toEqual({ error: 'invalid_request', error_description: expect.any(String) })
      expect(await auditOf(latchkey, response)).toEqual([])
    })
  }
})

describe('413', () => {
  const expected = { status: 413, error: 'invalid_request', reason: 'body_too_large' }

  test('a body of 32,768 bytes is refused', async () => {
    await expectPostRefused(await formOfLength(32_768), expected)
  })

  test('a chunked body is accepted with 32,767 bytes and refused at the 32,768th, though it has not ended', async () => {
    const headers = { 'content-type': formType, 'transfer-encoding': 'chunked' }
    const good = openRawRequest(url, 'POST', headers)
    good.socket.write(`${chunkOf(await formOfLength(32_767))}0\r\n\r\n`)
    expect((await good.answer).status).toBe(200)
    good.socket.destroy()

    const endless = openRawRequest(url, 'POST', headers)
    endless.socket.write(chunkOf(await formOfLength(32_768)))
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
  test('keys that cannot be had are told as such, with Retry-After and without a word on the issuer', async () => {
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
  test('something unforeseen is told without any detail', async () => {
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
    expect(JSON.parse(text)).toEqual({ error: 'server_error', error_description: expect.any(String) })
    expect(text).not.toContain('sector')
    await broken.stop()
  })
})
