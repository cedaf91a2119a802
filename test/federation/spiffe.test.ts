// A SPIFFE trust domain as issuer: its bundle (the JWT-SVID and Trust Domain standards) replaces a key set, and its JWT-SVIDs are
// exchanged. A bundle has an entry for each kind of SVID, marked by `use` and without `alg`.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { json } from '../../src/http/reply.ts'
import { expectIssued, expectRefused } from '../support/exchange-outcome.ts'
import { createIssuerServer, issuerRow } from '../support/issuer-server.ts'
import { postExchange, type Row, startTestServer, type TestServer } from '../support/latchkey.ts'
import { createKeyPair, type KeyPair, signToken } from '../support/subject-token.ts'

const issuerUrl = 'https://spire.example.org'
const subject = 'spiffe://example.org/ns/inference/sa/summarizer'

let latchkey: TestServer
let policy: Row
let jwtAuthority: KeyPair
let x509Authority: KeyPair
beforeAll(async () => {
  latchkey = await startTestServer()
  jwtAuthority = await createKeyPair('ES256', 'jwt-authority')
  x509Authority = await createKeyPair('ES256', 'x509-authority')
  const jwks = {
    keys: [entry(x509Authority, 'x509-svid'), entry(jwtAuthority, 'jwt-svid')],
    spiffe_sequence: 12,
    spiffe_refresh_hint: 300,
  }
  await latchkey.admin('keys.create', { name: 'target' })
  await latchkey.admin('issuers.add', { name: 'spire', issuer_url: issuerUrl, jwks })
  const fields = { name: 'summarizer', issuer: 'spire', key: 'target', audience: 'latchkey', subject }
  policy = await latchkey.admin('policies.create', fields)
})
afterAll(() => latchkey.stop())

function entry({ publicJwk: { alg: _alg, ...jwk } }: KeyPair, use: string) {
  return { ...jwk, use }
}

function sign(pair: KeyPair): Promise<string> {
  const iat = Math.floor(Date.now() / 1_000)
  return signToken(pair, { iss: issuerUrl, sub: subject, aud: ['latchkey'], iat, exp: iat + 300 })
}

function exchange(token: string): Promise<Response> {
  return postExchange(latchkey.server.baseUrl, { federation_policy_id: policy.id, subject_token: token })
}

test('a JWT-SVID is exchanged', async () => {
  const token = await sign(jwtAuthority)
  const { audit } = await expectIssued(latchkey, await exchange(token), token)
  expect(audit.subject).toBe(subject)
})

test('a token signed with the key of X.509-SVIDs is refused', async () => {
  const token = await sign(x509Authority)
  const expected = { status: 400, error: 'invalid_grant', reason: 'kid_unknown' }
  await expectRefused(latchkey, await exchange(token), expected, token)
})

test('a bundle without JWT-SVIDs cannot be saved', async () => {
  const jwks = { keys: [entry(x509Authority, 'x509-svid')] }
  const adding = latchkey.admin('issuers.add', { name: 'other', issuer_url: 'https://other.example.org', jwks })
  await expect(adding).rejects.toThrow(/has no key that can verify/)
})

test('a pasted bundle is replaced by a newer one only', async () => {
  const bundle = (spiffe_sequence: number) => ({ keys: [entry(jwtAuthority, 'jwt-svid')], spiffe_sequence })
  const replace = (jwks: object) => latchkey.admin('issuers.update', { issuer: 'spire', jwks })
  await expect(replace(bundle(11))).rejects.toThrow('spiffe_sequence 11, and 12 is saved')
  expect(await replace(bundle(13))).toMatchObject({ jwks: { spiffe_sequence: 13 } })
  await expect(replace(bundle(12))).rejects.toThrow('spiffe_sequence 12, and 13 is saved')
})

describe('a bundle endpoint', () => {
  const reply = (sequence: number, hint: number) =>
    json(
      200,
      {
        keys: [
          { ...entry(jwtAuthority, 'jwt-svid'), alg: 'ES384' },
          { kty: 'EC', crv: 'P-384', use: 'x509-svid' },
        ],
        spiffe_sequence: sequence,
        spiffe_refresh_hint: hint,
      },
      { 'cache-control': 'max-age=7200' },
    )

  test('is polled as its refresh hint says, between one minute and a day', async () => {
    for (const [hint, seconds] of [
      [300, 300],
      [1, 60],
      [10_000_000, 86_400],
    ] as const) {
      const server = createIssuerServer([])
      server.answers.keys = () => reply(1, hint)
      const { fetchedAt, freshUntil } = await server.keys.refresh(issuerRow())
      expect((freshUntil - fetchedAt) / 1_000).toBe(seconds)
      expect(await server.keys.find(issuerRow(), { kid: 'jwt-authority', algorithm: 'ES256' })).toMatchObject({
        kid: 'jwt-authority',
      })
    }
  })

  test('never goes back to an older sequence, also after a restart; its last keys stay in use', async () => {
    const server = createIssuerServer([])
    const issuer = issuerRow()
    server.answers.keys = () => reply(7, 60)
    await server.keys.refresh(issuer)
    server.answers.keys = () => reply(6, 60)
    await expect(server.keys.refresh(issuer)).rejects.toThrow('went back from spiffe_sequence 7 to 6')
    const found = await server.keys.find(issuer, { kid: 'jwt-authority', algorithm: 'ES256' })
    expect(found).toMatchObject({ algorithm: 'ES256' })
    // A document without a sequence does not make it forget the last one.
    server.answers.keys = async () => {
      const { spiffe_sequence: _, ...rest } = (await reply(8, 60).json()) as Record<string, unknown>
      return json(200, rest)
    }
    await server.keys.refresh(issuer)
    server.answers.keys = () => reply(6, 60)
    await expect(server.keys.refresh(issuer)).rejects.toThrow('went back from spiffe_sequence 7 to 6')
    const restarted = createIssuerServer([])
    restarted.answers.keys = () => reply(6, 60)
    const [lastKeySet = null] = server.kept
    await expect(restarted.keys.refresh(issuerRow({ lastKeySet }))).rejects.toThrow('from spiffe_sequence 7 to 6')
    restarted.answers.keys = () => reply(7, 60)
    await restarted.keys.refresh(issuerRow({ lastKeySet }))
  })
})
