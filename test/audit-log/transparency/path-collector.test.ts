// The way of one leaf, collected as the leaves come by, against the proof from the whole tree.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { hashLeaf } from '../../../src/audit-log/transparency/merkle.ts'
import { createPathCollector } from '../../../src/audit-log/transparency/path-collector.ts'
import { createStoredTree } from '../../../src/audit-log/transparency/stored-tree.ts'

const leaves = Array.from({ length: 300 }, (_, index) => hashLeaf(Buffer.from(`leaf ${index}`)))
const pathOf = (size: number, index: number, given = leaves.slice(0, size)) => {
  const collector = createPathCollector(size)
  for (const [each, leaf] of given.entries()) collector.add(leaf, each === index)
  return collector.path()
}

test('it is the proof of the leaf, wherever that is', () => {
  const places = fc.integer({ min: 1, max: 300 }).chain((size) => fc.tuple(fc.constant(size), fc.nat(size - 1)))
  fc.assert(
    fc.property(places, ([size, index]) => {
      const tree = createStoredTree()
      for (const leaf of leaves.slice(0, size)) tree.add(leaf)
      expect(pathOf(size, index)).toEqual({ index, hashes: tree.proofOf(index) })
    }),
  )
})

test.each<[string, ReturnType<typeof pathOf>]>([
  ['a leaf less', pathOf(7, 3, leaves.slice(0, 6))],
  ['a leaf more', pathOf(7, 3, leaves.slice(0, 8))],
  ['the wanted leaf missing', pathOf(7, 9)],
  ['the wanted leaf beyond the end', pathOf(7, 7, leaves.slice(0, 8))],
])('with %s there is none', (_, path) => {
  expect(path).toBeUndefined()
})
