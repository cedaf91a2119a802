// What is exported is what is saved: the plan of an export is empty, and differs by what is edited.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Row } from '../../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

type Document = Row & { [collection: string]: Record<string, unknown>[] }
type Plan = { changes: { kind: string; name: string; action: string; fields: object[] }[]; blocked: string[] }
const exported = () => latchkey.admin<Document>('config.export')
const planOf = (document: object) => latchkey.admin<Plan>('config.plan', { document })

test('the plan of an export is empty, with every field set', async () => {
  await latchkey.admin('issuers.add', {
    name: 'by-url',
    issuer_url: 'https://b.example.com',
    jwks_url: 'https://b.example.com/k',
    shared: true,
  })
  const bounds = { limit: 0.1, limit_reset: 'daily', requests_per_minute: 5, tokens_per_minute: 6 }
  await latchkey.admin('keys.create', {
    ...{ name: 'full', owner: 'ada', expires_at: '2099-01-01', allowed_models: ['b', 'a'], allowed_presets: ['x*'] },
    ...bounds,
  })
  await latchkey.admin('policies.create', {
    ...{ name: 'full', issuer: 'idp', key: 'full', audience: 'a', subject: 's', condition: 'subject == "s"' },
    ...{ required_scope: 'r', required_token_type: 't', replay_protection: true, max_lifetime_seconds: 60 },
    ...{ allowed_models: ['z', 'm'], allowed_presets: ['p'] },
  })
  await latchkey.admin('policies.pause', { policy: 'full' })
  await latchkey.admin('upstreams.add', {
    ...{ name: 'gpu', base_url: 'http://10.0.0.5/v1', credential: 'secret-credential', models: ['m/*', 'a'] },
    ...{ forward_headers: ['X-B', 'x-a'], return_headers: ['x-c'] },
  })
  await latchkey.admin('prices.set', { prices: [{ model: 'm', prompt: 0.15, completion: 0.6, cached: null }] })
  const config = { model: 'm', stop: ['b', 'a'] }
  const presets = [{ slug: 'deep', description: 'd', config, system_prompt: 'Be brief' }]
  await latchkey.admin('config.apply', { document: { latchkey: 1, presets } })
  const document = await exported()
  expect(Object.keys(document)).toEqual([
    ...['latchkey', 'organization', 'issuers', 'keys', 'policies', 'presets', 'upstreams', 'prices'],
  ])
  expect(JSON.stringify(document)).not.toContain('secret-credential')
  expect((await planOf(document)).changes).toEqual([])
  expect(document.issuers?.map(({ name, shared }) => ({ name, shared }))).toEqual([
    { name: 'by-url', shared: true },
    { name: 'idp', shared: false },
  ])
  const [byUrl] = document.issuers ?? []
  delete byUrl?.shared
  expect(await planOf(document)).toMatchObject({
    changes: [{ kind: 'issuers', fields: [{ field: 'shared', before: true }] }],
  })
})

test('an expired key and a policy whose issuer was deleted stay in an export that changes nothing', async () => {
  await latchkey.admin('keys.create', { name: 'short', expires_at: new Date(latchkey.clock.now + 1_000).toISOString() })
  await latchkey.admin('issuers.add', { name: 'gone', issuer_url: 'https://gone.example.com' })
  const names = { issuer: 'gone', key: 'short', audience: 'a', subject: 's' }
  await latchkey.admin('policies.create', { name: 'orphan', ...names })
  await latchkey.admin('issuers.delete', { issuer: 'gone' })
  latchkey.clock.now += 2_000
  const document = await exported()
  expect(document.policies?.map(({ name }) => name)).toContain('orphan')
  expect((await planOf(document)).changes).toEqual([])
})

test('whatever keys are made, the plan of their export is empty', async () => {
  const names = fc.array(fc.stringMatching(/^[a-z/*]{1,8}$/), { minLength: 1, maxLength: 4 })
  const bounds = fc.record(
    {
      limit: fc.double({ min: 0.001, max: 1_000, noNaN: true }),
      requests_per_minute: fc.integer({ min: 1, max: 1_000 }),
      allowed_models: names,
      disabled: fc.boolean(),
    },
    { requiredKeys: [] },
  )
  let made = 0
  await fc.assert(
    fc.asyncProperty(bounds, async ({ disabled, ...given }) => {
      const name = `made${made++}`
      await latchkey.admin('keys.create', { name, ...given })
      if (disabled === true) await latchkey.admin('keys.disable', { key: name })
      const { latchkey: format, keys } = await exported()
      expect((await planOf({ latchkey: format, keys })).changes).toEqual([])
    }),
    { numRuns: 25 },
  )
})

test('an omitted collection is not compared, and an empty one is what its owner has', async () => {
  expect((await planOf({ latchkey: 1, owner: 'us' })).changes).toEqual([])
  expect((await planOf({ latchkey: 1, owner: 'us', keys: [] })).changes).toEqual([])
})

test('a plan shows what would change, what is too wide, and saves nothing', async () => {
  const policy = { name: 'wide', issuer: 'hub', key: 'new', audience: 'a', condition: 'true' }
  const document = {
    latchkey: 1,
    owner: 'us',
    issuers: [{ name: 'hub', issuer_url: 'https://token.actions.githubusercontent.com' }],
    keys: [{ name: 'new', limit: 5 }],
    policies: [policy],
  }
  const plan = await planOf(document)
  expect(plan.changes.map(({ kind, name, action }) => `${action} ${kind} ${name}`)).toEqual([
    ...['create issuers hub', 'create keys new', 'create policies wide'],
  ])
  expect(plan.blocked).toEqual(['wide'])
  expect(await planOf(document)).toEqual(plan)
})

test.each([
  ['an unknown field', { keys: [{ name: 'a', secret: 'x' }] }, 'secret'],
  ['an entry twice', { keys: [{ name: 'a' }, { name: 'a' }] }, 'keys "a": it is in the document twice'],
  ['a policy without an issuer', { policies: [policyOn('nowhere')] }, 'policies "p": there is no issuer "nowhere"'],
  [
    'a condition that does not compile',
    { policies: [{ ...policyOn('idp'), condition: 'subject ==' }] },
    'policies "p": The',
  ],
  ['another organization', { organization: 'other' }, 'There is no organization "other"'],
  ['another format', { latchkey: 2 }, 'latchkey must be 1'],
])('a document is refused for %s', async (_name, document, message) => {
  await expect(planOf({ latchkey: 1, ...document })).rejects.toThrow(message)
})

function policyOn(issuer: string) {
  return { name: 'p', issuer, key: 'target', audience: 'a', subject: 's' }
}
