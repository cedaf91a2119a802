// The root of a tree that grows leaf by leaf, from one hash for each perfect subtree at its right edge: the whole tree is never in memory.
import { composeHash, hashNode } from './merkle.ts'

export type Frontier = {
  add: (leafHash: Uint8Array) => void
  size: () => number
  root: () => Uint8Array
}

export function createFrontier(): Frontier {
  /** The largest first. */
  const subtrees: Uint8Array[] = []
  let size = 0
  return {
    add: (leafHash) => {
      size += 1
      let hash = leafHash
      for (let width = size; width % 2 === 0; width /= 2) hash = hashNode(subtrees.pop() ?? hash, hash)
      subtrees.push(hash)
    },
    size: () => size,
    root: () => composeHash(subtrees),
  }
}
