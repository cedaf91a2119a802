// The keys of a map in the order of their entries, kept up to date as entries change. Nothing is held before it is first asked for, and then
// only the keys.

/** What an entry is sorted by: a number, then a text, then its key. */
export type SortBy = readonly [number, string]

export type KeyOrder = {
  /** A copy, so that a reader who goes slice by slice misses nothing when entries change meanwhile. */
  keys: () => string[]
  /** Call it while the map still has the entry. */
  beforeRemoval: (key: string) => void
  /** Call it once the map has the entry. */
  afterAddition: (key: string) => void
  /** Call it after other changes: the keys are sorted when they are next asked for. */
  forget: () => void
}

export type Held<Entry> = { held: (key: string) => Entry | undefined; entries: () => Iterable<[string, Entry]> }

export function createKeyOrder<Entry>(map: Held<Entry>, sortByOf: (entry: Entry) => SortBy): KeyOrder {
  let order: string[] | undefined

  const positionOf = (keys: readonly string[], key: string): number => {
    const wanted = map.held(key)
    if (wanted === undefined) return -1
    const sortBy = sortByOf(wanted)
    let [low, high] = [0, keys.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const other = keys[middle] ?? ''
      const entry = map.held(other)
      if (entry !== undefined && compare(sortByOf(entry), other, sortBy, key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  return {
    keys: () => {
      order ??= sortKeys(map.entries(), sortByOf)
      return order.slice()
    },
    beforeRemoval: (key) => {
      if (order === undefined) return
      const position = positionOf(order, key)
      if (order[position] === key) order.splice(position, 1)
    },
    afterAddition: (key) => {
      if (order !== undefined) order.splice(positionOf(order, key), 0, key)
    },
    forget: () => {
      order = undefined
    },
  }
}

function sortKeys<Entry>(entries: Iterable<[string, Entry]>, sortByOf: (entry: Entry) => SortBy): string[] {
  const all = [...entries].map(([key, entry]) => ({ key, sortBy: sortByOf(entry) }))
  return all.sort((one, other) => compare(one.sortBy, one.key, other.sortBy, other.key)).map(({ key }) => key)
}

function compare([number, text]: SortBy, key: string, [otherNumber, otherText]: SortBy, otherKey: string): number {
  if (number !== otherNumber) return number - otherNumber
  if (text !== otherText) return text < otherText ? -1 : 1
  if (key === otherKey) return 0
  return key < otherKey ? -1 : 1
}
