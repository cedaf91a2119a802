// How long an access token lives (reference: Access token), and that the moment of minting counts: what was stopped by then stops the
// exchange, what is stopped later does not touch the token (reference: Policy lifecycle).
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { decodeJwt } from 'jose'
import type { OperationName } from '../../src/admin/operations.ts'
import { json } from '../../src/http/reply.ts'
import { expectIssued, expectRefused } from '../support/exchange-outcome.ts'
import { audience, postExchange, startTestServer, subject } from '../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'
import { createKeyPair, signToken } from '../support/subject-token.ts'

let latchkey: PastedIssuer
let shortPolicy: string
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  const rules = { issuer: 'idp', key: 'target', audience, subject, max_lifetime_seconds: 60 }
  shortPolicy = (await latchkey.admin('policies.create', { name: 'short', ...rules })).id
})
afterAll(() => latchkey.stop())

/** `left` is what the subject token has left, in seconds. */
const rows: [name: string, left: number, ofShortPolicy: boolean, expected: number][] = [
  ['15 minutes at most', 3_600, false, 900],
  ["the policy's maximum", 3_600, true, 60],
  ['the rest of the subject token where the policy allows more', 59, true, 59],
  ['the rest of the subject token where 15 minutes would be more', 899, false, 899],
  ['whole seconds, rounded down', 10.999, false, 10],
  ['one second at least', 1, false, 1],
]

describe('an access token lives', () => {
  for (const fraction of [0, 0.999]) {
    for (const [name, left, ofShortPolicy, expected] of rows) {
      test(`${name} (the clock at .${fraction * 1_000})`, async () => {
        const startedAt = Math.floor(Date.now() / 1_000)
        latchkey.clock.now = startedAt * 1_000 + fraction * 1_000
        const exp = latchkey.clock.now / 1_000 + left
        const token = await latchkey.sign({ exp })
        const policy = ofShortPolicy ? { federation_policy_id: shortPolicy } : {}
        const { reply } = await expectIssued(latchkey, await latchkey.exchange(token, policy), token)
        expect(reply.expires_in).toBe(expected)
        const claims = decodeJwt(reply.access_token)
        expect(claims.iat).toBe(startedAt)
        expect(claims.exp).toBe(startedAt + expected)
        expect(Number(claims.exp)).toBeLessThanOrEqual(exp)
      })
    }
  }

  test('not at all when the subject token has less than a second left', async () => {
    const token = await latchkey.sign({ exp: latchkey.clock.now / 1_000 + 0.999 })
    const expected = { status: 400, error: 'invalid_grant', reason: 'expired' }
    await expectRefused(latchkey, await latchkey.exchange(token), expected, token)
  })
})

/** A server whose issuer answers only when the test lets it, so that an exchange can be held in the middle. */
async function startWithHeldIssuer() {
  const pair = await createKeyPair('ES256', 'es')
  const asked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const clock = { now: Math.floor(Date.now() / 1_000) * 1_000 }
  const fetchKeys = async () => {
    asked.resolve()
    await released.promise
    return json(200, { keys: [pair.publicJwk] })
  }
  const test = await startTestServer({ dependencies: { now: () => clock.now, fetch: fetchKeys } })
  const issuerUrl = 'https://idp.example.com'
  await test.admin('keys.create', { name: 'target' })
  await test.admin('issuers.add', { name: 'idp', issuer_url: issuerUrl, jwks_url: `${issuerUrl}/keys` })
  const rules = { name: 'policy', issuer: 'idp', key: 'target', audience, subject }
  const policy = await test.admin('policies.create', rules)
  const exchange = async (left: number) => {
    const exp = Math.floor(clock.now / 1_000) + left
    const token = await signToken(pair, { iss: issuerUrl, sub: subject, aud: audience, exp })
    const form = { federation_policy_id: policy.id, subject_token: token }
    return { token, response: postExchange(test.server.baseUrl, form) }
  }
  return { ...test, clock, asked: asked.promise, release: () => released.resolve(), exchange }
}

describe('an exchange that waits for the keys of the issuer is judged as things stand afterward:', () => {
  const stops: [name: string, operation: OperationName, input: Record<string, unknown>, reason: string][] = [
    ['a paused policy', 'policies.pause', { policy: 'policy' }, 'policy_paused'],
    ['a deleted policy', 'policies.delete', { policy: 'policy' }, 'policy_deleted'],
    ['a changed audience', 'policies.update', { policy: 'policy', audience: 'new' }, 'audience_mismatch'],
    ['a deleted issuer', 'issuers.delete', { issuer: 'idp' }, 'issuer_deleted'],
    [
      'a lost entitlement',
      'organizations.plan',
      { organization: 'default', plan: 'free' },
      'organization_not_entitled',
    ],
    ['a disabled key', 'keys.disable', { key: 'target' }, 'key_disabled'],
  ]
  for (const [name, operation, input, reason] of stops) {
    test(`${name} refuses it`, async () => {
      const held = await startWithHeldIssuer()
      const { token, response } = await held.exchange(3_600)
      await held.asked
      await held.admin(operation, input)
      held.release()
      await expectRefused(held, await response, { status: 400, error: 'invalid_grant', reason }, token)
      await held.stop()
    })
  }

  test('the time of the wait is taken off its life', async () => {
    const held = await startWithHeldIssuer()
    const { token, response } = await held.exchange(100)
    await held.asked
    held.clock.now += 4_000
    held.release()
    const { reply } = await expectIssued(held, await response, token)
    expect(reply.expires_in).toBe(96)
    await held.stop()
  })

  test('a subject token whose last second passes between judging and minting refuses it', async () => {
    const held = await startWithHeldIssuer()
    held.release()
    // The keys are cached from here on, so the next exchange is judged once.
    const earlier = await held.exchange(100)
    await expectIssued(held, await earlier.response, earlier.token)
    const { clockDifferences } = held.server.context
    const { note } = clockDifferences
    // It is called between the two.
    clockDifferences.note = (...given) => {
      held.clock.now += 1
      note(...given)
    }
    const { token, response } = await held.exchange(1)
    await expectRefused(held, await response, { status: 400, error: 'invalid_grant', reason: 'expired' }, token)
    await held.stop()
  })

  test('a subject token that expired meanwhile refuses it', async () => {
    const held = await startWithHeldIssuer()
    const { token, response } = await held.exchange(3)
    await held.asked
    held.clock.now += 4_000
    held.release()
    await expectRefused(held, await response, { status: 400, error: 'invalid_grant', reason: 'expired' }, token)
    await held.stop()
  })
})

describe('an access token that was issued before', () => {
  const changes: [name: string, operation: OperationName, input: Record<string, unknown>, works: boolean][] = [
    ['its policy was paused still works', 'policies.pause', { policy: 'policy' }, true],
    ['its policy was deleted still works', 'policies.delete', { policy: 'policy' }, true],
    ['its issuer was deleted still works', 'issuers.delete', { issuer: 'idp' }, true],
    ['the entitlement was lost still works', 'organizations.plan', { organization: 'default', plan: 'free' }, true],
    ['its key was disabled does not work', 'keys.disable', { key: 'target' }, false],
    ['its key was deleted does not work', 'keys.delete', { key: 'target' }, false],
  ]
  for (const [name, operation, input, works] of changes) {
    test(name, async () => {
      const own = await startWithPastedIssuer()
      const { reply } = await expectIssued(own, await own.exchange(await own.sign()))
      await own.admin(operation, input)
      const headers = { authorization: `Bearer ${reply.access_token}` }
      // 503: the caller was let in, and only the inference server is missing.
      expect((await fetch(`${own.server.baseUrl}/models`, { headers })).status).toBe(works ? 503 : 401)
      await own.stop()
    })
  }
})
