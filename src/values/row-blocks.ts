// Packed rows as they come from the database: many in one text, each a JSON array on a line of its own. A row is found by one of its first
// values, which are texts without escapes. It knows no table.
import { addToHash, createTextIndex, finishHash } from './text-index.ts'

export type RowBlocks = {
  /** Adds the rows of one text. */
  add: (text: string) => void
  /** How many rows there are. They are numbered from 0 in the order in which they were added. */
  size: () => number
  textOf: (row: number) => string
  keyOf: (row: number) => string
  /** Finds the row whose value at one of the indexed places is this text. */
  find: (place: number, text: string) => number | undefined
}

const quote = 34
/** A bracket and a quote. */
const beforeValues = 2
/** A quote, a comma and a quote. */
const betweenValues = 3

type Block = { text: string; first: number; starts: Uint32Array }

/** A row is found by its value at each of the places; the first value is its key. */
export function createRowBlocks(places: readonly number[]): RowBlocks {
  const blocks: Block[] = []
  const placeLast = Math.max(...places)
  const indexes = Array.from({ length: placeLast + 1 }, (_, place) =>
    places.includes(place) ? createTextIndex() : undefined,
  )
  let size = 0

  function blockOf(row: number): Block {
    let [low, high] = [0, blocks.length]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((blocks[middle]?.first ?? 0) <= row) low = middle
      else high = middle
    }
    const block = blocks[low]
    if (block === undefined) throw new RangeError(`There is no row ${row}`)
    return block
  }

  return {
    add: (text) => {
      const first = size
      const starts: number[] = []
      for (let start = 0; start < text.length; ) {
        starts.push(start)
        let at = start + beforeValues - betweenValues
        for (let place = 0; place <= placeLast; place++) {
          let hash = 0
          at += betweenValues
          for (; at < text.length && text.charCodeAt(at) !== quote; at++) hash = addToHash(hash, text.charCodeAt(at))
          indexes[place]?.add(finishHash(hash), size)
        }
        size += 1
        start = endOf(text, '\n', at) + 1
      }
      // One more is the end of the last row.
      blocks.push({ text, first, starts: Uint32Array.from([...starts, text.length + 1]) })
    },
    size: () => size,
    textOf: (row) => {
      const { text, first, starts } = blockOf(row)
      return text.slice(starts[row - first], (starts[row - first + 1] ?? 0) - 1)
    },
    keyOf: (row) => {
      const { text, first, starts } = blockOf(row)
      const start = startOfValue(text, starts[row - first] ?? 0, 0)
      return text.slice(start, endOf(text, '"', start))
    },
    find: (place, wanted) =>
      indexes[place]?.find(wanted, (row) => {
        const { text, first, starts } = blockOf(row)
        const start = startOfValue(text, starts[row - first] ?? 0, place)
        return text.startsWith(wanted, start) && text[start + wanted.length] === '"'
      }),
  }
}

function startOfValue(text: string, rowStart: number, place: number): number {
  let start = rowStart + beforeValues
  for (let passed = 0; passed < place; passed++) start = endOf(text, '"', start) + betweenValues
  return start
}

function endOf(text: string, last: string, start: number): number {
  const end = text.indexOf(last, start)
  return end < 0 ? text.length : end
}
