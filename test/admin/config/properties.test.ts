// Whatever a document says, its plan is empty once it is applied, and so is the plan of what is then exported.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { kinds } from '../../../src/admin/kinds/kinds.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

const list = (...values: string[]) => fc.subarray(values, { minLength: 1 })
const name = fc.constantFrom('one', 'two', 'three')
const textOrNull = (...values: string[]) => fc.constantFrom(null, ...values)
/** These two are in every document, so that policies may name them. */
const always = <Entry extends { name: string }>(entry: fc.Arbitrary<Entry>) =>
  fc.tuple(entry, entry).map(([one, two]) => [
    { ...one, name: 'one' },
    { ...two, name: 'two' },
  ])

const issuer = fc.record(
  {
    name,
    issuer_url: fc.constant(''),
    keys_stale_seconds: fc.constantFrom(86_400, 600),
    clock_skew_seconds: fc.constantFrom(30, 0),
    max_token_age_seconds: fc.constantFrom(null, 600),
    shared: fc.constantFrom(null, false, true),
    jwks_url: fc.constantFrom('https://keys.example.com/jwks'),
  },
  { requiredKeys: ['name', 'issuer_url'] },
)
const key = fc.record(
  {
    name,
    limit: fc.constantFrom(1, 0.1, 0, null),
    requests_per_minute: fc.constantFrom(5, null),
    allowed_models: list('b', 'a', 'c*'),
    allowed_presets: list('y', 'x'),
    expires_at: fc.constantFrom(null, '2099-01-01T00:00:00.000Z', '2099-01-01'),
    disabled: fc.boolean(),
  },
  { requiredKeys: ['name'] },
)
const policy = fc.record(
  {
    name,
    issuer: fc.constantFrom('one', 'two'),
    key: fc.constantFrom('one', 'two'),
    audience: fc.constantFrom('a', 'b'),
    subject: fc.constant('s'),
    condition: textOrNull('claims.azp == "batch"'),
    required_scope: textOrNull('r'),
    enabled: fc.boolean(),
    replay_protection: fc.boolean(),
    max_lifetime_seconds: fc.constantFrom(900, 60),
    allowed_models: list('z', 'm'),
    tests: fc.constantFrom([], [{ name: 'other', claims: { sub: 'o' }, expect: 'subject_mismatch' }]),
    lint_exceptions: fc.constantFrom(null, [{ rule: 'vacuous', because: 'none' }]),
  },
  { requiredKeys: ['name', 'issuer', 'key', 'audience', 'subject'] },
)
const preset = fc.record(
  {
    slug: name,
    name: fc.constantFrom('one', 'Support'),
    description: textOrNull('d'),
    status: fc.constantFrom('active', 'disabled'),
    system_prompt: textOrNull('Be brief'),
    config: fc.record({ temperature: fc.constantFrom(0, 1), stop: list('b', 'a') }),
  },
  { requiredKeys: ['slug', 'config'] },
)
const upstream = fc.record(
  {
    name,
    base_url: fc.constantFrom('http://10.0.0.5/v1', 'http://10.0.0.6/v1/'),
    models: list('*', 'm/*', 'a'),
    priority: fc.constantFrom(100, 1),
    forward_headers: list('X-B', 'x-a'),
    idle_seconds: fc.constantFrom(300, 30),
    credential: textOrNull('secret-1', 'secret-2'),
  },
  { requiredKeys: ['name', 'base_url'] },
)
const price = fc.record(
  {
    model: name,
    prompt: fc.constantFrom(0.1, 2),
    completion: fc.constantFrom(0.3, 4),
    cached: fc.constantFrom(null, 0),
  },
  { requiredKeys: ['model', 'prompt', 'completion'] },
)
const windows = fc.constantFrom(
  [{ per: 'day', usd: 1 }],
  [
    { per: 'month', usd: 20 },
    { per: 'day', requests: 5, tokens: 7 },
  ],
)
const budget = fc.record(
  {
    name,
    windows,
    enabled: fc.boolean(),
    each: textOrNull('key', 'label:team'),
    applies_to: fc.constantFrom(null, {}, { keys: ['two', 'one'] }, { labels: { team: 'a' }, models: ['b', 'a'] }),
    mode: fc.constantFrom('block', 'warn'),
  },
  { requiredKeys: ['name', 'windows'] },
)
const webhook = fc.record(
  {
    name,
    url: fc.constantFrom('https://9.9.9.9/one', 'https://9.9.9.9/two'),
    secret: fc.constant(`whsec_${'QUJD'.repeat(8)}`),
    enabled: fc.boolean(),
    events: fc.constantFrom(['*'], ['budget.reached', 'finding.opened']),
  },
  { requiredKeys: ['name', 'url', 'secret'] },
)
const unique = <Entry>(entry: fc.Arbitrary<Entry>, nameOf: (entry: Entry) => string) =>
  fc.uniqueArray(entry, { selector: nameOf, maxLength: 3 })
const document = fc.record(
  {
    latchkey: fc.constant(1),
    owner: fc.constant('anything'),
    owner_locks: fc.boolean(),
    issuers: always(issuer).map((rows) =>
      rows.map((row) => ({ ...row, issuer_url: `https://${row.name}.example.com` })),
    ),
    keys: always(key),
    policies: unique(policy, (each) => each.name),
    // An archived preset keeps its slug, so that one which was dropped could not return.
    presets: fc.tuple(preset, preset).map(([one, two]) => [
      { ...one, slug: 'one' },
      { ...two, slug: 'two' },
    ]),
    upstreams: unique(upstream, (each) => each.name),
    prices: unique(price, (each) => each.model),
    budgets: unique(budget, (each) => each.name),
    webhooks: unique(webhook, (each) => each.name),
  },
  { requiredKeys: ['latchkey', 'owner', 'issuers', 'keys'] },
)

type Plan = { changes: object[]; owner_locks?: object; blocked: string[] }
const planOf = (given: object) => latchkey.admin<Plan>('config.plan', { document: given })

test('after any document was applied, its plan and those of its exports are empty', async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(document, async (given) => {
      const { changes } = await latchkey.admin<{ changes: { kind: string; action: string }[] }>('config.apply', {
        document: given,
        prune: true,
      })
      for (const { kind, action } of changes) seen.add(`${action} ${kind}`)
      expect(await planOf(given)).toMatchObject({ changes: [], blocked: [] })
      expect(await planOf(given)).not.toHaveProperty('owner_locks')
      for (const owner of ['anything', undefined]) {
        const exported = await latchkey.admin<{ owner?: string }>('config.export', owner === undefined ? {} : { owner })
        const plan = await planOf(exported)
        expect(plan.changes).toEqual([])
        expect(plan).not.toHaveProperty('owner_locks')
      }
    }),
    { numRuns: 30, seed: 20_261_122 },
  )
  expect(kinds.filter((kind) => !seen.has(`create ${kind}`) || !seen.has(`update ${kind}`))).toEqual([])
}, 60_000)
