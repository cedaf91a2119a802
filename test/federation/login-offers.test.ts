// Which policies are offered to people who sign in.
import { expect, test } from 'bun:test'
import { createLoginOffers } from '../../src/federation/login-offers.ts'
import type { Policy } from '../../src/federation/policy.ts'

type Registry = Parameters<typeof createLoginOffers>[0]

const policy = { id: 'p', name: 'people', organizationId: 'o', issuerId: 'i', keyId: 'k', audience: 'client' }
const policyOf = (more: object): Policy => ({ ...policy, enabled: true, deletedAt: null, ...more }) as Policy

function registryOf(policies: Policy[], more: { issuer?: object; key?: object; organization?: object } = {}): Registry {
  const issuer = { id: 'i', deletedAt: null, loginClientId: 'client', issuerUrl: 'https://idp', loginScopes: null }
  const registry = {
    issuers: new Map([['i', { ...issuer, loginRedirectUri: null, ...more.issuer }]]),
    organizations: new Map([['o', { id: 'o', plan: 'enterprise', deletedAt: null, ...more.organization }]]),
    keys: new Map([['k', { kind: 'inference', ...more.key }]]),
    policies: { valuesContaining: () => policies },
    ...{ onPolicyLoaded: [], onDeleted: [] },
  }
  return registry as unknown as Registry
}
const offered = (...given: Parameters<typeof registryOf>) => createLoginOffers(registryOf(...given))()

test('a policy is offered whose audience is the login client of its issuer', () => {
  const offer = { policy: 'p', policy_name: 'people', issuer: 'https://idp', client_id: 'client', scopes: null }
  expect(offered([policyOf({})])).toEqual([{ ...offer, redirect_uri: 'http://127.0.0.1/callback' }])
})

test.each([
  ['that is disabled', { enabled: false }],
  ['that is deleted', { deletedAt: 1 }],
  ['of another audience', { audience: 'another' }],
  ['of another issuer', { issuerId: 'j' }],
])('a policy %s is not offered', (_, more) => {
  expect(offered([policyOf(more)])).toEqual([])
})

test.each([
  ['an issuer that is deleted', { issuer: { deletedAt: 1 } }],
  ['an issuer without a login client', { issuer: { loginClientId: null } }],
  ['a management key', { key: { kind: 'management' } }],
])('no policy with %s is offered', (_, more) => {
  expect(offered([policyOf({})], more)).toEqual([])
})

test('a document has 200 offers at most, and a change is in the next one', () => {
  const policies = Array.from({ length: 300 }, (_, index) => policyOf({ id: `p${index}`, name: `p${index}` }))
  const registry = registryOf(policies)
  const list = createLoginOffers(registry)
  expect(list()).toHaveLength(200)
  policies.length = 1
  expect(list()).toHaveLength(200)
  for (const act of registry.onPolicyLoaded) act(policyOf({}))
  expect(list()).toHaveLength(1)
})
