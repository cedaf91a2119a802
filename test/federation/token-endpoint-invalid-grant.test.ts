// 400 invalid_grant: everything about the token or the policy, each by one change in a valid exchange. The caller sees one and
// the same answer; only the audit distinguishes the reasons. Two kinds of row: a wrong token, and a policy that no longer stands. What a
// policy demands has one row for each reason here; which claims satisfy it is in policy.test.ts.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { exportSPKI } from 'jose'
import type { OperationName } from '../../src/admin/operations.ts'
import { expectIssued, expectRefused } from '../support/exchange-outcome.ts'
import { audience, type Row, subject } from '../support/latchkey.ts'
import { issuerUrl, type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'
import { createKeyPair, encodePart, type KeyPair, signInput, signToken } from '../support/subject-token.ts'

let latchkey: PastedIssuer
let stranger: KeyPair
const policies: Record<string, string> = {}

beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  stranger = await createKeyPair('ES256', 'es')
  const checks = {
    scoped: { required_scope: 'deploy' },
    typed: { required_token_type: 'id' },
    attributed: { attribute_to: 'claims.repository_id' },
    plain: {},
  }
  for (const [name, check] of Object.entries(checks)) {
    const made = await latchkey.admin('policies.create', {
      name,
      issuer: 'idp',
      key: 'target',
      audience,
      subject,
      ...check,
    })
    policies[name] = made.id
  }
})
afterAll(() => latchkey.stop())

const refused = { status: 400, error: 'invalid_grant' }
/** The first body seen: every other one must be the same, byte for byte. */
let onlyBody: string | undefined

async function expectInvalidGrant(response: Response, reason: string, token: string, detail?: string) {
  const { text, audit } = await expectRefused(latchkey, response, { ...refused, reason, detail }, token)
  onlyBody ??= text
  expect(text).toBe(onlyBody)
  return audit
}

const seconds = () => Math.floor(latchkey.clock.now / 1_000)
const payload = (claims?: Record<string, unknown>) => encodePart(latchkey.claims(claims))
const signed = (claims: Record<string, unknown>, header?: Record<string, unknown>) => () =>
  latchkey.sign(claims, header)
const rawPayload = (add: string) => () =>
  signToken(latchkey.pairs.es, JSON.stringify(latchkey.claims()).replace(/\}$/, `${add}}`))
const unsigned =
  (alg: unknown, signature = '') =>
  async () =>
    `${encodePart({ alg, kid: 'es' })}.${payload()}${`.${signature}`}`
const astral = (count: number) => '𝕏'.repeat(count)

async function hmacWithPublicKey(secret: string): Promise<string> {
  const input = `${encodePart({ alg: 'HS256', kid: 'rs' })}.${payload()}`
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}

async function publicPem(): Promise<string> {
  const { publicJwk } = latchkey.pairs.rs
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  return exportSPKI(await crypto.subtle.importKey('jwk', publicJwk as JsonWebKey, algorithm, true, ['verify']))
}

type TokenRow = [name: string, token: () => Promise<string>, reason: string, detail?: string, policy?: string]
const tokens: TokenRow[] = [
  // Algorithm and key
  ['alg none without a signature', unsigned('none'), 'token_algorithm', '"none"'],
  ['alg none with a real signature', signed({}, { alg: 'none' }), 'token_algorithm', '"none"'],
  ['alg NONE', unsigned('NONE', 'AAAA'), 'token_algorithm'],
  ['no alg', signed({}, { alg: undefined }), 'token_algorithm'],
  ['alg a list', signed({}, { alg: ['ES256'] }), 'token_algorithm'],
  ['alg ES384', signed({}, { alg: 'ES384' }), 'token_algorithm'],
  ['alg PS256', signed({}, { alg: 'PS256', kid: 'rs' }), 'token_algorithm'],
  ['HS256 with the public key as PEM', async () => hmacWithPublicKey(await publicPem()), 'token_algorithm', '"HS256"'],
  ['HS256 with the public modulus', () => hmacWithPublicKey(String(latchkey.pairs.rs.publicJwk.n)), 'token_algorithm'],
  ['HS256 with an empty key', () => hmacWithPublicKey(''), 'token_algorithm'],
  ['RS256 said of an ES256 key', signed({}, { alg: 'RS256' }), 'kid_unknown'],
  ['an unknown kid', signed({}, { kid: 'es2' }), 'kid_unknown', 'es2'],
  ['a kid in another case', signed({}, { kid: 'ES' }), 'kid_unknown'],
  ['an empty kid', signed({}, { kid: '' }), 'kid_unknown'],
  ['a kid that is a path', signed({}, { kid: '../../dev/null' }), 'kid_unknown'],
  ['a kid that is SQL', signed({}, { kid: "es' or '1'='1" }), 'kid_unknown'],
  ['a kid that is a member of every object', signed({}, { kid: '__proto__' }), 'kid_unknown'],
  ['a kid that is a number', signed({}, { kid: 1 }), 'token_header', 'kid'],
  ['a kid that is null', signed({}, { kid: null }), 'token_header', 'kid'],
  ['a kid that holds a NUL', signed({}, { kid: 'es\0x' }), 'kid_unknown', String.raw`es\u0000x`],
  ['a sub that goes on after a NUL', signed({ sub: `${subject}\0x` }), 'subject_mismatch'],
  ['the kid of another key of the issuer', signed({}, { kid: 'other-es' }), 'signature_invalid'],
  ['no kid where two keys fit', signed({}, { kid: undefined }), 'kid_ambiguous'],
  ['crit, even of a known member', signed({}, { crit: ['exp'], exp: 1 }), 'token_header', 'crit'],
  ['an empty crit', signed({}, { crit: [] }), 'token_header'],
  ['b64', signed({}, { b64: true }), 'token_header'],
  ['the key of another under the right kid', () => signToken(stranger, latchkey.claims()), 'signature_invalid'],
  ['a jwk of its own', () => signToken(stranger, latchkey.claims(), { jwk: stranger.publicJwk }), 'signature_invalid'],
  ['a jku of its own', () => signToken(stranger, latchkey.claims(), { jku: `${issuerUrl}/k` }), 'signature_invalid'],
  ['an x5u of its own', () => signToken(stranger, latchkey.claims(), { x5u: `${issuerUrl}/c` }), 'signature_invalid'],
  ['an x5c of its own', () => signToken(stranger, latchkey.claims(), { x5c: ['MIIB'] }), 'signature_invalid'],
  ['a payload exchanged after signing', swapPayload, 'signature_invalid', 'es'],
  ['no signature', async () => (await latchkey.sign()).replace(/[^.]+$/, ''), 'signature_invalid'],
  ['a signature of zeros', unsigned('ES256', 'A'.repeat(86)), 'signature_invalid'],
  ['a signature cut short', async () => (await latchkey.sign()).slice(0, -2), 'signature_invalid'],
  // Shape
  ['a claim named twice', rawPayload(`,"sub":"${subject}"`), 'token_duplicate_member'],
  ['a claim named twice, once escaped', rawPayload(String.raw`,"\u0073ub":"admin"`), 'token_duplicate_member'],
  ['a member of a claim named twice', rawPayload(',"act":{"a":1,"a":1}'), 'token_duplicate_member'],
  ['a header member named twice', duplicateHeader, 'token_duplicate_member'],
  // Claims
  [
    'another iss',
    signed({ iss: 'https://evil.example' }),
    'issuer_mismatch',
    `the token has "https://evil.example", the policy wants "${issuerUrl}"`,
  ],
  ['iss with a slash more', signed({ iss: `${issuerUrl}/` }), 'issuer_mismatch'],
  ['iss in another case', signed({ iss: 'https://IDP.example.com' }), 'issuer_mismatch'],
  ['no iss', signed({ iss: undefined }), 'token_claim_type', 'iss'],
  ['iss a list', signed({ iss: [issuerUrl] }), 'token_claim_type', 'iss'],
  ['no sub', signed({ sub: undefined }), 'token_claim_type', 'sub'],
  ['sub null', signed({ sub: null }), 'token_claim_type', 'sub'],
  ['sub a number', signed({ sub: 1 }), 'token_claim_type', 'sub'],
  ['another sub', signed({ sub: 'workload-2' }), 'subject_mismatch'],
  ['an empty sub', signed({ sub: '' }), 'token_claim_type', 'sub'],
  ['no aud', signed({ aud: undefined }), 'token_claim_type', 'aud'],
  ['aud an object', signed({ aud: { [audience]: true } }), 'token_claim_type', 'aud'],
  ['aud with a value that is no string', signed({ aud: [audience, 1] }), 'token_claim_type', 'aud'],
  ['another aud', signed({ aud: 'elsewhere' }), 'audience_mismatch'],
  // Times
  ['no exp', signed({ exp: undefined }), 'exp_invalid'],
  ['exp null', signed({ exp: null }), 'exp_invalid'],
  ['exp a string', () => latchkey.sign({ exp: String(seconds() + 60) }), 'exp_invalid'],
  ['exp beyond what a number holds', () => signToken(latchkey.pairs.es, hugeExp()), 'exp_invalid'],
  ['exp in milliseconds', () => latchkey.sign({ exp: latchkey.clock.now + 60_000 }), 'exp_invalid'],
  ['exp negative', signed({ exp: -1 }), 'exp_invalid'],
  ['exp a second ago', () => latchkey.sign({ exp: seconds() - 1 }), 'expired'],
  ['exp at this very second', () => latchkey.sign({ exp: latchkey.clock.now / 1_000 }), 'expired'],
  ['exp within this second', () => latchkey.sign({ exp: latchkey.clock.now / 1_000 + 0.9 }), 'expired'],
  ['nbf past the clock skew', () => latchkey.sign({ nbf: seconds() + 32 }), 'not_yet_valid'],
  ['nbf a string', () => latchkey.sign({ nbf: String(seconds()) }), 'token_claim_type', 'nbf'],
  ['iat past the clock skew', () => latchkey.sign({ iat: seconds() + 32 }), 'issued_in_future'],
  ['iat null', signed({ iat: null }), 'token_claim_type', 'iat'],
  // Lengths come before every rule of the policy, so a token that breaks both is reported as too long.
  ['sub of 513 characters', signed({ sub: 's'.repeat(513) }), 'claim_too_long', 'sub'],
  ['sub of 513 astral characters', signed({ sub: astral(513) }), 'claim_too_long', 'sub'],
  ['one aud value of 513', signed({ aud: [audience, 'a'.repeat(513)] }), 'claim_too_long', 'aud'],
  ['aud of 513', signed({ aud: 'a'.repeat(513) }), 'claim_too_long', 'aud'],
  ['17 scopes', signed({ scopes: Array(17).fill('s') }), 'claim_too_long', 'scopes: too many entries'],
  ['a scope of 513', signed({ scopes: ['s'.repeat(513)] }), 'claim_too_long', 'scopes'],
  ['a long sub with another aud', signed({ sub: 's'.repeat(513), aud: 'elsewhere' }), 'claim_too_long', 'sub'],
  // Claim checks
  [
    'no claim that usage is attributed to',
    signed({}),
    'attribution_failed',
    'No such key: repository_id; ask has(…) first',
    'attributed',
  ],
  ...[7, true, ['1'], '', ' ', 'x'.repeat(129), 'a\0b', '\ud800', 'sk-lk-v1-0123456789abcdef'].map(
    (value): TokenRow => [
      `the attribution ${JSON.stringify(value).slice(0, 30)}`,
      signed({ repository_id: value }),
      'attribution_failed',
      undefined,
      'attributed',
    ],
  ),
  ['no scopes where one is required', signed({ scope: 'deploy' }), 'scopes_missing', undefined, 'scoped'],
  ['scopes a string', signed({ scopes: 'deploy' }), 'scopes_wrong_type', undefined, 'scoped'],
  ['other scopes', signed({ scopes: ['other'] }), 'scopes_mismatch', undefined, 'scoped'],
  ['no token_type where one is required', signed({}, { typ: 'id' }), 'token_type_missing', undefined, 'typed'],
  ['token_type a list', signed({ token_type: ['id'] }), 'token_type_wrong_type', undefined, 'typed'],
  ['another token_type', signed({ token_type: 'other' }), 'token_type_mismatch', undefined, 'typed'],
]

async function swapPayload(): Promise<string> {
  const [header, , signature] = (await latchkey.sign()).split('.')
  return `${header}.${payload({ admin: true })}.${signature}`
}

function duplicateHeader(): Promise<string> {
  return signInput(latchkey.pairs.es, `${encodePart('{"alg":"none","alg":"ES256","kid":"es"}')}.${payload()}`)
}

function hugeExp(): string {
  return JSON.stringify(latchkey.claims({ exp: 0 })).replace('"exp":0', '"exp":1e400')
}

describe('a token is refused with', () => {
  for (const [name, make, reason, detail, policy = 'plain'] of tokens) {
    test(name, async () => {
      const token = await make()
      const response = await latchkey.exchange(token, { federation_policy_id: policies[policy] })
      const audit = await expectInvalidGrant(response, reason, token, detail)
      expect(audit).toMatchObject({
        policy_id: policies[policy],
        issuer_id: latchkey.issuer.id,
        key_id: latchkey.key.id,
      })
    })
  }

  test('asking for the inference scope in the form instead of carrying it in the token', async () => {
    const token = await latchkey.sign()
    const response = await latchkey.exchange(token, { federation_policy_id: policies.scoped, scope: 'inference' })
    await expectInvalidGrant(response, 'scopes_missing', token)
  })

  test('no look at any address that the token names', () => expect(latchkey.fetched).toEqual([]))
})

type Change = [name: OperationName, input: Record<string, unknown>]
type StandingRow = [name: string, reason: string, change: Change, undo?: Change]
const standings: StandingRow[] = [
  ['is paused', 'policy_paused', ['policies.pause', { policy: 'policy' }], ['policies.resume', { policy: 'policy' }]],
  ['targets a disabled key', 'key_disabled', ['keys.disable', { key: 'target' }], ['keys.enable', { key: 'target' }]],
  [
    'has an organization on the free plan',
    'organization_not_entitled',
    ['organizations.plan', { plan: 'free' }],
    ['organizations.plan', { plan: 'business' }],
  ],
  ['is deleted', 'policy_deleted', ['policies.delete', { policy: 'policy' }]],
  ['targets a deleted key', 'key_deleted', ['keys.delete', { key: 'target' }]],
  ['trusts a deleted issuer', 'issuer_deleted', ['issuers.delete', { issuer: 'idp' }]],
]

describe('a good token is refused when the policy', () => {
  for (const named of ['00000000-0000-0000-0000-000000000000', '00000000-0000-4000-8000-000000000000']) {
    test(`does not exist (${named})`, async () => {
      const token = await latchkey.sign()
      const response = await latchkey.exchange(token, { federation_policy_id: named })
      const audit = await expectInvalidGrant(response, 'policy_unknown', token)
      expect(audit).toMatchObject({ organization_id: null, policy_id: null, issuer_id: null, key_id: null })
    })
  }

  test('is of another organization that trusts another issuer', async () => {
    const foreign = await makeOrganization('elsewhere', 'https://other.example')
    const token = await latchkey.sign()
    const response = await latchkey.exchange(token, { federation_policy_id: foreign.id })
    const audit = await expectInvalidGrant(
      response,
      'issuer_mismatch',
      token,
      `the token has "${issuerUrl}", the policy wants "https://other.example"`,
    )
    expect(audit).toMatchObject({ organization_id: foreign.organization_id, policy_id: foreign.id })
  })

  for (const [name, reason, change, undo] of standings) {
    test(name, async () => {
      const { id: federation_policy_id } = await makeOrganization(reason, issuerUrl)
      const admin = ([operation, input]: Change) => latchkey.admin(operation, { organization: reason, ...input })
      const token = await latchkey.sign()
      const exchange = () => latchkey.exchange(token, { federation_policy_id })
      await expectIssued(latchkey, await exchange(), token)
      await admin(change)
      await expectInvalidGrant(await exchange(), reason, token)
      if (undo === undefined) return
      await admin(undo)
      await expectIssued(latchkey, await exchange(), token)
    })
  }
})

async function makeOrganization(organization: string, url: string): Promise<Row> {
  await latchkey.admin('organizations.create', { name: organization })
  await latchkey.admin('keys.create', { organization, name: 'target' })
  const jwks = { keys: [latchkey.pairs.es.publicJwk] }
  await latchkey.admin('issuers.add', { organization, name: 'idp', issuer_url: url, jwks })
  const rules = { issuer: 'idp', key: 'target', audience, subject }
  return latchkey.admin('policies.create', { organization, name: 'policy', ...rules })
}

test('a forged token with a shifted iat leaves the clock difference of its issuer as it was', async () => {
  const { clockDifferences } = latchkey.server.context
  await latchkey.exchange(await latchkey.sign())
  const before = [...clockDifferences.of(latchkey.issuer.id)]
  expect(before.length).toBeGreaterThan(0)
  await latchkey.exchange(await signToken(stranger, latchkey.claims({ iat: seconds() - 1_800 })))
  expect(clockDifferences.of(latchkey.issuer.id)).toEqual(before)
})
