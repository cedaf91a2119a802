// The root of a tree that grows leaf by leaf, from one hash for each perfect subtree at its right edge: the whole tree is never in memory.
import { composeHash, hashNode } from './merkle.ts'

export type Frontier = {
  /** Adds a leaf, or a whole subtree of 2^level leaves where the size is a multiple of these. */
  add: (hash: Uint8Array, level?: number) => void
  size: () => number
  /** The hashes of the perfect subtrees, the largest first. */
  subtrees: () => readonly Uint8Array[]
  root: () => Uint8Array
}

export function createFrontier(): Frontier {
  /** The largest first. */
  const subtrees: Uint8Array[] = []
  let size = 0
  return {
    add: (added, level = 0) => {
      size += 2 ** level
      let hash = added
      for (let width = size / 2 ** level; width % 2 === 0; width /= 2) hash = hashNode(subtrees.pop() ?? hash, hash)
      subtrees.push(hash)
    },
    size: () => size,
    subtrees: () => [...subtrees],
    root: () => composeHash(subtrees),
  }
}
