// Collects the hashes of one proof while the leaves of a tree come by: memory for the path of one leaf, not for the tree.
import { createFrontier, type Frontier } from './frontier.ts'
import { inclusionParts } from './merkle.ts'

export type PathCollector = {
  /** Takes the next leaf. `isWanted`: the proof is of this one. */
  add: (leafHash: Uint8Array, isWanted: boolean) => void
  /** The place of the wanted leaf and its proof; undefined unless it and all other leaves came by. */
  path: () => { index: number; hashes: Uint8Array[] } | undefined
}

/** For a tree of `size` leaves. */
export function createPathCollector(size: number): PathCollector {
  const before = createFrontier()
  /** The hashes that the leaf is combined with, from its sibling up. */
  let siblings: (() => Uint8Array)[] = []
  /** Those of ranges of leaves after it, in their order. */
  const after: { until: number; tree: Frontier }[] = []
  let [index, added] = [-1, 0]

  function begin(): void {
    index = added
    // Leaves before it are in perfect subtrees, and each of these is a sibling.
    const left = before.subtrees().toReversed()
    siblings = inclusionParts(index, size).map((part) => {
      const { level, index: last } = part.at(-1) ?? { level: 0, index: 0 }
      const until = (last + 1) * 2 ** level
      const hash = until <= index ? left.shift() : undefined
      if (hash !== undefined) return () => hash
      const tree = createFrontier()
      after.push({ until, tree })
      return tree.root
    })
  }

  return {
    add: (leafHash, isWanted) => {
      if (index < 0 && isWanted && added < size) begin()
      else if (index < 0) before.add(leafHash)
      else after.find(({ until }) => added < until)?.tree.add(leafHash)
      added += 1
    },
    path: () => (index < 0 || added !== size ? undefined : { index, hashes: siblings.map((hash) => hash()) }),
  }
}
