// Tests that are stored with a policy run when it is saved, and decide as an exchange does.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Row } from '../../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

type Result = { name: string; expected: string; got: string; ok: boolean; detail?: string; condition?: object[] }
type Tested = { policy_name: string; tests: Result[] }

let latchkey: PastedIssuer
let reader: string
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  reader = String((await latchkey.admin('keys.create', { name: 'reader', kind: 'management_read_only' })).key)
})
afterAll(() => latchkey.stop())

const condition = 'claims.repository_id == "456789" && claims.ref == "refs/heads/main"'
const main = { name: 'main may', claims: { repository_id: '456789', ref: 'refs/heads/main' }, expect: 'allow' }
const fork = {
  name: 'a fork may not',
  claims: { repository_id: '456789', ref: 'refs/pull/7/merge' },
  expect: 'condition_false',
}
const create = (name: string, fields: object) =>
  latchkey.admin<Row>('policies.create', { name, issuer: 'idp', key: 'target', audience: 'llm', condition, ...fields })
const resultOf = async (name: string) =>
  (await latchkey.admin<{ data: Tested[] }>('policies.test', { policy: name })).data[0]?.tests

describe('a policy whose tests pass', () => {
  test('is saved with them, shows them, and records them', async () => {
    const tests = [main, fork]
    expect(await create('good', { tests })).toMatchObject({ tests })
    expect(await latchkey.admin('policies.show', { policy: 'good' })).toMatchObject({ tests })
    const { data } = await latchkey.admin<{ data: { after: object }[] }>('audit.changes', { limit: 1 })
    expect(data[0]?.after).toMatchObject({ tests })
    expect(await resultOf('good')).toEqual([
      { name: 'main may', expected: 'allow', got: 'allow', ok: true },
      expect.objectContaining({ name: 'a fork may not', got: 'condition_false', ok: true }),
    ])
  })

  test('applies the bounds on lengths that an exchange has', async () => {
    const long = { ...main, name: 'too long', claims: { ...main.claims, sub: 'x'.repeat(513) } }
    await create('bounded', { tests: [{ ...long, expect: 'claim_too_long' }] })
    expect(await resultOf('bounded')).toMatchObject([{ got: 'claim_too_long', ok: true }])
  })

  test('is not changed by an edit that breaks one, and the error shows the parts of the condition', async () => {
    await create('edited', { tests: [main, fork] })
    const widened = { policy: 'edited', condition: 'claims.repository_id == "456789"' }
    const refused = latchkey.admin('policies.update', widened)
    await expect(refused).rejects.toThrow(
      'The policy fails 1 of 2 tests. "a fork may not": expected condition_false, got allow (claims.repository_id is "456789"; claims.repository_id == "456789" is true).',
    )
    await expect(latchkey.admin('policies.update', { ...widened, dry_run: true })).rejects.toThrow('fails 1 of 2')
    const narrowed = latchkey.admin('policies.update', {
      policy: 'edited',
      condition: `${condition} && subject == "x"`,
    })
    await expect(narrowed).rejects.toThrow(
      /"main may": expected allow, got condition_false \(.*subject == "x" is false/,
    )
    expect(await latchkey.admin('policies.show', { policy: 'edited' })).toMatchObject({ condition })
  })

  test('loses them with null, and is then free to change', async () => {
    await create('freed', { tests: [fork] })
    await latchkey.admin('policies.update', { policy: 'freed', tests: null, condition: 'claims.repository_id == "1"' })
    expect(await latchkey.admin('policies.show', { policy: 'freed' })).toMatchObject({ tests: null })
  })
})

describe('a test', () => {
  test.each([
    ['issuer_mismatch', { iss: 'https://other.example.com' }],
    ['token_claim_type', { sub: 7 }],
    ['subject_mismatch', { sub: 'other' }],
    ['audience_mismatch', { aud: ['other'] }],
    ['expired', { exp: 1 }],
    ['issued_in_future', { iat: 9_000_000_000, exp: 9_000_000_300 }],
    ['scopes_mismatch', { scopes: ['read'] }],
    ['scopes_missing', {}],
    ['jti_missing', { scopes: ['deploy'], jti: null }],
    ['allow', { scopes: ['deploy'] }],
  ])('finds %s for %j, as an exchange does', async (reason, claims) => {
    const name = `with ${reason}`
    const fields = { condition: null, subject: 'me', required_scope: 'deploy', replay_protection: true }
    await create(name, { ...fields, tests: [{ name: 'case', claims, expect: reason }] })
    const { id } = await latchkey.admin('policies.show', { policy: name })
    const token = await latchkey.sign({ sub: 'me', aud: 'llm', ...claims })
    const response = await latchkey.exchange(token, { federation_policy_id: id })
    const { data } = await latchkey.admin<{ data: Row[] }>('audit.list', { limit: 1 })
    expect(data[0]?.reason ?? 'allow').toBe(reason)
    expect(response.ok).toBe(reason === 'allow')
  })

  test.each([
    ['an unknown outcome', [{ ...main, expect: 'refused' }]],
    ['an outcome that no claims lead to', [{ ...main, expect: 'policy_paused' }]],
    ['two equal names', [main, main]],
    ['more than 50', Array.from({ length: 51 }, (_, index) => ({ ...main, name: `test ${index}` }))],
    ['more than 64 KB', [{ ...main, claims: { long: 'x'.repeat(65_536) } }]],
    ['a list of claims', [{ ...main, claims: [] }]],
  ])('is refused with %s', async (_, tests) => {
    await expect(create('invalid', { tests })).rejects.toMatchObject({ code: 'invalid' })
  })

  test('that fails later does not stop a rename, a pause or a deletion', async () => {
    const soon = Math.floor(latchkey.clock.now / 1_000) + 60
    await create('timed', { tests: [{ ...main, claims: { ...main.claims, exp: soon } }] })
    latchkey.clock.now += 120_000
    await latchkey.admin('policies.update', { policy: 'timed', name: 'renamed' })
    await latchkey.admin('policies.pause', { policy: 'renamed' })
    const [result] = (await resultOf('renamed')) ?? []
    expect(result).toMatchObject({ ok: false, got: 'expired', detail: expect.stringContaining('exp') })
    await latchkey.admin('policies.delete', { policy: 'renamed' })
  })
})

test('all policies with tests are tested over HTTP with a read-only key, those without are left out', async () => {
  await create('listed', { tests: [main] })
  const response = await fetch(`${latchkey.server.baseUrl}/workload-identity/policy-tests`, {
    method: 'POST',
    headers: { authorization: `Bearer ${reader}`, 'content-type': 'application/json' },
    body: '{}',
  })
  const { data } = (await response.json()) as { data: Tested[] }
  const names = data.map(({ policy_name }) => policy_name)
  expect(names).toContain('listed')
  expect(names).not.toContain('policy')
})
