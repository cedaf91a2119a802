// A test that is made from an exchange expects what was decided, and one that could not be is refused with the reason.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { OperationResponse } from '../../../src/admin/operations.ts'
import type { Row } from '../../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'
import { rejectionOf } from '../../support/rejection.ts'

let latchkey: PastedIssuer
let policy: Row
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  policy = await latchkey.admin('policies.create', {
    ...{ name: 'ci', issuer: 'idp', key: 'target', audience: 'llm', replay_protection: true },
    condition: 'claims.team == "a" && (!has(claims.tier) || claims.tier != 3)',
  })
})
afterAll(() => latchkey.stop())

const exchange = async (claims: Record<string, unknown>, fields = {}) => {
  const token = await latchkey.sign({ aud: 'llm', team: 'a', ...claims })
  const response = await latchkey.exchange(token, { federation_policy_id: policy.id, ...fields })
  return response.headers.get('x-request-id') ?? ''
}
const testOf = (request_id: string, more = {}) =>
  latchkey.admin<OperationResponse<'policies.audited_test'>>('policies.audited_test', { request_id, ...more })
const recordClaims = (record_claims: string) =>
  latchkey.admin('organizations.update', { organization: 'default', record_claims })

test.each([
  ['allow', {}],
  ['condition_false', { team: 'b' }],
  ['condition_false', { tier: 3 }],
  ['condition_error', { team: undefined }],
  ['audience_mismatch', { aud: 'other' }],
  ['scopes_wrong_type', { scopes: 'deploy' }],
  ['jti_missing', { jti: undefined }],
])('an exchange that ended with %s for %j becomes a test that the policy passes', async (outcome, claims) => {
  const { test: made, result, policy_name } = await testOf(await exchange(claims))
  expect({ policy_name, expect: made.expect, ok: result.ok }).toEqual({ policy_name: 'ci', expect: outcome, ok: true })
  expect(Object.keys(made.claims)).not.toContain('exp')
})

test('with all claims recorded, the test has those of the token that are not of it alone', async () => {
  await recordClaims('all')
  const { test: made } = await testOf(await exchange({ color: 'red' }), { name: 'red' })
  await recordClaims('selected')
  expect(made).toEqual({
    name: 'red',
    claims: { iss: 'https://idp.example.com', sub: 'workload-1', aud: 'llm', team: 'a', color: 'red' },
    expect: 'allow',
  })
})

describe('no test is made', () => {
  test('of an exchange that was refused for its times', async () => {
    expect(await rejectionOf(testOf(await exchange({ exp: 1 })))).toMatchObject({
      message: expect.stringContaining('refused with expired, which no test'),
    })
  })

  test('without recorded claims, of hashes, or without a claim that the policy reads', async () => {
    await recordClaims('off')
    expect(await rejectionOf(testOf(await exchange({})))).toMatchObject({
      message: expect.stringContaining('No claims of this exchange were recorded'),
    })
    await recordClaims('hashed')
    expect(await rejectionOf(testOf(await exchange({})))).toMatchObject({
      message: expect.stringContaining('only hashes'),
    })
    await recordClaims('selected')
    const before = await exchange({ late: 'x' })
    await latchkey.admin('policies.update', { policy: 'ci', condition: 'claims.late == "x" && claims.team == "a"' })
    expect(await rejectionOf(testOf(before))).toMatchObject({
      message: expect.stringContaining('The policy reads the claim late, which'),
    })
  })

  test('of an exchange of another organization, or of one that does not exist', async () => {
    await latchkey.admin('organizations.create', { name: 'elsewhere' })
    const id = await exchange({})
    expect(await rejectionOf(testOf(id, { organization: 'elsewhere' }))).toMatchObject({ code: 'not_found' })
    expect(await rejectionOf(testOf(crypto.randomUUID(), { organization: 'default' }))).toMatchObject({
      code: 'not_found',
    })
  })
})
