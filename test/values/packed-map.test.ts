// A packed map behaves like a map, unpacks a value once when it is used, and keeps nothing of what is only looked over.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createPackedMap } from '../../src/values/packed-map.ts'

type Value = { name: string }

const unpack = (text: string): Value => ({ name: String((JSON.parse(text) as string[])[1]) })
const pack = (rows: [key: string, name: string][]) => rows.map((row) => JSON.stringify(row)).join('\n')

function createCounted() {
  const unpacked: string[] = []
  const map = createPackedMap((text) => {
    const value = unpack(text)
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

test('a quick check of the text unpacks only the values that pass it', () => {
  const { map, unpacked } = createCounted()
  expect([...map.valuesWith((text) => text.includes('"tw'))].map(({ name }) => name)).toEqual(['two', 'three'])
  expect(unpacked).toEqual(['two'])
})

test('any additions, uses, changes and deletions leave what they leave in a map', async () => {
  const key = fc.integer({ min: 0, max: 30 }).map(String)
  const act = fc.record({ key, name: fc.string(), how: fc.constantFrom('set', 'delete', 'get', 'peek') })
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string(), { maxLength: 20 }),
      fc.array(act, { maxLength: 40 }),
      async (names, acts) => {
        const rows = names.map((name, index): [string, string] => [String(index), name])
        const [map, plain] = [createPackedMap(unpack), new Map<string, Value>()]
        for (let start = 0; start < rows.length; start += 7) map.addPacked(pack(rows.slice(start, start + 7)))
        for (const [key, name] of rows) plain.set(key, { name })
        await map.keysInOrder(() => undefined)
        for (const { key, name, how } of acts) {
          if (how === 'set') {
            map.set(key, { name })
            plain.set(key, { name })
          } else if (how === 'delete') expect(map.delete(key)).toBe(plain.delete(key))
          else expect(map[how](key)).toEqual(plain.get(key))
        }
        const byKey = (entries: Iterable<[string, Value]>) =>
          [...entries].toSorted(([one], [other]) => (one < other ? -1 : 1))
        expect(byKey(map)).toEqual(byKey(plain))
        expect(map.size).toBe(plain.size)
        expect((await map.keysInOrder(() => undefined)).toSorted()).toEqual([...plain.keys()].toSorted())
        for (const key of Array.from({ length: 31 }, (_, index) => String(index)))
          expect([map.has(key), map.get(key)]).toEqual([plain.has(key), plain.get(key)])
      },
    ),
    { numRuns: 100 },
  )
})

test('among many rows, each is found by its key and by its other value', () => {
  const rows = Array.from({ length: 5_000 }, (_, index): [string, string] => [`key-${index}`, `other-${index * 7}`])
  const map = createPackedMap(unpack, { otherPlace: 1 })
  for (let start = 0; start < rows.length; start += 800) map.addPacked(pack(rows.slice(start, start + 800)))
  for (const [key, other] of rows) {
    expect(map.packedKeyWith(other)).toBe(key)
    expect(map.peek(key)).toEqual({ name: other })
  }
  for (const none of ['key-5000', 'key-', 'ey-1', 'other-1', '', 'key-1"']) {
    expect(map.has(none)).toBe(false)
    expect(map.packedKeyWith(none)).toBeUndefined()
  }
})
