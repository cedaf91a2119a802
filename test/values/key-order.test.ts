// The keys of a map in order: as a sort of all entries would have them, after any additions, changes and removals.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { headOfKey, headOfPolicy } from '../../src/registry/row-heads.ts'
import { createPackedMap } from '../../src/values/packed-map.ts'

type Row = { at: number; name: string }

const atOnce = () => undefined

const pack = (key: string, { at, name }: Row) => JSON.stringify([key, at, name])
function unpack(text: string): Row {
  const [, at, name] = JSON.parse(text) as [string, number, string]
  return { at, name }
}
const createRows = () =>
  createPackedMap(unpack, {
    sortByOf: (held) => {
      const { at, name } = typeof held === 'string' ? unpack(held) : held
      return [at, name]
    },
  })

test('a row that is created, renamed or deleted has its place at once', async () => {
  const rows = createRows()
  rows.addPacked([pack('1', { at: 5, name: 'b' }), pack('2', { at: 5, name: 'a' })].join('\n'))
  rows.set('3', { at: 1, name: 'z' })
  expect(await rows.keysInOrder(atOnce)).toEqual(['3', '2', '1'])
  const read = await rows.keysInOrder(atOnce)
  rows.set('4', { at: 5, name: 'aa' })
  expect(read).toEqual(['3', '2', '1'])
  expect(await rows.keysInOrder(atOnce)).toEqual(['3', '2', '4', '1'])
  rows.set('2', { at: 5, name: 'c' })
  expect(await rows.keysInOrder(atOnce)).toEqual(['3', '4', '1', '2'])
  rows.delete('4')
  rows.delete('9')
  expect(await rows.keysInOrder(atOnce)).toEqual(['3', '1', '2'])
})

test('any changes leave the order of a sort', async () => {
  const change = fc.record({
    key: fc.integer({ min: 0, max: 12 }).map(String),
    at: fc.integer({ min: 0, max: 2 }),
    name: fc.constantFrom('a', 'b', 'c'),
    how: fc.constantFrom('set', 'delete', 'get'),
  })
  const packed = fc.array(change, { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(packed, fc.array(change, { maxLength: 40 }), async (before, changes) => {
      const rows = createRows()
      await rows.keysInOrder(atOnce)
      for (const [index, row] of before.entries()) rows.addPacked(pack(String(index), row))
      await rows.keysInOrder(atOnce)
      for (const { key, at, name, how } of changes)
        if (how === 'set') rows.set(key, { at, name })
        else if (how === 'get') rows.get(key)
        else rows.delete(key)
      const sorted = [...rows].toSorted(
        ([key, one], [otherKey, other]) =>
          one.at - other.at || one.name.localeCompare(other.name) || (key < otherKey ? -1 : 1),
      )
      expect(await rows.keysInOrder(atOnce)).toEqual(sorted.map(([key]) => key))
    }),
    { numRuns: 100 },
  )
})

test('without a rule, keys have the order of insertion, also after changes and removals', async () => {
  const rows = createPackedMap(unpack)
  const row = { at: 1, name: 'a' }
  rows.addPacked([pack('3', row), pack('1', row)].join('\n'))
  expect(await rows.keysInOrder(atOnce)).toEqual(['3', '1'])
  rows.set('2', row)
  rows.set('3', { at: 9, name: 'z' })
  expect(await rows.keysInOrder(atOnce)).toEqual(['3', '1', '2'])
  rows.delete('1')
  rows.delete('9')
  expect(await rows.keysInOrder(atOnce)).toEqual(['3', '2'])
})

test('a change while the keys are collected is in the order, however often it happens', async () => {
  const rows = createRows()
  rows.addPacked(Array.from({ length: 10 }, (_, index) => pack(`packed-${index}`, { at: 1, name: 'a' })).join('\n'))
  let added = 0
  const keys = await rows.keysInOrder(() => {
    rows.set(`added-${added++}`, { at: 0, name: 'b' })
    return Promise.resolve()
  })
  expect(added).toBeGreaterThan(1)
  expect(keys).toEqual([...rows.keys()].toSorted())
})

test('a change right after the keys were asked for is in the next list', async () => {
  for (const rows of [createRows(), createPackedMap(unpack)]) {
    rows.addPacked(pack('1', { at: 1, name: 'a' }))
    const first = rows.keysInOrder(atOnce)
    const second = rows.keysInOrder(atOnce)
    rows.set('2', { at: 2, name: 'b' })
    await Promise.all([first, second])
    expect(await rows.keysInOrder(atOnce)).toEqual(['1', '2'])
  }
})

test('the head of a packed row has any name', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      const key = JSON.stringify(['id', 'hash', 'org', 1_795_000_000_000, null, name, 'label'])
      expect(headOfKey(key)).toEqual({ organizationId: 'org', createdAt: 1_795_000_000_000, isDeleted: false, name })
      expect(headOfPolicy(JSON.stringify(['id', 'key', 'issuer', 'org', name, null]))).toEqual({
        organizationId: 'org',
        name,
      })
    }),
    { numRuns: 100 },
  )
  expect(headOfKey('["id","hash","org",1,2,"gone"]').isDeleted).toBe(true)
})
