// `policies check` without a policy: the token is judged under every policy of its issuer, and the nearest of them are listed first.
import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import type { Explanation } from '../../../src/admin/policies/explain.ts'
import type { Row } from '../../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

/** An organization with its own issuer of the same keys and its own key; its policies are by name. */
async function makeOrganization(name: string): Promise<string> {
  const { admin, pairs, issuer } = latchkey
  await admin('organizations.create', { name, plan: 'business' })
  const organization = name
  const keys = [pairs.es.publicJwk]
  await admin('issuers.add', {
    organization,
    name: 'idp',
    issuer_url: issuer.issuer_url,
    jwks: { keys },
    shared: false,
  })
  await admin('keys.create', { organization, name: 'target' })
  return organization
}
const createPolicy = (organization: string, name: string, fields: Record<string, unknown>) =>
  latchkey.admin('policies.create', {
    organization,
    name,
    issuer: 'idp',
    key: 'target',
    audience: 'latchkey-tests',
    ...fields,
  })
async function check(organization: string, token: string): Promise<Explanation[]> {
  return (await latchkey.admin<{ data: Explanation[] }>('policies.check', { organization, token })).data
}
const namesOf = (explanations: Explanation[]) => explanations.map(({ policy_name }) => policy_name)

describe('of forty policies that differ by their condition alone', () => {
  beforeAll(async () => {
    const organization = await makeOrganization('forty')
    for (let index = 0; index < 40; index++)
      await createPolicy(organization, `repository-${index}`, { condition: `claims.repository == "acme/app-${index}"` })
  })

  for (const index of [0, 20, 39])
    test(`the one that accepts the token is first (${index})`, async () => {
      const token = await latchkey.sign({ repository: `acme/app-${index}` })
      const [first, ...others] = await check('forty', token)
      expect(first).toMatchObject({ policy_name: `repository-${index}`, accepted: true })
      expect(others.map(({ accepted }) => accepted)).toEqual([false, false, false, false])
    })

  test('the same is said over HTTP', async () => {
    const admin = await latchkey.admin<Row & { key: string }>('keys.create', {
      organization: 'forty',
      name: 'admin',
      kind: 'management_read_only',
    })
    const response = await fetch(`${latchkey.server.baseUrl}/workload-identity/policies/check`, {
      method: 'POST',
      headers: { authorization: `Bearer ${admin.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ token: await latchkey.sign({ repository: 'acme/app-33' }) }),
    })
    const { data } = (await response.json()) as { data: Explanation[] }
    expect(data[0]).toMatchObject({ policy_name: 'repository-33', accepted: true })
    expect(data).toHaveLength(5)
  })
})

test('policies that refuse are listed by the number of steps that do, then by how far the token gets', async () => {
  const organization = await makeOrganization('steps')
  const rows: [name: string, fields: Record<string, unknown>][] = [
    ['subject, audience and scopes', { subject: 'x', audience: 'x', required_scope: 'x' }],
    ['subject', { subject: 'x' }],
    ['subject and audience', { subject: 'x', audience: 'x' }],
    ['condition', { condition: 'claims.environment == "production"' }],
    ['audience', { subject: 'workload-1', audience: 'x' }],
  ]
  for (const [name, fields] of rows) await createPolicy(organization, name, fields)
  const explanations = await check(organization, await latchkey.sign({ environment: 'staging' }))
  expect(namesOf(explanations)).toEqual([
    'condition',
    'audience',
    'subject',
    'subject and audience',
    'subject, audience and scopes',
  ])
})

test('policies whose condition refuses are listed by how much of it holds', async () => {
  const organization = await makeOrganization('parts')
  const conditions = {
    none: 'claims.a == 0 && claims.b == 0 && claims.c == 0',
    'one of three': 'claims.a == 1 && claims.b == 0 && claims.c == 0',
    'two of three': '(claims.a == 1 && claims.b == 2) && claims.c == 0',
    'two of three of an alternative': 'claims.x == 1 || (claims.a == 1 && claims.b == 2 && claims.c == 0) || false',
    'three of four, one of which fails': 'claims.a == 1 && claims.b == 2 && claims.c == 3 && claims.missing == 4',
    'one of two': 'claims.a == 1 && (claims.b == 0 || claims.c == 0)',
    'none, with a negation': '!(claims.a == 1)',
  }
  for (const [name, condition] of Object.entries(conditions)) await createPolicy(organization, name, { condition })
  const explanations = await check(organization, await latchkey.sign({ a: 1, b: 2, c: 3 }))
  expect(namesOf(explanations)).toEqual([
    'three of four, one of which fails',
    'two of three',
    'two of three of an alternative',
    'one of two',
    'one of three',
  ])
})

test('policies of other issuers are left out, unless no policy trusts the issuer of the token', async () => {
  const organization = await makeOrganization('issuers')
  const { pairs, admin } = latchkey
  const other = 'https://other.example'
  await admin('issuers.add', { organization, name: 'other', issuer_url: other, jwks: { keys: [pairs.es.publicJwk] } })
  await createPolicy(organization, 'of the other', { issuer: 'other', subject: 'workload-1' })
  await createPolicy(organization, 'far', { subject: 'x', audience: 'x' })
  expect(namesOf(await check(organization, await latchkey.sign()))).toEqual(['far'])
  expect(namesOf(await check(organization, await latchkey.sign({ iss: other })))).toEqual(['of the other'])
  const unknown = await check(organization, await latchkey.sign({ iss: 'https://unknown.example' }))
  expect(namesOf(unknown)).toEqual(['of the other', 'far'])
  expect(unknown[0]?.steps.filter(({ ok }) => !ok)).toMatchObject([{ step: 'issuer', reason: 'issuer_mismatch' }])
})

test('other work comes in between, however many policies there are', async () => {
  const organization = await makeOrganization('many')
  const { registry } = latchkey.server.context
  const made = await createPolicy(organization, 'one', { condition: 'claims.a == 0 && claims.b == 2' })
  const one = registry.policies.get(made.id)
  if (one === undefined) throw new Error('It is not there')
  for (let index = 0; index < 20_000; index++) {
    const id = crypto.randomUUID()
    registry.policies.set(id, Object.freeze({ ...one, id, name: `more-${index}` }))
  }
  const token = await latchkey.sign({ a: 1, b: 2 })
  // As a clock would, it grows: by a millisecond each time that it is read.
  let ticks = 0
  const clock = spyOn(performance, 'now').mockImplementation(() => {
    ticks += 1
    return ticks
  })
  let turns = 0
  let isDone = false
  const count = () => {
    turns += 1
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  const explanations = await check(organization, token).finally(() => clock.mockRestore())
  isDone = true
  expect(explanations).toHaveLength(5)
  // It is read once a round, twice a slice more, and a slice is five milliseconds.
  expect(ticks).toBeGreaterThan(40_000)
  expect(turns).toBeGreaterThan(ticks / 20)
})
