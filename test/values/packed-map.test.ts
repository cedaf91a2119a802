// A packed map behaves like a map, unpacks a value once when it is used, and keeps nothing of what is only looked over.
import { expect, test } from 'bun:test'
import { createPackedMap } from '../../src/values/packed-map.ts'

type Value = { name: string }

function createCounted() {
  const unpacked: string[] = []
  const map = createPackedMap<Value>((text) => {
    unpacked.push(text)
    return { name: text }
  })
  map.setPacked('1', 'one')
  map.setPacked('2', 'two')
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
  expect([...map.valuesWith((text) => text.startsWith('tw'))].map(({ name }) => name)).toEqual(['two', 'three'])
  expect(unpacked).toEqual(['two'])
})
