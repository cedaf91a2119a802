// Documents of several owners are planned and applied together: one plan, one fingerprint, one commit, and each owner keeps its own.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Row } from '../../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'
import { rejectionOf } from '../../support/rejection.ts'

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

type Change = { owner: string; kind: string; name: string; action: string }
type Plan = {
  owner: null
  documents: { owner: string; owner_locks?: object }[]
  fingerprint: string
  changes: Change[]
  pending: Change[]
  blocked: string[]
}
type Applied = Plan & { group_id: string | null; secrets: { name: string; key: string }[] }
type Recorded = { kind: string; after: { owner?: string; sha256?: string | null } }
const planOf = (...documents: object[]) => latchkey.admin<Plan>('config.plan', { documents })
const apply = (documents: object[], more: object = {}) =>
  latchkey.admin<Applied>('config.apply', { documents, ...more })
const brief = (changes: Change[]) =>
  changes.map(({ owner, kind, name, action }) => `${owner}: ${action} ${kind} ${name}`)
const recordsOf = async (group: string | null) =>
  (await latchkey.admin<{ data: Recorded[] }>('audit.changes', { group })).data
const keyNames = async () => (await latchkey.admin<{ data: Row[] }>('keys.list')).data.map(({ name }) => name)

const platform = (name: string, more: object = {}) => ({
  latchkey: 1,
  owner: `${name}-platform`,
  issuers: [{ name: `${name}-idp`, issuer_url: `https://${name}.example.com` }],
  ...more,
})
const team = (name: string, owner: string, policy: object = {}) => ({
  latchkey: 1,
  owner,
  keys: [{ name: `${owner}-key` }],
  policies: [
    { name: `${owner}-policy`, issuer: `${name}-idp`, key: `${owner}-key`, audience: 'a', subject: 's', ...policy },
  ],
})

test('a policy of a team may name an issuer that the document of the platform makes in the same plan, in any order', async () => {
  const documents = [team('new', 'new-a'), platform('new'), team('new', 'new-b')]
  const { changes, fingerprint, ...plan } = await planOf(...documents)
  expect(plan).toMatchObject({
    owner: null,
    documents: [{ owner: 'new-a' }, { owner: 'new-platform' }, { owner: 'new-b' }],
    blocked: [],
  })
  expect(brief(changes)).toEqual([
    'new-platform: create issuers new-idp',
    ...['new-a: create keys new-a-key', 'new-b: create keys new-b-key'],
    ...['new-a: create policies new-a-policy', 'new-b: create policies new-b-policy'],
  ])
  const sha256s = ['a', 'b', 'c'].map((digit) => digit.repeat(64))
  const { group_id, secrets } = await apply(documents, { fingerprint, sha256s })
  expect(secrets.map(({ name }) => name)).toEqual(['new-a-key', 'new-b-key'])
  const records = await recordsOf(group_id)
  expect(records.filter(({ kind }) => kind === 'document').map(({ after }) => [after.owner, after.sha256])).toEqual([
    ...[
      ['new-b', sha256s[2]],
      ['new-platform', sha256s[1]],
      ['new-a', sha256s[0]],
    ],
  ])
  expect(records).toHaveLength(8)
  expect(await latchkey.admin('policies.show', { policy: 'new-b-policy' })).toMatchObject({
    state: 'enabled',
    managed_by: 'new-b',
  })
  expect((await planOf(...documents)).changes).toEqual([])
})

test('one document that cannot be applied keeps all of them from being applied', async () => {
  const wide = { subject: null, condition: 'true' }
  const documents = [platform('wide', { keys: [{ name: 'wide-shared' }] }), team('wide', 'wide-a', wide)]
  expect((await planOf(...documents)).blocked).toEqual(['wide-a-policy'])
  await expect(apply(documents)).rejects.toThrow('policies "wide-a-policy"')
  expect(await keyNames()).not.toContain('wide-shared')
})

test('only the documents that change something are recorded, and a reviewed plan covers all of them', async () => {
  const [one, other] = [team('idle', 'idle-a'), team('idle', 'idle-b')]
  await apply([platform('idle'), one, other])
  const limited = { ...other, keys: [{ name: 'idle-b-key', limit: 5 }] }
  const { fingerprint } = await planOf(platform('idle'), one, limited)
  const { group_id } = await apply([platform('idle'), one, limited], { fingerprint })
  expect((await recordsOf(group_id)).map(({ kind, after }) => after.owner ?? kind)).toEqual(['key', 'idle-b'])
  expect((await apply([platform('idle'), one, limited])).group_id).toBeNull()
  const again = [platform('idle'), { ...one, keys: [{ name: 'idle-a-key', limit: 3 }] }, limited]
  const reviewed = (await planOf(...again)).fingerprint
  latchkey.clock.now += 1
  await latchkey.admin('keys.update', { key: 'idle-a-key', requests_per_minute: 3 })
  expect((await rejectionOf(apply(again, { fingerprint: reviewed }))).message).toContain('has changed since the plan')
})

test('each owner prunes its own, and what a third owner has stays in conflict', async () => {
  await apply([platform('own'), team('own', 'own-a'), team('own', 'own-b'), team('own', 'own-c')])
  const empty = { latchkey: 1, owner: 'own-a', keys: [], policies: [] }
  const documents = [empty, { latchkey: 1, owner: 'own-b', keys: [{ name: 'own-b-key' }, { name: 'own-c-key' }] }]
  expect(brief((await planOf(...documents)).changes)).toEqual([
    ...['own-a: delete keys own-a-key', 'own-b: conflict keys own-c-key', 'own-a: delete policies own-a-policy'],
  ])
  await expect(apply(documents, { prune: true, adopt: true })).rejects.toThrow('Another owner has keys "own-c-key"')
  const kept = [empty, team('own', 'own-b')]
  expect(brief((await apply(kept)).pending)).toEqual([
    ...['own-a: delete keys own-a-key', 'own-a: delete policies own-a-policy'],
  ])
  await apply(kept, { prune: true })
  expect(await keyNames()).not.toContain('own-a-key')
  expect(await keyNames()).toContain('own-b-key')
})

test('an object that one document gives up and another names moves, with its identity, once that is decided', async () => {
  await apply([platform('move'), team('move', 'move-a'), team('move', 'move-b')])
  const { id, hash } = await latchkey.admin('keys.show', { key: 'move-a-key' })
  const [from, to] = [team('move', 'move-a'), team('move', 'move-b')]
  const documents = [
    { ...from, keys: [], policies: [] },
    { ...to, keys: [...from.keys, ...to.keys], policies: [...from.policies, ...to.policies] },
  ]
  expect(brief((await planOf(...documents)).changes)).toEqual([
    ...['move-b: adopt keys move-a-key', 'move-b: adopt policies move-a-policy'],
  ])
  await expect(apply(documents, { prune: true })).rejects.toThrow('Of another owner so far: keys "move-a-key"')
  await apply(documents, { prune: true, adopt: true })
  expect(await latchkey.admin('keys.show', { key: 'move-a-key' })).toMatchObject({ id, hash, managed_by: 'move-b' })
  expect((await planOf(...documents)).changes).toEqual([])
})

test('the locks of each owner are those of its document', async () => {
  const [open, locked] = [platform('lock'), { ...team('lock', 'lock-a'), owner_locks: true }]
  expect((await planOf(open, locked)).documents).toEqual([
    { owner: 'lock-platform' },
    { owner: 'lock-a', owner_locks: { before: false, after: true } },
  ])
  await apply([open, locked])
  await expect(latchkey.admin('keys.update', { key: 'lock-a-key', limit: 1 })).rejects.toThrow('locks the key')
  await latchkey.admin('issuers.update', { issuer: 'lock-idp', clock_skew_seconds: 5 })
})

const two = [platform('bad'), team('bad', 'bad-a')] as const
test.each([
  [
    'an object in two documents',
    [two[0], { ...two[0], owner: 'bad-a' }],
    'in the documents of "bad-platform" and "bad-a"',
  ],
  ['an owner with two documents', [two[0], two[0]], 'Two documents have the owner "bad-platform"'],
  ['a document without an owner', [two[0], { latchkey: 1, keys: [] }], 'One of several documents has no owner'],
  [
    'another organization',
    [
      { ...two[0], organization: 'default' },
      { ...two[1], organization: 'o' },
    ],
    'for the organization "o"',
  ],
  [
    'a policy that keeps what another document drops',
    [{ ...two[0], issuers: [] }, two[1]],
    'no longer has issuers "bad-idp"',
  ],
  ['no document', [], 'Send either document, or documents'],
])('they are refused with %s', async (_name, documents, message) => {
  await apply([...two])
  await expect(planOf(...documents)).rejects.toThrow(message)
})

test('document and documents, or digests that do not fit, are refused', async () => {
  const document = two[0]
  const input = (more: Record<string, unknown>) => latchkey.admin('config.apply', more)
  await expect(input({})).rejects.toThrow('Send either document, or documents')
  await expect(input({ document, documents: [document] })).rejects.toThrow('Send either document, or documents')
  await expect(input({ documents: [...two], sha256s: ['a'.repeat(64)] })).rejects.toThrow('one entry for each')
  await expect(input({ documents: [...two], sha256: 'a'.repeat(64) })).rejects.toThrow('sha256s with documents')
})
