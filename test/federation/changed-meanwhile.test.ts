// An exchange that waited is judged as things are when its token is minted (reference: Policy lifecycle). What changed meanwhile and still accepts the token
// is obeyed; what changes again and again ends the exchange.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { OperationName } from '../../src/admin/operations.ts'
import type { IssuerKeys } from '../../src/federation/issuer/issuer-keys.ts'
import { auditOf } from '../support/exchange-outcome.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'

let latchkey: PastedIssuer
let find: IssuerKeys['find']
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
beforeEach(() => {
  find = latchkey.server.context.issuerKeys.find
})
afterEach(async () => {
  latchkey.server.context.issuerKeys.find = find
  await latchkey.admin('policies.update', {
    policy: latchkey.policy.id,
    max_lifetime_seconds: 900,
    subject: 'workload-1',
  })
})
afterAll(() => latchkey.stop())

/** Runs before each of the first searches for a key, which is when an exchange may wait for its issuer. */
function changeWhileItWaits(times: number, change: (time: number) => Promise<unknown>): { searches: number } {
  const seen = { searches: 0 }
  latchkey.server.context.issuerKeys.find = async (...asked) => {
    const found = await find(...asked)
    seen.searches += 1
    if (seen.searches <= times) await change(seen.searches)
    return found
  }
  return seen
}

describe('a token is issued under what has changed meanwhile:', () => {
  const rows: [name: string, operation: OperationName, input: Record<string, unknown>][] = [
    ['the policy', 'policies.update', { policy: 'policy', name: 'policy', max_lifetime_seconds: 60 }],
    ['the target key', 'keys.update', { key: 'target', requests_per_minute: 100 }],
    ['the organization', 'organizations.plan', { organization: 'default', plan: 'business' }],
    ['the issuer', 'issuers.update', { issuer: 'idp', clock_skew_seconds: 31 }],
  ]
  for (const [name, operation, input] of rows)
    test(name, async () => {
      const seen = changeWhileItWaits(1, () => latchkey.admin(operation, input))
      const response = await latchkey.exchange(await latchkey.sign())
      const { expires_in } = (await response.json()) as { expires_in?: number }
      expect({ status: response.status, expires_in }).toEqual({
        status: 200,
        expires_in: name === 'the policy' ? 60 : 900,
      })
      expect(seen.searches).toBe(2)
    })
})

test('two changes are waited out, and the third ends the exchange', async () => {
  const change = (time: number) =>
    latchkey.admin('policies.update', { policy: 'policy', max_lifetime_seconds: 100 + time })
  const twice = changeWhileItWaits(2, change)
  expect((await latchkey.exchange(await latchkey.sign())).status).toBe(200)
  expect(twice.searches).toBe(3)
  const always = changeWhileItWaits(9, change)
  const response = await latchkey.exchange(await latchkey.sign())
  expect(response.status).toBe(400)
  expect(await auditOf(latchkey, response)).toMatchObject([{ reason: 'changed_meanwhile', access_token_id: null }])
  expect(always.searches).toBe(3)
})

test('what no longer accepts the token refuses it', async () => {
  changeWhileItWaits(1, () => latchkey.admin('policies.update', { policy: 'policy', subject: 'another' }))
  const response = await latchkey.exchange(await latchkey.sign())
  expect(response.status).toBe(400)
  expect(await auditOf(latchkey, response)).toMatchObject([{ reason: 'subject_mismatch' }])
})
