// A SPIFFE trust domain as issuer: its bundle (the JWT-SVID and Trust Domain standards) stands in for a key set, and its JWT-SVIDs are
// exchanged. A bundle has an entry for each kind of SVID, marked by `use` and without `alg`.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { expectIssued, expectRefused } from '../support/exchange-outcome.ts'
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
