// The tokens of seven identity providers as they document them, each under the policy that an admin would write for it, and what nearly fits.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { decodeJwt } from 'jose'
import type { Reason } from '../../../src/federation/subject-token/refusal.ts'
import { expectIssued, expectRefused } from '../../support/exchange-outcome.ts'
import { postExchange, type Row, startTestServer, type TestServer } from '../../support/latchkey.ts'
import { type NearMiss, nearMissesOfAll, type Recorded, recorded } from '../../support/recorded-claims.ts'
import { createKeyPair, type KeyPair, signToken } from '../../support/subject-token.ts'

type Trusted = Recorded & { issuer: Row; policy: Row; pair: KeyPair }

/** Another issuer that the organization trusts, without a policy. */
const otherIssuerUrl = 'https://other.example'

const fetched: string[] = []
let latchkey: TestServer
let trusted: Map<string, Trusted>
let stranger: KeyPair
let genericText: string

beforeAll(async () => {
  const fetchNothing = (url: string) => {
    fetched.push(url)
    return Promise.reject(new Error('Pasted keys need no network'))
  }
  latchkey = await startTestServer({ dependencies: { fetch: fetchNothing } })
  await latchkey.admin('keys.create', { name: 'target' })
  stranger = await createKeyPair('RS256', 'stranger')
  await addIssuer(otherIssuerUrl, stranger)
  const issuers = new Map<unknown, { issuer: Row; pair: KeyPair }>()
  trusted = new Map()
  for (const provider of recorded) {
    const { name, claims, audience, subject } = provider
    const known = issuers.get(claims.iss)
    const pair = known?.pair ?? (await createKeyPair('RS256', `key of ${claims.iss}`))
    const issuer = known?.issuer ?? (await addIssuer(claims.iss, pair))
    issuers.set(claims.iss, { issuer, pair })
    const fields = { name, issuer: issuer.id, key: 'target', audience, subject }
    trusted.set(name, { ...provider, issuer, pair, policy: await latchkey.admin('policies.create', fields) })
  }
  const unknown = await exchange(await signToken(stranger, { iss: otherIssuerUrl, sub: 's', aud: 'a' }), {
    id: crypto.randomUUID(),
  })
  genericText = (await unknown.text()).replace(unknown.headers.get('x-request-id') ?? '', '')
})
afterAll(() => latchkey.stop())

function addIssuer(issuerUrl: string, { publicJwk }: KeyPair): Promise<Row> {
  return latchkey.admin('issuers.add', { name: issuerUrl, issuer_url: issuerUrl, jwks: { keys: [publicJwk] } })
}

function exchange(subjectToken: string, policy: { id: string }): Promise<Response> {
  return postExchange(latchkey.server.baseUrl, { federation_policy_id: policy.id, subject_token: subjectToken })
}

function trustedAs(name: string): Trusted {
  const found = trusted.get(name)
  if (found === undefined) throw new Error(`Nothing is recorded as ${name}`)
  return found
}

/** The recorded claims, moved in time so that the token was issued ten seconds ago. */
function current({ claims }: Recorded): Record<string, unknown> {
  const shift = Math.floor(Date.now() / 1_000) - 10 - claims.iat
  const isTime = (name: string) => ['iat', 'nbf', 'exp', 'warnafter'].includes(name)
  return JSON.parse(JSON.stringify(claims), (name, value) => (isTime(name) ? value + shift : value))
}

async function expectExchanged(provider: Trusted, claims: Record<string, unknown>): Promise<void> {
  const token = await signToken(provider.pair, claims, provider.header)
  const { reply, audit } = await expectIssued(latchkey, await exchange(token, provider.policy), token)
  const secondsLeft = Math.min(900, provider.claims.exp - provider.claims.iat - 10)
  expect(reply.expires_in).toBeLessThanOrEqual(secondsLeft)
  expect(reply.expires_in).toBeGreaterThan(secondsLeft - 10)
  const issued = decodeJwt(reply.access_token)
  expect(issued).toMatchObject({
    sub: provider.subject,
    scope: 'inference',
    federation_policy_id: provider.policy.id,
    federation_issuer_id: provider.issuer.id,
  })
  expect(issued.exp).toBeLessThanOrEqual(claims.exp as number)
  expect(audit).toMatchObject({
    policy_id: provider.policy.id,
    issuer_id: provider.issuer.id,
    subject: provider.subject,
    subject_token_id: claims.jti ?? null,
  })
}

async function expectNotExchanged(provider: Trusted, token: string, reason: Reason): Promise<void> {
  const response = await exchange(token, provider.policy)
  const expected = { status: 400, error: 'invalid_grant', reason }
  const { text, audit } = await expectRefused(latchkey, response, expected, token)
  expect(text).toBe(genericText)
  expect(text).not.toContain('access_token')
  expect(audit).toMatchObject({ policy_id: provider.policy.id, issuer_id: provider.issuer.id })
}

async function expectNearMiss(provider: Trusted, { change, reason }: NearMiss): Promise<void> {
  const good = current(provider)
  expect(good).not.toMatchObject(change)
  const token = await signToken(provider.pair, { ...good, ...change }, provider.header)
  await expectNotExchanged(provider, token, reason)
}

for (const { name, subject, nearMisses } of recorded) {
  describe(`a token of ${name}`, () => {
    test('is exchanged under the policy for it', async () => {
      const provider = trustedAs(name)
      await expectExchanged(provider, current(provider))
    })

    test('is exchanged as well when its audience is one of several', async () => {
      const provider = trustedAs(name)
      await expectExchanged(provider, { ...current(provider), aud: ['https://elsewhere.example', provider.audience] })
    })

    for (const nearMiss of [...nearMisses, ...nearMissesOfAll({ subject, otherIssuerUrl })]) {
      test(`is refused ${nearMiss.name}`, () => expectNearMiss(trustedAs(name), nearMiss))
    }

    test('is refused at the time it was recorded for, which is long ago', async () => {
      const provider = trustedAs(name)
      await expectNotExchanged(provider, await signToken(provider.pair, provider.claims, provider.header), 'expired')
    })

    test('is refused when another issuer has signed it, with the key id of that issuer or with a borrowed one', async () => {
      const provider = trustedAs(name)
      const signed = (kid: string) => signToken(stranger, current(provider), { ...provider.header, kid })
      await expectNotExchanged(provider, await signed(stranger.kid), 'kid_unknown')
      await expectNotExchanged(provider, await signed(provider.pair.kid), 'signature_invalid')
    })

    test('is refused when another issuer vouches for the same subject and audience', async () => {
      const provider = trustedAs(name)
      const token = await signToken(stranger, { ...current(provider), iss: otherIssuerUrl }, provider.header)
      await expectNotExchanged(provider, token, 'issuer_mismatch')
    })

    test('is refused under the policy of every other provider', async () => {
      const provider = trustedAs(name)
      const token = await signToken(provider.pair, current(provider), provider.header)
      for (const other of trusted.values()) {
        if (other.name === name) continue
        const sharesIssuer = other.claims.iss === provider.claims.iss
        await expectNotExchanged(other, token, sharesIssuer ? 'subject_mismatch' : 'issuer_mismatch')
      }
    })
  })
}

test('no exchange has used the network', () => {
  expect(fetched).toEqual([])
})
