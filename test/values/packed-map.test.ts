// A packed map behaves like a map, unpacks a value once when it is used, and keeps nothing of what is only looked over.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createPackedMap } from '../../src/values/packed-map.ts'

type Value = { name: string }

type Row = { text: string; common: { text: string } }

/** A row without a name has the common one. */
const unpack = ({ text, common }: Row): Value => ({ name: (JSON.parse(text) as string[])[1] ?? common.text })
const pack = (rows: [key: string, ...rest: string[]][], common = '') => ({
  text: rows.map((row) => JSON.stringify(row)).join('\n'),
  common: { text: common },
})

function createCounted() {
  const unpacked: string[] = []
  const map = createPackedMap((row) => {
    const value = unpack(row)
    unpacked.push(value.name)
    return value
  })
  map.addPacked(
    pack([
      ['1', 'one'],
      ['2', 'two'],
    ]),
  )
  map.set('3', { name: 'three' })
  return { map, unpacked }
}

test('a value in use is unpacked once and stays the same', () => {
  const { map, unpacked } = createCounted()
  const first = map.get('1')
  expect(first).toEqual({ name: 'one' })
  expect(map.get('1')).toBe(first as Value)
  expect(unpacked).toEqual(['one'])
  expect([...map.values()][0]).toBe(first as Value)
})

test('it is read like a map, in the order of insertion', () => {
  const { map } = createCounted()
  const entries = [
    ['1', { name: 'one' }],
    ['2', { name: 'two' }],
    ['3', { name: 'three' }],
  ] as [string, Value][]
  expect([...map]).toEqual(entries)
  expect([...map.entries()]).toEqual(entries)
  expect([...map.keys()]).toEqual(['1', '2', '3'])
  const seen: unknown[] = []
  map.forEach((value, key) => {
    seen.push([key, value])
  })
  expect(seen).toEqual(entries)
  expect([map.size, map.has('2'), map.has('4'), map.get('4')]).toEqual([3, true, false, undefined])
  expect([map.delete('2'), map.delete('2'), map.size]).toEqual([true, false, 2])
})

test('a text that is looked for unpacks only the values that contain it', () => {
  const { map, unpacked } = createCounted()
  expect([...map.valuesContaining('"tw')].map(({ name }) => name)).toEqual(['two', 'three'])
  expect(unpacked).toEqual(['two'])
})

test('a text that rows have in common is found in each of them', () => {
  const { map, unpacked } = createCounted()
  map.addPacked(pack([['5'], ['6', 'six']], 'both'))
  expect([...map.valuesContaining('both')].map(({ name }) => name)).toEqual(['both', 'six', 'three'])
  map.set('1', { name: 'both' })
  map.get('6')
  map.delete('5')
  expect([...map.valuesContaining('both')].map(({ name }) => name)).toEqual(['six', 'three', 'both'])
  expect(unpacked).toEqual(['both', 'six', 'six'])
})

test('a value that others use or change while somebody looks for a text is found once', () => {
  const { map } = createCounted()
  map.addPacked(pack([['4', 'two again']]))
  const found: string[] = []
  for (const { name } of map.valuesContaining('two')) {
    found.push(name)
    map.get('4')
    map.set('2', { name: 'changed' })
  }
  expect(found).toEqual(['two', 'two again', 'three'])
})

test('a row is found by each of its other values, as it was added', () => {
  const map = createPackedMap(({ text }) => ({ text }), [1, 3])
  map.addPacked(
    pack([
      ['1', 'a', 'x', ''],
      ['2', 'b', 'y', 'earlier'],
    ]),
  )
  expect(['a', 'b', 'earlier', 'x', '', 'ear', '2'].map(map.packedKeyWith)).toEqual([
    ...['1', '2', '2'],
    ...[undefined, undefined, undefined, undefined],
  ])
})

test('thousands of rows are found, and no others', () => {
  const map = createPackedMap(unpack)
  for (let start = 0; start < 5_000; start += 500)
    map.addPacked(pack(Array.from({ length: 500 }, (_, index) => [`key-${start + index}`, String(start + index)])))
  for (let index = 0; index < 5_000; index++)
    expect([map.peek(`key-${index}`)?.name, map.has(`key-${index}x`)]).toEqual([String(index), false])
  expect(map.has('key-5000')).toBe(false)
})

test('any additions, uses, changes and deletions leave what they leave in a map', () => {
  const key = fc.integer({ min: 0, max: 30 }).map(String)
  const act = fc.record({ key, name: fc.string(), how: fc.constantFrom('set', 'delete', 'get', 'peek') })
  fc.assert(
    fc.property(fc.array(fc.string(), { maxLength: 20 }), fc.array(act, { maxLength: 40 }), (names, acts) => {
      const rows = names.map((name, index): [string, string] => [String(index), name])
      const [map, plain] = [createPackedMap(unpack), new Map<string, Value>()]
      for (let start = 0; start < rows.length; start += 7) map.addPacked(pack(rows.slice(start, start + 7)))
      for (const [key, name] of rows) plain.set(key, { name })
      const before = map.keysNow()
      for (const { key, name, how } of acts) {
        if (how === 'set') {
          map.set(key, { name })
          plain.set(key, { name })
          continue
        }
        const [found, expected] =
          how === 'delete' ? [map.delete(key), plain.delete(key)] : [map[how](key), plain.get(key)]
        expect(found).toEqual(expected)
      }
      const byKey = <Value>(entries: Iterable<[string, Value]>) =>
        [...entries].toSorted(([one], [other]) => (one < other ? -1 : 1))
      expect(byKey(map)).toEqual(byKey(plain))
      expect(map.size).toBe(plain.size)
      expect([...map.keysNow()].toSorted()).toEqual([...plain.keys()].toSorted())
      expect([...map.keysNow()]).toEqual([...map.keys()])
      expect(before).toEqual([...names.keys()].map(String))
      for (const key of Array.from({ length: 31 }, (_, index) => String(index)))
        expect([map.has(key), map.get(key)]).toEqual([plain.has(key), plain.get(key)])
    }),
    { numRuns: 100 },
  )
})

test('the keys that somebody reads stay as they are', () => {
  const { map } = createCounted()
  const read = map.keysNow()
  map.get('1')
  map.set('2', { name: 'second' })
  expect(map.keysNow()).toBe(read)
  map.set('4', { name: 'four' })
  map.delete('1')
  expect([read, map.keysNow()]).toEqual([
    ['1', '2', '3'],
    ['2', '3', '4'],
  ])
})
