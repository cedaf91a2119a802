// A tree in memory with the hashes of all its perfect subtrees, for many proofs from one tree. 64 bytes for each leaf.
import { composeHash, hashBytes, hashNode, inclusionParts } from './merkle.ts'

export type StoredTree = {
  add: (leafHash: Uint8Array) => void
  size: () => number
  /** The hashes of a proof that the tree has the leaf at an index. @throws RangeError if there is no matching leaf */
  proofOf: (index: number) => Uint8Array[]
}

export function createStoredTree(): StoredTree {
  /** By level: the hashes of the perfect subtrees, one behind the other. */
  const levels: { hashes: Buffer; count: number }[] = []

  function push(level: number, hash: Uint8Array): void {
    const known = levels[level] ?? { hashes: Buffer.alloc(hashBytes * 16), count: 0 }
    levels[level] = known
    if ((known.count + 1) * hashBytes > known.hashes.length)
      known.hashes = Buffer.concat([known.hashes, Buffer.alloc(known.hashes.length)])
    known.hashes.set(hash, known.count * hashBytes)
    known.count += 1
    if (known.count % 2 === 0) push(level + 1, hashNode(hashAt(level, known.count - 2), hash))
  }

  function hashAt(level: number, index: number): Uint8Array {
    return levels[level]?.hashes.subarray(index * hashBytes, (index + 1) * hashBytes) ?? Buffer.alloc(0)
  }

  const size = () => levels[0]?.count ?? 0
  return {
    add: (leafHash) => push(0, leafHash),
    size,
    proofOf: (index) =>
      inclusionParts(index, size()).map((part) => composeHash(part.map(({ level, index }) => hashAt(level, index)))),
  }
}
