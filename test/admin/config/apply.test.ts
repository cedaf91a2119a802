// A document is applied as a whole or not at all: by owner, as reviewed, with what only the caller may decide.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { hash } from 'node:crypto'
import { presetsMax } from '../../../src/limits.ts'
import type { Row } from '../../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'
import { rejectionOf } from '../../support/rejection.ts'

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

type Plan = {
  fingerprint: string
  changes: { kind: string; name: string; action: string; fields: object[]; policies_affected?: string[] }[]
  differences: object[]
}
type Applied = Plan & {
  group_id: string | null
  secrets: { name: string; key: string }[]
  counts: Record<string, number>
}
const planOf = (document: object) => latchkey.admin<Plan>('config.plan', { document })
const apply = (document: object, more: object = {}) => latchkey.admin<Applied>('config.apply', { document, ...more })
type Records = { data: { operation: string; at: string; kind: string; before: object | null; after: object }[] }
const changesOf = (group: string | null) => latchkey.admin<Records>('audit.changes', { group })
const brief = ({ changes }: Plan) => changes.map(({ kind, name, action }) => `${action} ${kind} ${name}`)
const namesOf = async (operation: 'keys.list' | 'policies.list' | 'issuers.list') =>
  (await latchkey.admin<{ data: Row[] }>(operation)).data.map(({ name }) => name)

const team = (owner: string) => ({
  latchkey: 1,
  owner,
  issuers: [{ name: `${owner}-idp`, issuer_url: `https://${owner}.example.com` }],
  keys: [{ name: `${owner}-key`, limit: 5, limit_reset: 'monthly', owner: `user of ${owner}` }],
  policies: [{ name: `${owner}-policy`, issuer: `${owner}-idp`, key: `${owner}-key`, audience: 'a', subject: 's' }],
  presets: [{ slug: `${owner}-preset`, config: { model: 'm' }, system_prompt: 'Be brief' }],
  upstreams: [{ name: `${owner}-gpu`, base_url: 'http://10.0.0.5/v1', credential: 'secret-1' }],
  prices: [{ model: `${owner}/*`, prompt: 1, completion: 2 }],
})

test('everything that a document names is made at once, with one record each, and its plan is then empty', async () => {
  const sha256 = 'ab'.repeat(32)
  const { changes, secrets, group_id } = await apply(team('whole'), { sha256, revision: 'v1' })
  expect(changes.length).toBe(6)
  expect(secrets).toEqual([{ name: 'whole-key', key: expect.stringMatching(/^sk-lk-v1-/) }])
  expect(brief(await planOf(team('whole')))).toEqual([])
  const records = await changesOf(group_id)
  expect(new Set(records.data.map(({ operation, at }) => `${operation} ${at}`)).size).toBe(1)
  expect(records.data.map(({ kind }) => kind).toSorted()).toEqual([
    ...['document', 'issuer', 'key', 'policy', 'preset', 'price', 'upstream', 'user'],
  ])
  expect(records.data.at(-1)).toMatchObject({
    kind: 'document',
    before: null,
    after: { owner: 'whole', sha256, revision: 'v1', locked: false },
  })
  expect(await latchkey.admin('policies.show', { policy: 'whole-policy' })).toMatchObject({ state: 'enabled' })
  expect(JSON.stringify(records)).not.toContain('secret-1')
})

test('the record of an apply names what was applied before, and an apply that brings nothing new has no record', async () => {
  const document = { latchkey: 1, owner: 'recorded', keys: [{ name: 'recorded-key' }] }
  await apply(document, { revision: 'one' })
  expect((await apply(document, { revision: 'one' })).group_id).toBeNull()
  const { data } = await changesOf((await apply(document, { revision: 'two' })).group_id)
  expect(data).toEqual([
    expect.objectContaining({
      kind: 'document',
      before: expect.objectContaining({ revision: 'one' }),
      after: expect.objectContaining({ revision: 'two' }),
    }),
  ])
})

test('an edit changes the fields that differ, and a key keeps its text', async () => {
  const before = team('edit')
  await apply(before)
  const { hash } = await latchkey.admin('keys.show', { key: 'edit-key' })
  const after = {
    ...before,
    keys: [{ name: 'edit-key', owner: 'user of edit', limit: 7 }],
    presets: [{ slug: 'edit-preset', config: { model: 'n' } }],
    upstreams: [{ name: 'edit-gpu', base_url: 'http://10.0.0.6/v1' }],
  }
  const { changes, secrets } = await apply(after)
  expect(changes.map(({ fields, kind }) => [kind, fields])).toEqual([
    [
      'keys',
      [
        { field: 'limit', before: 5, after: 7 },
        { field: 'limit_reset', before: 'monthly', after: null },
      ],
    ],
    [
      'presets',
      [
        { field: 'config', before: { model: 'm' }, after: { model: 'n' } },
        { field: 'system_prompt', before: 'Be brief', after: null },
      ],
    ],
    ['upstreams', [{ field: 'base_url', before: 'http://10.0.0.5/v1', after: 'http://10.0.0.6/v1' }]],
  ])
  expect(secrets).toEqual([])
  expect(await latchkey.admin('keys.show', { key: 'edit-key' })).toMatchObject({ hash, limit: 7, limit_reset: null })
  expect(await latchkey.admin('upstreams.show', { upstream: 'edit-gpu' })).toMatchObject({ has_credential: true })
  expect(brief(await planOf(after))).toEqual([])
})

test('of a credential, a plan says only whether it differs', async () => {
  const document = team('credential')
  await apply(document)
  const other = { ...document, upstreams: [{ ...document.upstreams[0], credential: 'secret-2' }] }
  expect((await planOf(other)).changes.map(({ fields }) => fields)).toEqual([[{ field: 'credential' }]])
  await apply(other)
  expect(brief(await planOf(other))).toEqual([])
  expect(brief(await planOf(document))).toEqual(['update upstreams credential-gpu'])
})

test('only prune deletes, and only what the owner has in collections that the document has', async () => {
  await apply(team('keeper'))
  await apply(team('pruned'))
  const { issuers, keys } = team('pruned')
  const document = { latchkey: 1, owner: 'pruned', issuers, keys, policies: [], upstreams: [], presets: [], prices: [] }
  const left = [
    'delete policies pruned-policy',
    'delete presets pruned-preset',
    'delete upstreams pruned-gpu',
    'delete prices pruned/*',
  ]
  expect(brief(await planOf(document))).toEqual(left)
  expect(brief(await apply(document))).toEqual([])
  expect(brief(await apply(document, { prune: true }))).toEqual(left)
  expect(brief(await planOf(document))).toEqual([])
  const { client } = latchkey.server.context.database
  const { rows } = await client.execute("select credential_encrypted from upstreams where name = 'pruned-gpu'")
  expect(rows.map((row) => row.credential_encrypted)).toEqual([null])
  expect(await namesOf('policies.list')).toContain('keeper-policy')
  expect(await namesOf('policies.list')).not.toContain('pruned-policy')
  expect(await namesOf('keys.list')).toContain('pruned-key')
  const gone = { ...document, issuers: [], keys: [] }
  expect((await apply(gone, { prune: true })).counts).toMatchObject({ delete: 2 })
})

test('what was made by hand is taken only with adopt, and what another owner has never', async () => {
  await latchkey.admin('keys.create', { name: 'manual', limit: 1 })
  const document = { latchkey: 1, owner: 'us', keys: [{ name: 'manual', limit: 2 }, { name: 'beside' }] }
  await expect(apply(document)).rejects.toThrow('Made by hand: keys "manual"')
  expect(await namesOf('keys.list')).not.toContain('beside')
  expect(brief(await apply(document, { adopt: true }))).toEqual(['create keys beside', 'adopt keys manual'])
  expect(brief(await planOf(document))).toEqual([])
  await expect(apply({ ...document, owner: 'them' }, { adopt: true })).rejects.toThrow(
    'Another owner has keys "beside", keys "manual"',
  )
})

test('an edit by hand keeps the owner and shows as drift', async () => {
  const document = team('drift')
  await apply(document)
  await latchkey.admin('keys.update', { key: 'drift-key', limit: 500 })
  await latchkey.admin('prices.set', { prices: [{ model: 'drift/*', prompt: 9, completion: 2 }] })
  await latchkey.admin('policies.pause', { policy: 'drift-policy' })
  expect(brief(await planOf(document))).toEqual([
    ...['update keys drift-key', 'update policies drift-policy', 'update prices drift/*'],
  ])
})

test('a reviewed plan is refused after an object that it changes was saved again, or when the document differs', async () => {
  const document = team('reviewed')
  await apply(document)
  const edit = { ...document, keys: [{ name: 'reviewed-key', owner: 'user of reviewed', limit: 6 }] }
  const { fingerprint } = await planOf(edit)
  expect((await rejectionOf(apply(document, { fingerprint }))).message).toContain('has changed since the plan')
  latchkey.clock.now += 1
  await latchkey.admin('keys.update', { key: 'reviewed-key', requests_per_minute: 3 })
  expect((await rejectionOf(apply(edit, { fingerprint }))).message).toContain('has changed since the plan')
  expect(brief(await apply(edit, { fingerprint: (await planOf(edit)).fingerprint }))).toEqual([
    'update keys reviewed-key',
  ])
})

test.each([
  ['a policy that is too wide', { condition: 'true', subject: null }, 'policies "refused": too wide (vacuous)'],
  [
    'a test that fails',
    { tests: [{ name: 'wrong', claims: { sub: 'other' }, expect: 'allow' }] },
    'policies "refused": a test fails. "wrong": expected allow, got subject_mismatch',
  ],
])('nothing is saved because of %s', async (_name, change, message) => {
  const policy = { name: 'refused', issuer: 'open', key: 'fresh', audience: 'a', subject: 's', ...change }
  const issuers = [{ name: 'open', issuer_url: 'https://open.example.com', shared: true }]
  const document = { latchkey: 1, issuers, keys: [{ name: 'fresh' }], policies: [policy] }
  await expect(apply(document)).rejects.toThrow(message)
  expect(await namesOf('keys.list')).not.toContain('fresh')
})

test('a plan shows a token that only the changed policy accepts, one that only the saved one accepts, or that it found none', async () => {
  const before = team('differs')
  await apply(before)
  const planWith = async (change: object) => {
    const { differences } = await planOf({ ...before, policies: [{ ...before.policies[0], ...change }] })
    return differences
  }
  expect(await planWith({ subject: 'other' })).toEqual([
    {
      policy: 'differs-policy',
      gains: expect.objectContaining({ sub: 'other' }),
      loses: expect.objectContaining({ sub: 's' }),
    },
  ])
  expect(await planWith({ subject: null, condition: 'subject == "s" || subject == "t"' })).toEqual([
    { policy: 'differs-policy', gains: expect.objectContaining({ sub: 't' }) },
  ])
  expect(await planWith({ max_lifetime_seconds: 60 })).toEqual([{ policy: 'differs-policy' }])
  expect(await planWith({ enabled: false })).toEqual([
    { policy: 'differs-policy', loses: expect.objectContaining({ sub: 's' }) },
  ])
  expect(await planWith({})).toEqual([])
})

test('a plan names the policies that become inactive because their key or issuer is pruned or disabled', async () => {
  const { issuers, keys, policies } = team('stops')
  const base = { latchkey: 1, owner: 'stops', issuers, keys: [...keys, { name: 'stops-other' }] }
  await apply({ ...base, policies })
  const affected = async (document: object) =>
    (await planOf(document)).changes.map(({ name, policies_affected }) => [name, policies_affected])
  expect(await affected({ latchkey: 1, owner: 'stops', issuers: [], keys: [] })).toEqual([
    ['stops-idp', ['stops-policy']],
    ['stops-key', ['stops-policy']],
    ['stops-other', undefined],
  ])
  expect(
    await affected({ latchkey: 1, owner: 'stops', keys: [{ ...keys[0], disabled: true }, { name: 'stops-other' }] }),
  ).toEqual([['stops-key', ['stops-policy']]])
  const moved = [{ ...policies[0], key: 'stops-other' }]
  expect(await affected({ ...base, keys: [{ name: 'stops-other' }], policies: moved })).toEqual([
    ['stops-key', undefined],
    ['stops-policy', undefined],
  ])
  expect(await affected({ ...base, issuers: [], keys: [], policies: [] })).toContainEqual(['stops-key', undefined])
})

test('a policy must not keep a key that the document gives up', async () => {
  await apply(team('broken'))
  const document = { ...team('broken'), keys: [] }
  await expect(planOf(document)).rejects.toThrow('the document no longer has keys "broken-key"')
})

test('a key that was made elsewhere is pinned by its hash and works, and its hash can neither change nor be used again', async () => {
  const text = `sk-lk-v1-${'0123456789abcdef'.repeat(4)}`
  const sha256 = hash('sha256', text)
  const document = { latchkey: 1, owner: 'pins', keys: [{ name: 'pinned', hash: sha256 }] }
  expect((await planOf(document)).changes[0]?.fields).toContainEqual({ field: 'hash', after: sha256 })
  expect((await apply(document)).secrets).toEqual([])
  const shown = await fetch(`${latchkey.server.baseUrl}/key`, { headers: { authorization: `Bearer ${text}` } })
  expect(((await shown.json()) as { data: { name: string } }).data.name).toBe('pinned')
  expect(brief(await planOf(document))).toEqual([])
  expect(brief(await planOf({ ...document, keys: [{ name: 'pinned' }] }))).toEqual([])
  const other = { ...document, keys: [{ name: 'pinned', hash: 'ab'.repeat(32) }] }
  await expect(planOf(other)).rejects.toThrow('the saved key has another hash')
  const again = { latchkey: 1, keys: [{ name: 'second', hash: sha256 }] }
  await expect(planOf(again)).rejects.toThrow('the key "pinned" has this hash; make another key')
  await apply({ ...document, keys: [] }, { prune: true })
  await expect(planOf(document)).rejects.toThrow('the deleted key "pinned" has this hash; make another key')
  const twice = { latchkey: 1, keys: ['a', 'b'].map((name) => ({ name, hash: 'cd'.repeat(32) })) }
  await expect(planOf(twice)).rejects.toThrow('keys "b": the key "a" has this hash')
})

test('a hash that another organization pinned first is refused with the truth, without the name of its key', async () => {
  await latchkey.admin('organizations.create', { name: 'first' })
  const pin = (name: string) => ({ latchkey: 1, owner: 'pin', keys: [{ name, hash: 'ef'.repeat(32) }] })
  await apply({ ...pin('squatted'), organization: 'first' })
  const message = await planOf({ ...pin('mine'), organization: 'default' }).then(
    String,
    (error: Error) => error.message,
  )
  expect(message).toContain('another organization has, or had, a key with this hash, and calls with it would be theirs')
  expect(message).not.toContain('squatted')
})

test('an issuer that changes is refused if it opens a policy of the document or of another, and reviewed with one that changes', async () => {
  const policy = { issuer: 'shift', key: 'target', audience: 'a', condition: 'claims.environment == "production"' }
  const issuers = [{ name: 'shift', issuer_url: 'https://shift.example.com', shared: false }]
  const document = { latchkey: 1, owner: 'shift', issuers, policies: [{ ...policy, name: 'shifted' }] }
  await apply(document)
  const url = 'https://github.acme.example/_services/token'
  const moved = { ...document, issuers: [{ name: 'shift', issuer_url: url, shared: true }] }
  await expect(planOf(moved)).rejects.toThrow('the policy "shifted" is too wide: github-environment-alone')
  const edited = { ...moved, policies: [{ ...policy, name: 'shifted', max_lifetime_seconds: 60 }] }
  expect(await planOf(edited)).toMatchObject({
    blocked: ['shifted'],
    differences: [{ policy: 'shifted', gains: {}, loses: {} }],
  })
  const narrow = {
    ...policy,
    name: 'shifted',
    condition: 'claims.repository_id == "1" && claims.ref == "refs/heads/main"',
  }
  expect((await apply({ ...moved, policies: [narrow] })).counts).toMatchObject({ update: 2 })
})

test('a policy that is not pruned counts as kept when its issuer changes', async () => {
  const policy = { issuer: 'kept', key: 'target', audience: 'a', condition: 'claims.environment == "production"' }
  const issuers = [{ name: 'kept', issuer_url: 'https://kept.example.com', shared: false }]
  const document = { latchkey: 1, owner: 'kept', issuers, policies: [{ ...policy, name: 'left' }] }
  await apply(document)
  const url = 'https://github.kept.example/_services/token'
  const moved = { ...document, issuers: [{ name: 'kept', issuer_url: url, shared: true }], policies: [] }
  expect(brief(await planOf(moved))).toEqual(['update issuers kept', 'delete policies left'])
  await expect(apply(moved)).rejects.toThrow('the policy "left" is too wide: github-environment-alone')
  expect((await apply(moved, { prune: true })).counts).toMatchObject({ update: 1, delete: 1 })
})

test('an issuer may take the URL of one that the document gives up', async () => {
  await apply(team('renamed'))
  const issuers = [{ name: 'renamed-new', issuer_url: 'https://renamed.example.com' }]
  const policies = [{ ...team('renamed').policies[0], issuer: 'renamed-new' }]
  const document = { ...team('renamed'), issuers, policies }
  await expect(apply(document)).rejects.toThrow('renamed-idp')
  expect((await apply(document, { prune: true })).counts).toMatchObject({ create: 1, update: 1, delete: 1 })
  expect(brief(await planOf(document))).toEqual([])
})

test('a policy whose issuer and key were deleted takes those that have their names now', async () => {
  const named = { name: 'bound', issuer: 'again-idp', key: 'again-key', audience: 'a', subject: 's' }
  const document = { latchkey: 1, owner: 'bound', policies: [named] }
  const made = { latchkey: 1, owner: 'again', issuers: team('again').issuers, keys: team('again').keys }
  await apply(made)
  await apply(document)
  await apply({ ...made, issuers: [], keys: [] }, { prune: true })
  expect(brief(await planOf(document))).toEqual([])
  await apply(made)
  expect((await planOf(document)).changes[0]?.fields).toEqual([
    { field: 'issuer', before: 'again-idp (deleted)', after: 'again-idp' },
    { field: 'key', before: 'again-key (deleted)', after: 'again-key' },
  ])
  await apply(document)
  expect(await latchkey.admin('policies.show', { policy: 'bound' })).toMatchObject({ state: 'enabled' })
  expect(brief(await planOf(document))).toEqual([])
})

test('two issuers of a document may swap their URLs', async () => {
  const swap = (one: string, other: string) => ({
    latchkey: 1,
    owner: 'swap',
    issuers: [
      { name: 'one', issuer_url: `https://${one}.swap.example` },
      { name: 'other', issuer_url: `https://${other}.swap.example` },
    ],
  })
  await apply(swap('a', 'b'))
  await apply(swap('b', 'a'))
  expect(brief(await planOf(swap('b', 'a')))).toEqual([])
})

test('a document cannot bring a workspace beyond its 10,000 presets, and what it holds can still change', async () => {
  const document = (...slugs: string[]) => ({
    latchkey: 1,
    presets: slugs.map((slug) => ({ slug, config: { model: 'm' }, system_prompt: 'Be brief' })),
  })
  await apply(document('first'))
  const { presetsOf } = latchkey.server.context.registry
  const [workspaceId, held] = [...presetsOf].find(([, each]) => each.has('first')) ?? []
  const first = held?.get('first')
  if (workspaceId === undefined || held === undefined || first === undefined) throw new Error('There is no preset')
  const fakes = Array.from({ length: presetsMax - 1 - held.size }, (_, index) => `fake-${index}`)
  for (const slug of fakes) held.set(slug, { ...first, slug })
  const fault = await rejectionOf(apply(document('first', 'second', 'third')))
  expect(fault).toMatchObject({ code: 'invalid', message: 'presets "third": A workspace holds at most 10000 presets' })
  expect(held.has('second')).toBe(false)
  await apply(document('first', 'second'))
  expect((await rejectionOf(apply(document('third')))).code).toBe('invalid')
  for (const slug of fakes) held.delete(slug)
})
