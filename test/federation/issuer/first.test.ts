// A token of another issuer is refused before anything is fetched (reference: Order of verification), so that nobody makes the service ask for keys by tokens
// that no policy could accept.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { auditOf } from '../../support/exchange-outcome.ts'
import { audience, type Row, subject } from '../../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

const fetchedIssuer = 'https://fetched.example'
const jwksUrl = 'https://fetched.example/keys'

let latchkey: PastedIssuer
const policies: Record<string, Row> = {}
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  await latchkey.admin('issuers.add', { name: 'discovered', issuer_url: fetchedIssuer })
  await latchkey.admin('organizations.create', { name: 'other' })
  await latchkey.admin('keys.create', { organization: 'other', name: 'target' })
  await latchkey.admin('issuers.add', {
    organization: 'other',
    name: 'by url',
    issuer_url: fetchedIssuer,
    jwks_url: jwksUrl,
  })
  const rules = { key: 'target', audience, subject }
  policies.discovered = await latchkey.admin('policies.create', { ...rules, name: 'a', issuer: 'discovered' })
  policies['by url'] = await latchkey.admin('policies.create', {
    ...rules,
    organization: 'other',
    name: 'b',
    issuer: 'by url',
  })
})
afterAll(() => latchkey.stop())

const exchange = async (name: string, iss: unknown) => {
  latchkey.fetched.length = 0
  const token = await latchkey.sign({ iss })
  const response = await latchkey.exchange(token, { federation_policy_id: policies[name]?.id })
  const [audit] = await auditOf(latchkey, response)
  return { status: response.status, reason: audit?.reason, fetched: latchkey.fetched }
}

describe.each(['discovered', 'by url'])('under a policy whose issuer is %s', (name) => {
  const others = [
    'https://other.example',
    `${fetchedIssuer}/`,
    `${fetchedIssuer}.evil.example`,
    'HTTPS://fetched.example',
    '',
  ]
  for (const iss of others)
    test(`iss ${JSON.stringify(iss)} is refused, and nothing is fetched`, async () => {
      const { reason, ...seen } = await exchange(name, iss)
      expect(seen).toEqual({ status: 400, fetched: [] })
      expect(['issuer_mismatch', 'token_claim_type']).toContain(String(reason))
    })

  test('iss of another type is refused, and nothing is fetched', async () => {
    for (const iss of [undefined, null, 1, [fetchedIssuer]])
      expect(await exchange(name, iss)).toEqual({ status: 400, reason: 'token_claim_type', fetched: [] })
  })

  test('the very issuer is asked for its keys', async () => {
    const { status, fetched } = await exchange(name, fetchedIssuer)
    expect(status).toBe(503)
    expect(fetched).toEqual([name === 'by url' ? jwksUrl : `${fetchedIssuer}/.well-known/openid-configuration`])
  })
})
