// Why was I refused: `policies check` names every step that refuses, and both sides of what does not match. That the exchange refuses at the
// first of these steps is proven in explain-agreement.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Explanation } from '../../../src/admin/policies/explain.ts'
import { type AuditEntry, auditOf, expectNoTokenText } from '../../support/exchange-outcome.ts'
import { subject } from '../../support/latchkey.ts'
import { issuerUrl, type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'
import { rejectionOf } from '../../support/rejection.ts'

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  await latchkey.admin('policies.update', {
    policy: 'policy',
    required_scope: 'deploy',
    required_token_type: 'id',
    condition: 'claims.environment == "production"',
  })
})
afterAll(() => latchkey.stop())

const good = { scopes: ['deploy'], token_type: 'id', environment: 'production' }
async function check(token: string, policy?: string): Promise<Explanation[]> {
  const { data } = await latchkey.admin<{ data: Explanation[] }>(
    'policies.check',
    policy === undefined ? { token } : { token, policy },
  )
  return data
}
const failed = ({ steps }: Explanation) => steps.filter(({ ok }) => !ok).map(({ step, reason }) => `${step} ${reason}`)

describe('a check fails at the very steps:', () => {
  const rows: [name: string, claims: Record<string, unknown>, expected: string[]][] = [
    ['nothing', {}, []],
    ['another subject', { sub: 'x' }, ['subject subject_mismatch']],
    ['another audience', { aud: 'x' }, ['audience audience_mismatch']],
    ['both', { sub: 'x', aud: 'x' }, ['subject subject_mismatch', 'audience audience_mismatch']],
    ['another issuer', { iss: 'https://other.example' }, ['issuer issuer_mismatch']],
    ['no scopes', { scopes: undefined }, ['scopes scopes_missing']],
    ['another token_type', { token_type: 'x' }, ['token_type token_type_mismatch']],
    ['a false condition', { environment: 'staging' }, ['condition condition_false']],
    ['a condition in error', { environment: undefined }, ['condition condition_error']],
    ['an expired token', { exp: 1 }, ['times expired']],
    ['a long subject', { sub: 's'.repeat(513) }, ['lengths claim_too_long', 'subject subject_mismatch']],
    ['a claim of another type', { sub: 1 }, ['token token_claim_type']],
    [
      'everything at once',
      { sub: 'x', aud: 'x', exp: 1, scopes: [], token_type: 1, environment: 1 },
      [
        'times expired',
        'subject subject_mismatch',
        'audience audience_mismatch',
        'scopes scopes_mismatch',
        'token_type token_type_wrong_type',
      ],
    ],
  ]
  for (const [name, claims, expected] of rows) {
    test(name, async () => {
      const token = await latchkey.sign({ ...good, ...claims })
      const [explanation] = await check(token, 'policy')
      if (explanation === undefined) throw new Error('Nothing was explained')
      expect(failed(explanation)).toEqual(expected)
      expect(explanation.accepted).toBe(expected.length === 0)
      expectNoTokenText(JSON.stringify(explanation), token)
    })
  }

  test('a paused policy, and a token of another form', async () => {
    await latchkey.admin('policies.pause', { policy: 'policy' })
    const [explanation] = await check('x.y.z', 'policy')
    expect(explanation && failed(explanation)).toEqual(['form subject_token_not_jwt', 'policy policy_paused'])
    await latchkey.admin('policies.resume', { policy: 'policy' })
  })

  test('a signature that is another one', async () => {
    const [, payload] = (await latchkey.sign({ ...good, sub: 'x' })).split('.')
    const [header, , signature] = (await latchkey.sign(good)).split('.')
    const [explanation] = await check(`${header}.${payload}.${signature}`, 'policy')
    expect(explanation && failed(explanation)).toEqual(['signature signature_invalid', 'subject subject_mismatch'])
  })
})

describe('a check', () => {
  test('shows what the parts of a condition are', async () => {
    const [explanation] = await check(await latchkey.sign({ ...good, environment: 'staging' }), 'policy')
    expect(explanation?.condition).toContainEqual({ source: 'claims.environment', value: '"staging"' })
    expect(explanation?.condition?.at(-1)).toEqual({ source: 'claims.environment == "production"', value: 'false' })
  })

  test('without a policy lists the nearest first', async () => {
    for (let index = 0; index < 20; index++) {
      const names = { issuer: 'idp', key: 'target', audience: 'other', subject: `other-${index}` }
      await latchkey.admin('policies.create', { name: `far-${index}`, ...names })
    }
    const token = await latchkey.sign({ ...good, environment: 'staging' })
    const names = (await check(token)).map(({ policy_name }) => policy_name)
    expect(names[0]).toBe('policy')
    expect(names).toHaveLength(5)
  })

  test('shows no claims as a whole, which would hide the parts', async () => {
    const [explanation] = await check(await latchkey.sign(good), 'policy')
    expect(explanation?.condition?.map(({ source }) => source)).not.toContain('claims')
  })

  test('shows both sides of what does not match', async () => {
    const exp = Math.floor(latchkey.clock.now / 1_000) - 60
    const iss = 'https://other.example'
    const [explanation] = await check(await latchkey.sign({ ...good, iss, sub: 'x', exp }), 'policy')
    const detailOf = (wanted: string) => explanation?.steps.find(({ step }) => step === wanted)?.detail
    expect(detailOf('issuer')).toBe(`the token has "${iss}", the policy wants "${issuerUrl}"`)
    expect(detailOf('subject')).toBe(`the token has "x", the policy wants "${subject}"`)
    const iso = (milliseconds: number) => new Date(milliseconds).toISOString()
    expect(detailOf('times')).toBe(`exp ${exp} is ${iso(exp * 1_000)}, now it is ${iso(latchkey.clock.now)}`)
  })

  describe('under replay protection', () => {
    beforeAll(() => latchkey.admin('policies.update', { policy: 'policy', replay_protection: true }))
    afterAll(() => latchkey.admin('policies.update', { policy: 'policy', replay_protection: false }))
    const replayOf = async (token: string) => (await check(token, 'policy'))[0]?.steps.at(-1)

    test('uses nothing up, and afterward shows that the token was exchanged', async () => {
      const token = await latchkey.sign({ ...good, jti: 'one' })
      for (const _ of [1, 2]) expect((await check(token, 'policy'))[0]?.accepted).toBe(true)
      expect(await replayOf(token)).toEqual({ step: 'replay', ok: true })
      expect((await latchkey.exchange(token)).status).toBe(200)
      for (const _ of [1, 2])
        expect(await replayOf(token)).toEqual({ step: 'replay', ok: false, reason: 'replayed', detail: 'one' })
      expect((await latchkey.exchange(token)).status).toBe(400)
      expect(await replayOf(await latchkey.sign({ ...good, jti: 'two' }))).toEqual({ step: 'replay', ok: true })
    })

    test("another issuer's token was never exchanged here", async () => {
      const token = await latchkey.sign({ ...good, iss: 'https://other.example', jti: 'one' })
      const [explanation] = await check(token, 'policy')
      expect(explanation && failed(explanation)).toEqual(['issuer issuer_mismatch'])
    })
  })

  test('without replay protection has no matching step', async () => {
    const [explanation] = await check(await latchkey.sign(good), 'policy')
    expect(explanation?.steps.map(({ step }) => step)).not.toContain('replay')
  })
})

test('a refused exchange is found by its request id, with what the audit has of it and no token', async () => {
  const token = await latchkey.sign({ ...good, sub: 'x', aud: 'x' })
  const response = await latchkey.exchange(token)
  const [audit] = (await auditOf(latchkey, response)) as (AuditEntry & { step: string | null })[]
  expect(audit).toMatchObject({ step: 'subject', reason: 'subject_mismatch' })
  const shown = await latchkey.admin('audit.show', { request_id: response.headers.get('x-request-id') })
  expect(shown).toEqual({ kind: 'exchange', ...audit, recorded_claims: shown.recorded_claims } as never)
  expectNoTokenText(JSON.stringify(shown), token)
})

test('the row of a request is found among many, and one that is not there is reported', async () => {
  const token = await latchkey.sign({ sub: 'many' })
  const ids: (string | null)[] = []
  // A process sends 256 requests at a time. On a server database, the server under test needs some of them.
  for (let wave = 0; wave < 2; wave++) {
    const answers = await Promise.all(Array.from({ length: 150 }, () => latchkey.exchange(token)))
    ids.push(...answers.map((response) => response.headers.get('x-request-id')))
  }
  for (const request_id of [ids[0], ids[150], ids[299]])
    expect(await latchkey.admin('audit.show', { request_id })).toMatchObject({ request_id })
  const missing = '01a1feb6-0bde-7947-b3a3-0ae6b3f500f6'
  expect((await rejectionOf(latchkey.admin('audit.show', { request_id: missing }))).message).toContain(missing)
})
