// The Merkle tree of a log (RFC 9162, section 2.1): hashes, and proofs that an entry is in a tree and that a tree begins
// with another. It knows neither where hashes are stored nor what entries say.
import { hash } from 'node:crypto'

export const hashBytes = 32

/** A perfect subtree: its leaves are those from `index * 2^level` on, `2^level` of them. */
export type Subtree = { level: number; index: number }

/** Includes `from`, excludes `until`. */
type Leaves = { from: number; until: number }

/** The root of a tree without entries. */
export const emptyRoot: Uint8Array = hash('sha256', '', 'buffer')

/** What is hashed is put together in these: to allocate takes longer than to hash. */
const [leaf, node] = [Buffer.alloc(8 * 1024), Buffer.alloc(1 + 2 * hashBytes, 1)]

export function hashLeaf(entry: Uint8Array): Uint8Array {
  const length = 1 + entry.length
  const prefixed = length > leaf.length ? Buffer.alloc(length) : leaf
  prefixed.set(entry, 1)
  return hash('sha256', prefixed.subarray(0, length), 'buffer')
}

/** The same for an entry that is a text. */
export function hashLeafText(text: string): Uint8Array {
  // A character takes at most three bytes.
  if (1 + 3 * text.length > leaf.length) return hashLeaf(Buffer.from(text))
  return hash('sha256', leaf.subarray(0, 1 + leaf.write(text, 1)), 'buffer')
}

export function hashNode(left: Uint8Array, right: Uint8Array): Uint8Array {
  node.set(left, 1)
  node.set(right, 1 + hashBytes)
  return hash('sha256', node, 'buffer')
}

/** The largest power of two below a number of leaves, at which a tree of that size splits. */
function splitOf(leaves: number): number {
  let split = 1
  while (split * 2 < leaves) split *= 2
  return split
}

/** The perfect subtrees that make up a range, the largest first. `from` must be a multiple of the size of the first. */
function subtreesOf({ from, until }: Leaves): Subtree[] {
  const subtrees: Subtree[] = []
  for (let start = from; start < until; ) {
    let [level, width] = [0, 1]
    while (width * 2 <= until - start) [level, width] = [level + 1, width * 2]
    subtrees.push({ level, index: start / width })
    start += width
  }
  return subtrees
}

/** A part of a proof: the hash of a range of leaves, composed of perfect subtrees. */
export type ProofPart = Subtree[]

/** The hash of a range from the hashes of its subtrees, in their order. */
export function composeHash(subtrees: readonly Uint8Array[]): Uint8Array {
  return subtrees.length === 0 ? emptyRoot : subtrees.reduceRight((right, left) => hashNode(left, right))
}

/** The hash of a perfect subtree from those of its subtrees, which are a power of two, all of one level. */
export function perfectHash(hashes: readonly Uint8Array[]): Uint8Array {
  let level = hashes
  while (level.length > 1)
    level = Array.from({ length: level.length / 2 }, (_, index) =>
      hashNode(level[2 * index] ?? emptyRoot, level[2 * index + 1] ?? emptyRoot),
    )
  return level[0] ?? emptyRoot
}

/** What the root of a tree is composed of. */
export function rootParts(size: number): ProofPart {
  return subtreesOf({ from: 0, until: size })
}

/**
 * The parts of a proof that the entry at `index` is in a tree of `size` entries, from its sibling up.
 * @throws RangeError if there is no matching entry
 */
export function inclusionParts(index: number, size: number): ProofPart[] {
  if (!(index >= 0 && index < size)) throw new RangeError(`A tree of ${size} entries has no entry ${index}`)
  const parts: ProofPart[] = []
  for (let [from, until] = [0, size]; until - from > 1; ) {
    const middle = from + splitOf(until - from)
    const isLeft = index < middle
    parts.push(subtreesOf(isLeft ? { from: middle, until } : { from, until: middle }))
    ;[from, until] = isLeft ? [from, middle] : [middle, until]
  }
  return parts.reverse()
}

/**
 * The parts of a proof that the tree of `newSize` entries begins with the tree of `oldSize` entries.
 * @throws RangeError unless `oldSize` is at most `newSize`
 */
export function consistencyParts(oldSize: number, newSize: number): ProofPart[] {
  if (!(oldSize >= 0 && oldSize <= newSize)) throw new RangeError(`A tree of ${newSize} entries has no ${oldSize}`)
  if (oldSize === 0) return []
  const parts: ProofPart[] = []
  let [from, until, isWhole] = [0, newSize, true]
  while (oldSize < until) {
    const middle = from + splitOf(until - from)
    const isLeft = oldSize <= middle
    parts.push(subtreesOf(isLeft ? { from: middle, until } : { from, until: middle }))
    if (isLeft) until = middle
    else [from, isWhole] = [middle, false]
  }
  // The old tree itself needs no hash: who checks the proof has its root.
  if (!isWhole) parts.push(subtreesOf({ from, until }))
  return parts.reverse()
}

export type Inclusion = { index: number; size: number; leafHash: Uint8Array; root: Uint8Array; proof: Uint8Array[] }

/** Reports whether a proof shows that an entry is in a tree (RFC 9162, section 2.1.3.2). */
export function isIncluded({ index, size, leafHash, root, proof }: Inclusion): boolean {
  if (!isCount(index) || !isCount(size) || index >= size || leafHash.length !== hashBytes) return false
  let [node, last, computed] = [index, size - 1, leafHash]
  for (const sibling of proof) {
    if (last === 0) return false
    if (node % 2 === 1 || node === last) {
      computed = hashNode(sibling, computed)
      if (node % 2 === 0) [node, last] = riseToRight(node, last)
    } else computed = hashNode(computed, sibling)
    node = half(node)
    last = half(last)
  }
  return last === 0 && isSameHash(computed, root)
}

type TreeHead = { size: number; root: Uint8Array }

/** Reports whether a proof shows that the newer tree begins with the older one (RFC 9162, section 2.1.4.2). */
export function isConsistent(older: TreeHead, newer: TreeHead, proof: readonly Uint8Array[]): boolean {
  if (!isCount(older.size) || !isCount(newer.size) || older.size > newer.size) return false
  // Every tree begins with the empty one, so a proof of that would prove nothing.
  if (older.size === 0 && (newer.size > 0 || !isSameHash(older.root, emptyRoot))) return false
  if (older.size === newer.size) return proof.length === 0 && isSameHash(older.root, newer.root)
  const path = isPowerOfTwo(older.size) ? [older.root, ...proof] : [...proof]
  const first = path.shift()
  if (first === undefined) return false
  let [node, last] = [older.size - 1, newer.size - 1]
  while (node % 2 === 1) [node, last] = [half(node), half(last)]
  let [oldRoot, newRoot] = [first, first]
  for (const sibling of path) {
    if (last === 0) return false
    if (node % 2 === 1 || node === last) {
      oldRoot = hashNode(sibling, oldRoot)
      newRoot = hashNode(sibling, newRoot)
      if (node % 2 === 0) [node, last] = riseToRight(node, last)
    } else newRoot = hashNode(newRoot, sibling)
    node = half(node)
    last = half(last)
  }
  return last === 0 && isSameHash(oldRoot, older.root) && isSameHash(newRoot, newer.root)
}

/** Rises from a last node without a right sibling to the first ancestor that is one, or to the root. */
function riseToRight(node: number, last: number): [node: number, last: number] {
  let [risen, end] = [node, last]
  while (risen % 2 === 0 && risen !== 0) [risen, end] = [half(risen), half(end)]
  return [risen, end]
}

// Not shifts: those are limited to 32 bits.
const half = (value: number) => Math.floor(value / 2)
const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0
const isPowerOfTwo = (value: number) => 2 ** Math.round(Math.log2(value)) === value

export function isSameHash(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.from(one.buffer, one.byteOffset, one.length).equals(other)
}
