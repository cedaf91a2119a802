// The exchange seen by independent parts: tokens of a real identity provider, oauth4webapi as the client, jose as the verifier.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import * as oauth from 'oauth4webapi'
import { startIdentityProvider } from '../support/identity-provider.ts'
import type { Row } from '../support/latchkey.ts'
import { latchkeyAudience, startWorkloadFederation, type WorkloadFederation } from '../support/workload-federation.ts'

const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange'
const secondsOf = (milliseconds: number) => Math.floor(milliseconds / 1_000)

let federation: WorkloadFederation
let clockAhead = 0
beforeAll(async () => {
  federation = await startWorkloadFederation({ dependencies: { now: () => Date.now() + clockAhead } })
})
afterAll(() => federation.stop())

/** One exchange as a client without a secret makes it; @throws oauth.ResponseBodyError when refused */
async function exchange(subjectToken: string, policy: Row): Promise<oauth.TokenEndpointResponse> {
  const { baseUrl } = federation.server
  const server = { issuer: baseUrl, token_endpoint: `${baseUrl}/oauth/token` }
  const client = { client_id: 'workload' }
  const fields = {
    federation_policy_id: policy.id,
    subject_token: subjectToken,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    scope: 'inference',
  }
  const insecure = { [oauth.allowInsecureRequests]: true }
  const response = await oauth.genericTokenEndpointRequest(
    server,
    client,
    oauth.None(),
    tokenExchange,
    fields,
    insecure,
  )
  return oauth.processGenericTokenEndpointResponse(server, client, response)
}

async function refusalOf(subjectToken: string, policy: Row): Promise<oauth.ResponseBodyError> {
  const refusal = await exchange(subjectToken, policy).catch((error: unknown) => error)
  if (!(refusal instanceof oauth.ResponseBodyError)) throw new Error('It was not refused', { cause: refusal })
  return refusal
}

async function lastAudit(): Promise<Row> {
  const { data } = await federation.admin<{ data: Row[] }>('audit.list', { limit: 1 })
  const [last] = data
  if (last === undefined) throw new Error('The audit is empty')
  return last
}

/** Verifies with nothing but the published key set, as a resource server elsewhere would. */
async function verifyIssued(accessToken: string) {
  const { baseUrl } = federation.server
  const keys = createRemoteJWKSet(new URL(`${baseUrl}/oauth/jwks`))
  return jwtVerify(accessToken, keys, {
    algorithms: ['ES256'],
    typ: 'at+jwt',
    issuer: baseUrl,
    audience: baseUrl,
    requiredClaims: ['sub', 'client_id', 'scope', 'iat', 'exp', 'jti', 'federation_policy_id', 'federation_issuer_id'],
  })
}

describe('a token of a real identity provider', () => {
  const cases = [
    { workload: 'workload-rs256', algorithm: 'RS256' },
    { workload: 'workload-es256', algorithm: 'ES256' },
  ] as const

  for (const { workload, algorithm } of cases) {
    test(`signed with ${algorithm} is exchanged, and the audit says for whom`, async () => {
      const subjectToken = await federation.subjectToken(workload)
      expect(decodeProtectedHeader(subjectToken).alg).toBe(algorithm)
      const policy = federation.policies[workload]
      const answer = await exchange(subjectToken, policy)
      expect(answer).toMatchObject({
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        token_type: 'bearer',
        expires_in: 900,
        scope: 'inference',
      })
      expect(answer).not.toHaveProperty('refresh_token')
      expect(await lastAudit()).toMatchObject({
        outcome: 'issued',
        policy_id: policy.id,
        issuer_id: federation.issuer.id,
        issuer_url: federation.identityProvider.issuerUrl,
        subject: workload,
        subject_token_id: decodeJwt(subjectToken).jti,
        access_token_id: decodeJwt(answer.access_token).jti,
      })
    })

    test(`signed with ${algorithm} gives an access token that jose verifies from the published keys alone`, async () => {
      const subjectToken = await federation.subjectToken(workload)
      const { access_token, expires_in } = await exchange(subjectToken, federation.policies[workload])
      const { payload, protectedHeader } = await verifyIssued(access_token)
      expect(protectedHeader).toEqual({ alg: 'ES256', typ: 'at+jwt', kid: expect.any(String) })
      const { iat = 0, exp = 0 } = payload
      expect(payload).toEqual({
        iss: federation.server.baseUrl,
        aud: federation.server.baseUrl,
        sub: workload,
        client_id: federation.key.id,
        scope: 'inference',
        iat,
        exp,
        jti: expect.any(String),
        federation_policy_id: federation.policies[workload].id,
        federation_issuer_id: federation.issuer.id,
      })
      expect(exp - iat).toBe(expires_in ?? 0)
      expect(exp - iat).toBeLessThanOrEqual(900)
      expect(exp).toBeLessThanOrEqual(decodeJwt(subjectToken).exp ?? 0)
      expect(Math.abs(iat - secondsOf(Date.now()))).toBeLessThanOrEqual(5)
    })
  }

  test('was checked with keys that Latchkey found by discovery', async () => {
    await federation.accessToken()
    const issuer = await federation.admin('issuers.show', { issuer: 'provider' })
    expect(issuer).toMatchObject({ key_source: 'discovery', jwks_url: null, jwks: null })
    expect(issuer.keys_fetched_at).toBeString()
  })

  test('that expires soon gives an access token that lives no longer', async () => {
    const subjectToken = await federation.subjectToken('workload-brief')
    const { access_token, expires_in } = await exchange(subjectToken, federation.policies['workload-brief'])
    const { payload } = await verifyIssued(access_token)
    expect(payload.exp).toBeLessThanOrEqual(decodeJwt(subjectToken).exp ?? 0)
    expect(expires_in).toBeLessThanOrEqual(120)
    expect(expires_in).toBeGreaterThan(100)
  })

  test('gives another access token each time', async () => {
    const subjectToken = await federation.subjectToken('workload-rs256')
    const first = await exchange(subjectToken, federation.policies['workload-rs256'])
    const second = await exchange(subjectToken, federation.policies['workload-rs256'])
    expect(decodeJwt(first.access_token).jti).not.toBe(decodeJwt(second.access_token).jti)
  })
})

describe('the published keys', () => {
  test('are ES256 signing keys without private members', async () => {
    const response = await fetch(`${federation.server.baseUrl}/oauth/jwks`)
    expect(response.headers.get('cache-control')).toBe('public, max-age=300')
    const { keys } = (await response.json()) as { keys: Record<string, unknown>[] }
    expect(keys.length).toBeGreaterThan(0)
    for (const key of keys) {
      expect(Object.keys(key).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
      expect(key).toMatchObject({ alg: 'ES256', crv: 'P-256', kty: 'EC', use: 'sig' })
    }
  })

  test('do not verify an access token whose claims were changed', async () => {
    const [header, payload, signature] = (await federation.accessToken()).split('.')
    const claims = JSON.parse(Buffer.from(payload ?? '', 'base64url').toString()) as object
    const forged = Buffer.from(JSON.stringify({ ...claims, client_id: crypto.randomUUID() })).toString('base64url')
    await expect(verifyIssued([header, payload, signature].join('.'))).resolves.toBeDefined()
    await expect(verifyIssued([header, forged, signature].join('.'))).rejects.toThrow('signature verification failed')
  })
})

describe('a near miss is invalid_grant without an access token', () => {
  const near = (token: string) => (token.endsWith('AA') ? `${token.slice(0, -2)}QQ` : `${token.slice(0, -2)}AA`)
  const cases: { name: string; reason: string; token: () => Promise<string> }[] = [
    {
      name: 'for another audience',
      reason: 'audience_mismatch',
      token: () => federation.subjectToken('workload-rs256', `${latchkeyAudience}/`),
    },
    {
      name: 'of another client of the provider',
      reason: 'subject_mismatch',
      token: () => federation.subjectToken('workload-stranger'),
    },
    {
      name: 'of a workload that another policy admits',
      reason: 'subject_mismatch',
      token: () => federation.subjectToken('workload-es256'),
    },
    {
      name: 'with another signature',
      reason: 'signature_invalid',
      token: async () => near(await federation.subjectToken('workload-rs256')),
    },
    {
      name: 'of another provider, for the same subject and audience',
      reason: 'issuer_mismatch',
      token: async () => {
        const other = await startIdentityProvider()
        return other.getToken('workload-rs256', latchkeyAudience).finally(other.stop)
      },
    },
  ]

  for (const { name, reason, token } of cases) {
    test(name, async () => {
      const refusal = await refusalOf(await token(), federation.policies['workload-rs256'])
      expect(refusal).toMatchObject({ status: 400, error: 'invalid_grant' })
      expect(refusal.error_description).toBeString()
      expect(refusal.cause).not.toHaveProperty('access_token')
      expect(await lastAudit()).toMatchObject({ outcome: 'refused', error: 'invalid_grant', reason })
    })
  }

  test('and no two can be distinguished', async () => {
    const descriptions = new Set<string | undefined>()
    for (const { token } of cases) {
      const { error_description } = await refusalOf(await token(), federation.policies['workload-rs256'])
      descriptions.add(error_description)
    }
    const unknownPolicy = { id: crypto.randomUUID() }
    const refusal = await refusalOf(await federation.subjectToken('workload-rs256'), unknownPolicy)
    expect([...descriptions.add(refusal.error_description)]).toHaveLength(1)
  })
})

// Last, since it changes the provider's keys and the clock for all that follows.
test('a provider that rotates its keys is followed: new keys are fetched, withdrawn ones no longer verify', async () => {
  const policy = federation.policies['workload-es256']
  const old = await federation.subjectToken('workload-es256')
  await exchange(old, policy)

  await federation.identityProvider.rotateKeys({ keepOld: true })
  const newer = await federation.subjectToken('workload-es256')
  expect(decodeProtectedHeader(newer).kid).not.toBe(decodeProtectedHeader(old).kid)
  expect(await exchange(newer, policy)).toHaveProperty('access_token')
  expect(await exchange(old, policy)).toHaveProperty('access_token')

  await federation.identityProvider.rotateKeys()
  // An unknown key id has just caused a fetch; the next one may after the cool-down.
  clockAhead += 31_000
  expect(await exchange(await federation.subjectToken('workload-es256'), policy)).toHaveProperty('access_token')
  expect(await refusalOf(newer, policy)).toMatchObject({ error: 'invalid_grant' })
  expect(await lastAudit()).toMatchObject({ outcome: 'refused', reason: 'kid_unknown' })
})
