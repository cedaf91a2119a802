// What the audit shows an admin of a refusal, so that the token need not be asked for: values of the condition's parts, times and skew.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { auditOf } from '../../support/exchange-outcome.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

/** The reason and the detail with which the policy, under a condition, refuses a token. */
async function refuse(claims: Record<string, unknown>, condition?: string) {
  const fields = { policy: 'policy', condition: condition ?? null }
  await latchkey.admin('policies.update', fields)
  const response = await latchkey.exchange(await latchkey.sign(claims))
  expect(response.status).toBe(400)
  const [audit] = await auditOf(latchkey, response)
  return { reason: audit?.reason, detail: audit?.detail ?? '' }
}

describe('a condition that is false is reported with', () => {
  const rows: [name: string, condition: string, claims: Record<string, unknown>, detail: string][] = [
    [
      'the values that it compares',
      'claims.environment == "production"',
      { environment: 'staging' },
      'claims.environment is "staging"; claims.environment == "production" is false',
    ],
    [
      'the operands that do not hold before those that do',
      'claims.a == 1 && claims.b == 2 && subject.startsWith("work")',
      { a: 1, b: 3 },
      'claims.b is 3; claims.b == 2 is false; claims.a is 1; claims.a == 1 is true; subject is "workload-1"; subject.startsWith("work") is true',
    ],
    [
      'all alternatives',
      '(claims.a == 1 && claims.b == 2) || token_type == "id"',
      { a: 0, b: 2 },
      'claims.a is 0; claims.a == 1 is false; token_type is ""; token_type == "id" is false; claims.b is 2; claims.b == 2 is true',
    ],
    [
      'an operand that fails',
      'claims.missing == 1 && claims.a == 1',
      { a: 0 },
      'claims.missing fails: No such key: missing; ask has(…) first; claims.missing == 1 fails: No such key: missing; ask has(…) first; claims.a is 0; claims.a == 1 is false',
    ],
    [
      'lists and macros as a whole',
      'scopes.exists(s, s == "x")',
      { scopes: ['a', 'b'] },
      'scopes is ["a","b"]; scopes.exists(s, s == "x") is false',
    ],
    ['nothing but itself where it looks at nothing', '1 > 2', {}, '1 > 2 is false'],
  ]
  for (const [name, condition, claims, detail] of rows)
    test(name, async () => expect(await refuse(claims, condition)).toEqual({ reason: 'condition_false', detail }))

  test('but one that cannot be evaluated with why, and a token that is too large with what is', async () => {
    expect(await refuse({}, 'claims.missing == 1')).toEqual({
      reason: 'condition_error',
      detail: 'No such key: missing; ask has(…) first',
    })
    expect(await refuse({ a: 'x'.repeat(4_097) }, 'claims.a == "x"')).toEqual({
      reason: 'claims_too_large',
      detail: 'a string is too long',
    })
    expect((await refuse({ scopes: 'a' }, 'subject == "x"')).detail).not.toContain('is false')
  })

  test('not more than the audit keeps, however long its values and many its parts', async () => {
    const claims = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`c${index}`, 'é'.repeat(100)]))
    const condition = Object.keys(claims)
      .map((name) => `claims.${name} == "x"`)
      .join(' && ')
    const { reason, detail } = await refuse(claims, condition)
    expect(reason).toBe('condition_false')
    expect(detail).toStartWith('claims.c0 is "ééé')
    expect([...detail].length).toBeLessThanOrEqual(513)
  })

  const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl'
  const secrets: [name: string, value: unknown, secret: string][] = [
    ['a token', jwt, 'eyJ'],
    ['a token at the end of what is shown of a text', `${'x'.repeat(160)}${jwt}${'y'.repeat(300)}`, 'eyJ'],
    ['a key of ours in a list', [`sk-lk-v1-${'0a'.repeat(32)}`], '0a0a0a0a0a'],
    ['a password in a URL', `https://user:${'p'.repeat(180)}@example.com`, 'ppp'],
  ]
  for (const [name, value, secret] of secrets)
    test(`no ${name}`, async () => {
      const { detail } = await refuse({ a: value }, 'claims.a == "x"')
      expect(detail).toContain('claims.a is ')
      expect(detail).not.toContain(secret)
    })
})

describe('a time that lies ahead is reported with both times and the skew that is allowed:', () => {
  const iso = (seconds: number) => new Date(seconds * 1_000).toISOString()
  for (const [claim, reason] of [
    ['nbf', 'not_yet_valid'],
    ['iat', 'issued_in_future'],
  ] as const)
    test(claim, async () => {
      const { now } = latchkey.clock
      const time = Math.floor(now / 1_000) + 300
      const detail = `${claim} ${time} is ${iso(time)}, now it is ${iso(now / 1_000)}; it may be 30 s ahead`
      expect(await refuse({ [claim]: time })).toEqual({ reason, detail })
      await latchkey.admin('issuers.update', { issuer: 'idp', clock_skew_seconds: 120 })
      expect((await refuse({ [claim]: time })).detail).toBe(detail.replace('30 s', '120 s'))
      await latchkey.admin('issuers.update', { issuer: 'idp', clock_skew_seconds: 30 })
    })
})
