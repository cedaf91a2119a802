// The tree against the cases of transparency-dev/merkle, and against the definition in RFC 9162 computed the slow way.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  composeHash,
  consistencyParts,
  emptyRoot,
  hashLeaf,
  hashNode,
  inclusionParts,
  isConsistent,
  isIncluded,
  rootParts,
  type Subtree,
} from '../../../src/audit-log/transparency/merkle.ts'
import cases from '../../fixtures/transparency/merkle-cases.json'

const bytes = (text: string) => Buffer.from(text, 'base64')
const proofOf = ({ proof }: { proof: string[] | null }) => (proof ?? []).map(bytes)

/** As RFC 9162 defines it, section 2.1.1. */
function treeHash(leaves: Uint8Array[]): Uint8Array {
  const [only] = leaves
  if (only === undefined) return emptyRoot
  if (leaves.length === 1) return only
  let split = 1
  while (split * 2 < leaves.length) split *= 2
  return hashNode(treeHash(leaves.slice(0, split)), treeHash(leaves.slice(split)))
}

const leavesOf = (size: number) => Array.from({ length: size }, (_, index) => hashLeaf(Buffer.from(`entry ${index}`)))
const hashWithin =
  (leaves: Uint8Array[]) =>
  ({ level, index }: Subtree) =>
    treeHash(leaves.slice(index * 2 ** level, (index + 1) * 2 ** level))
const compose = (leaves: Uint8Array[], parts: Subtree[][]) =>
  parts.map((part) => composeHash(part.map(hashWithin(leaves))))

describe('outside cases', () => {
  test.each(cases.inclusion)('inclusion of $leafIdx in $treeSize: $desc', (given) => {
    const { leafIdx: index, treeSize: size, wantErr } = given
    const inclusion = { index, size, leafHash: bytes(given.leafHash), root: bytes(given.root), proof: proofOf(given) }
    expect(isIncluded(inclusion)).toBe(!wantErr)
  })

  test.each(cases.consistency)('consistency of $size1 with $size2: $desc', (given) => {
    const older = { size: given.size1, root: bytes(given.root1) }
    const newer = { size: given.size2, root: bytes(given.root2) }
    expect(isConsistent(older, newer, proofOf(given))).toBe(!given.wantErr)
  })
})

const sizes = fc.integer({ min: 1, max: 70 })
const pairs = fc.tuple(sizes, fc.nat()).map(([size, one]) => [one % size, size] as const)

describe('proofs that we make', () => {
  test('roots are those of the definition', () => {
    for (let size = 0; size < 70; size += 1) {
      const leaves = leavesOf(size)
      expect(composeHash(rootParts(size).map(hashWithin(leaves)))).toEqual(treeHash(leaves))
    }
  })

  test('show each entry in its tree, and no other', () => {
    fc.assert(
      fc.property(pairs, fc.nat(), ([index, size], other) => {
        const leaves = leavesOf(size)
        const proof = compose(leaves, inclusionParts(index, size))
        const right = { index, size, leafHash: leaves[index] ?? emptyRoot, root: treeHash(leaves), proof }
        expect(isIncluded(right)).toBe(true)
        expect(isIncluded({ ...right, index: other % size })).toBe(other % size === index)
        expect(isIncluded({ ...right, leafHash: hashLeaf(Buffer.from('other')) })).toBe(false)
        expect(isIncluded({ ...right, root: treeHash(leavesOf(size + 1)) })).toBe(false)
        expect(isIncluded({ ...right, proof: [...proof, emptyRoot] })).toBe(false)
        expect(proof.length > 0 && isIncluded({ ...right, proof: proof.slice(1) })).toBe(false)
      }),
    )
  })

  test('show that a tree grew from an older one, and from no other', () => {
    fc.assert(
      fc.property(pairs, ([less, size]) => {
        const leaves = leavesOf(size)
        const [oldSize, newer] = [less + 1, { size, root: treeHash(leaves) }]
        const older = { size: oldSize, root: treeHash(leaves.slice(0, oldSize)) }
        const proof = compose(leaves, consistencyParts(oldSize, size))
        expect(isConsistent(older, newer, proof)).toBe(true)
        const changed = [...leaves.slice(0, oldSize - 1), emptyRoot]
        expect(isConsistent({ ...older, root: treeHash(changed) }, newer, proof)).toBe(false)
        expect(isConsistent(older, { size, root: emptyRoot }, proof)).toBe(false)
        expect(isConsistent(older, newer, [...proof, emptyRoot])).toBe(false)
      }),
    )
  })

  test('are not made of entries that a tree does not have', () => {
    expect(() => inclusionParts(3, 3)).toThrow(RangeError)
    expect(() => consistencyParts(4, 3)).toThrow(RangeError)
  })

  test('are short for a tree of a million million entries', () => {
    const parts = inclusionParts(123_456_789_012, 1_000_000_000_000)
    expect(parts.length).toBe(40)
    expect(parts.flat().length).toBeLessThan(80)
  })
})
