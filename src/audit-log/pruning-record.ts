// What the log says of entries that were pruned: which ones, and which archive has their rows. Rules only.

import { checkShape, type } from '../values/shape.ts'
import { tileWidth } from './transparency/tiles.ts'

/** Entries from `first` to below `end`: whole tiles. `last_row_id`: the exchange of the last one. */
export type PrunedRange = { first: number; end: number; last_row_id: number }

export type PruningBody = { file: string; sha256: string; ranges: PrunedRange[] }

const edge = type(`number.integer >= 0 & number % ${tileWidth}`)
const bodyShape = type({
  file: 'string',
  sha256: /^[0-9a-f]{64}$/,
  ranges: type({ first: edge, end: edge, last_row_id: 'number.integer >= 0' }).array(),
})

/** @throws Fault `invalid`, or a SyntaxError, for a text that is not the body of such a record */
export function parsePruning(body: string): PruningBody {
  return checkShape(bodyShape, JSON.parse(body))
}

/** Of ranges in their order, the one with a leaf. */
export function rangeWith<Range extends PrunedRange>(ranges: readonly Range[], leaf: number): Range | undefined {
  let [low, high] = [0, ranges.length]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if ((ranges[middle]?.end ?? 0) <= leaf) low = middle + 1
    else high = middle
  }
  const found = ranges[low]
  return found !== undefined && found.first <= leaf ? found : undefined
}
