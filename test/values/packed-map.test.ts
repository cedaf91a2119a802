// A packed map behaves like a map, unpacks a value once when it is used, and keeps nothing of what is only looked over.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createPackedMap } from '../../src/values/packed-map.ts'

type Value = { name: string }

const unpack = (text: string): Value => ({ name: String((JSON.parse(text) as string[])[1]) })

function createCounted() {
  const unpacked: string[] = []
  const map = createPackedMap((text) => {
    const value = unpack(text)
    unpacked.push(value.name)
    return value
  })
  map.addPacked('1', '["1","one"]')
  map.addPacked('2', '["2","two"]')
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

test('any additions, uses, changes and deletions leave what they leave in a map', () => {
  const key = fc.integer({ min: 0, max: 30 }).map(String)
  const act = fc.record({ key, name: fc.string(), how: fc.constantFrom('set', 'delete', 'get', 'peek') })
  fc.assert(
    fc.property(fc.array(fc.string(), { maxLength: 20 }), fc.array(act, { maxLength: 40 }), (names, acts) => {
      const [map, plain] = [createPackedMap(unpack), new Map<string, Value>()]
      for (const [index, name] of names.entries()) {
        map.addPacked(String(index), JSON.stringify([String(index), name]))
        plain.set(String(index), { name })
      }
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
      expect([...map]).toEqual([...plain])
      expect(map.size).toBe(plain.size)
      expect(map.keysNow()).toEqual([...plain.keys()])
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
