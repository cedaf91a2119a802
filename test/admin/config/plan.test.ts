// What a document would change, decided without a database: by name, by owner and field by field.
import { expect, test } from 'bun:test'
import { type Change, fingerprintOf, planCollection, type SavedEntry } from '../../../src/admin/config/plan.ts'
import { entryOf } from '../../../src/admin/kinds/fields.ts'
import { policyFields } from '../../../src/admin/kinds/policy.ts'

const saved = (name: string, managedBy: string | null, entry: object = {}): SavedEntry => ({
  name,
  id: `id of ${name}`,
  managedBy,
  updatedAt: 1,
  entry: { name, ...entry },
})
const wanted = (name: string, entry: object = {}) => ({ name, entry: { name, ...entry } })
const briefly = (changes: Change[]) => changes.map(({ name, action }) => `${action} ${name}`)

test('an owner creates, updates and deletes its own, and takes nothing from others', async () => {
  const before = [
    saved('changed', 'us', { limit: 1 }),
    saved('dropped', 'us'),
    saved('foreign', 'them'),
    saved('manual', null),
    saved('left-to-them', 'them'),
    saved('left-by-hand', null),
    saved('same', 'us', { limit: 1 }),
  ]
  const after = [
    wanted('same', { limit: 1 }),
    wanted('changed', { limit: 2 }),
    wanted('foreign'),
    wanted('manual'),
    wanted('new'),
  ]
  expect(briefly(await planCollection('keys', after, before, 'us'))).toEqual([
    'update changed',
    'delete dropped',
    'conflict foreign',
    'adopt manual',
    'create new',
  ])
})

test('a document without an owner changes what it names, whatever its owner, and deletes nothing', async () => {
  const before = [saved('theirs', 'them', { limit: 1 }), saved('manual', null), saved('other', null)]
  const after = [wanted('theirs', { limit: 2 }), wanted('manual')]
  expect(briefly(await planCollection('keys', after, before, null))).toEqual(['update theirs'])
})

test('a change names each field with its value before and after, and of a credential only that it changes', async () => {
  const before = [saved('gpu', null, { priority: 1, models: ['a'] })]
  const after = [wanted('gpu', { priority: 2, credential: 'changed' })]
  expect((await planCollection('upstreams', after, before, null))[0]?.fields).toEqual([
    { field: 'credential' },
    { field: 'models', before: ['a'], after: ['*'] },
    { field: 'priority', before: 1, after: 2 },
  ])
})

test('nulls, defaults and the order of sets and members make no difference', async () => {
  const row = { name: 'a', enabled: true, subject: null, allowedModels: ['b', 'a', 'b'] }
  expect(entryOf(policyFields, row, {})).toEqual({ name: 'a', allowed_models: ['a', 'b'] })
  const before = [{ ...saved('p', null), entry: { slug: 'p', config: { model: 'm', top_p: 1 } } }]
  const after = [{ name: 'p', entry: { config: { top_p: 1, model: 'm' }, slug: 'p' } }]
  expect(await planCollection('presets', after, before, null)).toEqual([])
})

test('the fingerprint differs for another organization or owner, and after an object was saved again', async () => {
  const after = [wanted('a', { limit: 2 })]
  const planned = async (updatedAt: number, scope: object = {}) => {
    const changes = await planCollection('keys', after, [{ ...saved('a', null), updatedAt }], null)
    return fingerprintOf([{ organizationId: 'o', owner: null, locks: undefined, ...scope }], changes)
  }
  const fingerprint = await planned(1)
  expect(await planned(1)).toBe(fingerprint)
  for (const other of [planned(2), planned(1, { organizationId: 'p' }), planned(1, { owner: 'us' })])
    expect(await other).not.toBe(fingerprint)
})
