// What the audit says of an exchange and what `policies check` says of the same token: the first step that refuses, with its reason.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Explanation } from '../../../src/admin/policies/explain.ts'
import { anyClaims, anyHeader, changedToken } from '../../support/exchange-model.ts'
import { type AuditEntry, auditOf } from '../../support/exchange-outcome.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

let latchkey: PastedIssuer
const policies: Record<string, string> = {}
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  policies.policy = latchkey.policy.id
  const rules = { issuer: 'idp', key: 'target', audience: 'latchkey-tests' }
  const made: [name: string, fields: Record<string, unknown>][] = [
    ['conditional', { condition: 'claims.environment == "production"' }],
    [
      'without claims',
      {
        condition: 'subject != "" || "a" in scopes || token_type == "id"',
        lint_exceptions: [{ rule: 'vacuous', because: 'any subject may follow' }],
      },
    ],
    ['checked', { subject: 'workload-1', required_scope: 'a', required_token_type: 'access' }],
    ['paused', { subject: 'workload-1' }],
    ['once', { subject: 'workload-1', replay_protection: true }],
  ]
  for (const [name, fields] of made)
    policies[name] = (await latchkey.admin('policies.create', { ...rules, name, ...fields })).id
  await latchkey.admin('policies.pause', { policy: 'paused' })
})
afterAll(() => latchkey.stop())

type Told = { status: number; step: string | null; reason: string | null }

/** The token is checked first, since an exchange may use it up. */
async function ask(token: string, policy: string): Promise<{ checked: Told; audited: Told }> {
  const { data } = await latchkey.admin<{ data: Explanation[] }>('policies.check', { token, policy })
  const [explanation] = data
  const failed = explanation?.steps.find(({ ok }) => !ok)
  const response = await latchkey.exchange(token, { federation_policy_id: policies[policy] })
  const [audit] = (await auditOf(latchkey, response)) as (AuditEntry & { step: string | null })[]
  const { status } = response
  return {
    checked: { status: explanation?.accepted ? 200 : 400, step: failed?.step ?? null, reason: failed?.reason ?? null },
    audited: { status, step: audit?.step ?? null, reason: audit?.reason ?? null },
  }
}

const soon = (seconds: number) => () => latchkey.sign({ exp: latchkey.clock.now / 1_000 + seconds })
const claiming = (claims: Record<string, unknown>) => () => latchkey.sign(claims)

describe('audit and check name the same step:', () => {
  const rows: [
    name: string,
    policy: string,
    token: () => Promise<string>,
    step: string | null,
    reason: string | null,
  ][] = [
    ['nothing is wrong', 'policy', claiming({}), null, null],
    ['nbf is a text', 'policy', claiming({ nbf: '0' }), 'token', 'token_claim_type'],
    ['nbf is a text, and the signature wrong', 'policy', forged({ nbf: '0' }), 'token', 'token_claim_type'],
    ['iat is null', 'policy', claiming({ iat: null }), 'token', 'token_claim_type'],
    [
      'iat is null, of another issuer',
      'policy',
      claiming({ iat: null, iss: 'https://x.example' }),
      'token',
      'token_claim_type',
    ],
    ['scopes are a text under a condition', 'conditional', claiming({ scopes: 'a' }), 'scopes', 'scopes_wrong_type'],
    [
      'scopes are numbers under one without claims',
      'without claims',
      claiming({ scopes: [1] }),
      'scopes',
      'scopes_wrong_type',
    ],
    ['scopes are null, and a text is required', 'checked', claiming({ scopes: null }), 'scopes', 'scopes_wrong_type'],
    ['scopes are a text where nothing asks', 'policy', claiming({ scopes: 'a' }), null, null],
    [
      'token_type is a number under a condition',
      'conditional',
      claiming({ token_type: 1 }),
      'token_type',
      'token_type_wrong_type',
    ],
    [
      'token_type is null under one without claims',
      'without claims',
      claiming({ token_type: null }),
      'token_type',
      'token_type_wrong_type',
    ],
    ['exp is less than a second ahead', 'policy', soon(0.5), 'times', 'expired'],
    ['exp is at this moment', 'policy', soon(0), 'times', 'expired'],
    ['a token that is none, under a paused policy', 'paused', async () => 'x.y.z', 'form', 'subject_token_not_jwt'],
    [
      'another algorithm, under a paused policy',
      'paused',
      () => latchkey.sign({}, { alg: 'none' }),
      'policy',
      'policy_paused',
    ],
    [
      'an expired token of another issuer, under a paused policy',
      'paused',
      claiming({ exp: 1, iss: 'x' }),
      'policy',
      'policy_paused',
    ],
    ['a condition in error', 'conditional', claiming({}), 'condition', 'condition_error'],
    ['no jti under replay protection', 'once', claiming({ jti: undefined }), 'replay', 'jti_missing'],
  ]
  for (const [name, policy, token, step, reason] of rows)
    test(name, async () => {
      const { checked, audited } = await ask(await token(), policy)
      const told = { status: reason === null ? 200 : 400, step, reason }
      expect({ checked, audited }).toEqual({ checked: told, audited: told })
    })

  test('a token that was used, under replay protection', async () => {
    const token = await latchkey.sign()
    expect((await ask(token, 'once')).audited.status).toBe(200)
    const told = { status: 400, step: 'replay', reason: 'replayed' }
    expect(await ask(token, 'once')).toEqual({ checked: told, audited: told })
  })

  test('whatever the token and the policy', async () => {
    const good = await latchkey.sign()
    const others = (await latchkey.sign({ sub: 'another' })).split('.')
    const token = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.tuple(anyClaims, anyHeader).map(
          ([claims, header]) =>
            () =>
              latchkey.sign(claims, header),
        ),
      },
      changedToken(good, others).map((text) => async () => text),
    )
    const steps = new Set<string | null>()
    await fc.assert(
      fc.asyncProperty(token, fc.constantFrom(...Object.keys(policies)), async (make, policy) => {
        const text = await make()
        // What the operation refuses as its input.
        if (text === '' || text.includes('\0') || Buffer.byteLength(text) > 16_384) return
        const { checked, audited } = await ask(text, policy)
        steps.add(audited.step)
        expect(checked).toEqual(audited)
      }),
      { numRuns: 200 },
    )
    expect(steps.size).toBeGreaterThan(6)
  })
})

function forged(claims: Record<string, unknown>) {
  return async () => (await latchkey.sign(claims)).replace(/.{8}$/, 'AAAAAAAA')
}

test('an issuer on http names the step of the issuer in both, once the setting that allowed it is off', async () => {
  const { admin, server } = latchkey
  const { publicJwk } = latchkey.pairs.es
  const iss = 'http://127.0.0.1:1'
  await admin('issuers.add', { name: 'insecure', issuer_url: iss, jwks: { keys: [publicJwk] } })
  const fields = { name: 'insecure', issuer: 'insecure', key: 'target', audience: 'latchkey-tests' }
  policies.insecure = (await admin('policies.create', { ...fields, subject: 'workload-1' })).id
  const token = await latchkey.sign({ iss })
  expect((await ask(token, 'insecure')).audited.status).toBe(200)
  server.context.outbound.insecureIssuers = false
  const told = { status: 400, step: 'issuer', reason: 'issuer_insecure' }
  expect(await ask(token, 'insecure')).toEqual({ checked: told, audited: told })
  server.context.outbound.insecureIssuers = true
})
