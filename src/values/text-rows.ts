// Rows as text, many in one, each a JSON array on its own line. A row is found by one of its first values, which are texts without
// escapes: by a hash of it and the number of its row, since a map of the values themselves takes ten times the memory. It knows no table.

/** What the rows of a text have in common is not repeated in each. */
export type Common = { readonly text: string }

/** One row, or many. */
export type RowText<Shared extends Common = Common> = { text: string; common: Shared }

export function isPacked<Shared extends Common>(held: object | RowText<Shared>): held is RowText<Shared> {
  return 'common' in held
}

export type TextRows<Shared extends Common> = {
  /** Adds the rows of one text. Rows are numbered from 0, in the order in which they are added. */
  add: (rows: RowText<Shared>) => void
  size: () => number
  rowAt: (row: number) => RowText<Shared>
  /** The first value of a row, which is its key. */
  keyAt: (row: number) => string
  /** Finds the row whose value at one of the indexed places is this text. */
  find: (place: number, value: string) => number | undefined
  /** Whether a row has the text, or the values in common do. */
  contains: (row: number, text: string) => boolean
  /** The rows that contain the text. */
  containing: (text: string) => Iterable<number>
}

const quote = 34
/** A bracket and a quote. */
const beforeValues = 2
/** A quote, a comma and a quote. */
const betweenValues = 3

/** A row is found by its value at each of the places, unless that is empty. */
export function createTextRows<Shared extends Common>(places: readonly number[]): TextRows<Shared> {
  const blocks = createBlocks<Shared>()
  const placeLast = Math.max(...places)
  const indexes = Array.from({ length: placeLast + 1 }, (_, place) =>
    places.includes(place) ? createIndex() : undefined,
  )

  /** Adds a row to the indexes. Returns where its last indexed value ends. */
  function index(text: string, rowStart: number, row: number): number {
    let at = rowStart + beforeValues - betweenValues
    for (let place = 0; place <= placeLast; place++) {
      const start = at + betweenValues
      let hash = 0
      for (at = start; at < text.length; at++) {
        const character = text.charCodeAt(at)
        if (character === quote) break
        hash = addToHash(hash, character)
      }
      if (at > start) indexes[place]?.add(finishHash(hash), row)
    }
    return at
  }

  return {
    ...blocks,
    add: ({ text, common }) => {
      const first = blocks.size()
      const starts: number[] = []
      for (let start = 0; start < text.length; ) {
        const end = index(text, start, first + starts.length)
        starts.push(start)
        start = endOf(text, '\n', end) + 1
      }
      blocks.add({ text, common, first, starts: Uint32Array.from([...starts, text.length + 1]) })
    },
    find: (place, value) =>
      indexes[place]?.find(hashText(value), (row) => {
        const { text, start } = blocks.placeOf(row)
        return text.startsWith(`${value}"`, startOfValue(text, place, start))
      }),
  }
}

/** `starts` has where each row begins, and one more. */
type Block<Shared> = { text: string; common: Shared; first: number; starts: Uint32Array }

/** The texts, and where in them each row is. */
function createBlocks<Shared extends Common>() {
  const blocks: Block<Shared>[] = []

  function placeOf(row: number): { text: string; common: Shared; start: number; end: number } {
    let [low, high] = [0, blocks.length]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((blocks[middle]?.first ?? 0) <= row) low = middle
      else high = middle
    }
    const block = blocks[low]
    if (block === undefined) throw new RangeError(`There is no row ${row}`)
    const { text, common, first, starts } = block
    return { text, common, start: starts[row - first] ?? 0, end: (starts[row - first + 1] ?? 0) - 1 }
  }
  function rowAt(row: number): RowText<Shared> {
    const { text, common, start, end } = placeOf(row)
    return { text: text.slice(start, end), common }
  }
  function* containing(wanted: string): Generator<number, undefined> {
    for (const { text, common, first, starts } of blocks) {
      const isCommon = common.text.includes(wanted)
      for (let row = 0; row < starts.length - 1; row++) {
        if (!isCommon) {
          const at = text.indexOf(wanted, starts[row])
          if (at < 0) break
          while (at >= (starts[row + 1] ?? 0)) row++
        }
        yield first + row
      }
    }
  }

  return {
    add: (block: Block<Shared>) => void blocks.push(block),
    size: () => {
      const last = blocks.at(-1)
      return last === undefined ? 0 : last.first + last.starts.length - 1
    },
    placeOf,
    rowAt,
    keyAt: (row: number) => {
      const { text, start } = placeOf(row)
      return text.slice(start + beforeValues, endOf(text, '"', start + beforeValues))
    },
    contains: (row: number, wanted: string) => {
      const { text, common } = rowAt(row)
      return common.text.includes(wanted) || text.includes(wanted)
    },
    containing,
  }
}

function startOfValue(text: string, place: number, rowStart: number): number {
  let start = rowStart + beforeValues
  for (let passed = 0; passed < place; passed++) start = endOf(text, '"', start) + betweenValues
  return start
}

function endOf(text: string, last: string, start: number): number {
  const end = text.indexOf(last, start)
  return end < 0 ? text.length : end
}

type Index = {
  add: (hash: number, row: number) => void
  /** Returns the row that was added with the hash. `isIt` compares: others can have the same one. */
  find: (hash: number, isIt: (row: number) => boolean) => number | undefined
}

const slotsFirst = 1_024

function createIndex(): Index {
  // Each slot is a hash and the number of a row plus one; zero is a free slot. At most three quarters of the slots are in use.
  let slots = new Int32Array(2 * slotsFirst)
  let used = 0

  function put(hash: number, stored: number): void {
    const mask = slots.length - 2
    let at = (hash << 1) & mask
    while (slots[at + 1] !== 0) at = (at + 2) & mask
    slots[at] = hash
    slots[at + 1] = stored
  }
  function grow(): void {
    const before = slots
    slots = new Int32Array(2 * before.length)
    for (let at = 0; at < before.length; at += 2) {
      const stored = before[at + 1] ?? 0
      if (stored !== 0) put(before[at] ?? 0, stored)
    }
  }

  return {
    add: (hash, row) => {
      used += 1
      if (used * 8 > slots.length * 3) grow()
      put(hash, row + 1)
    },
    find: (hash, isIt) => {
      const mask = slots.length - 2
      for (let at = (hash << 1) & mask; ; at = (at + 2) & mask) {
        const stored = slots[at + 1] ?? 0
        if (stored === 0) return undefined
        if (slots[at] === hash && isIt(stored - 1)) return stored - 1
      }
    },
  }
}

function addToHash(hash: number, character: number): number {
  return (Math.imul(hash, 31) + character) | 0
}

/** Spreads the hash over all bits, of which an index uses the lowest. */
function finishHash(hash: number): number {
  return Math.imul(hash ^ (hash >>> 15), 0x85ebca6b)
}

function hashText(text: string): number {
  let hash = 0
  for (let at = 0; at < text.length; at++) hash = addToHash(hash, text.charCodeAt(at))
  return finishHash(hash)
}
