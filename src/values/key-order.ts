// The keys of a map in the order of their entries, kept up to date as entries change. Nothing is held before it is first asked for, and then
// only the keys.

/** What an entry is sorted by: a number, then a text, then its key. */
export type SortBy = readonly [number, string]

/** Waits between the steps of long work, so that other work comes between them. */
export type Wait = () => Promise<unknown> | undefined

export type KeyOrder = {
  /** They stay as they are when entries change, so that a reader who goes slice by slice misses nothing. */
  keys: (wait: Wait) => Promise<readonly string[]>
  /** Changes the entry of a key. */
  change: (key: string, act: () => void) => void
  /** Call it after other changes: the keys are sorted when they are next asked for. */
  forget: () => void
}

export type Held<Entry> = { held: (key: string) => Entry | undefined; entries: () => Iterable<[string, Entry]> }

/** Where changes come faster than this, the last attempt does not wait. */
const attemptsMax = 3

/** Without `sortByOf`, the order is that of insertion. */
export function createKeyOrder<Entry>(map: Held<Entry>, sortByOf?: (entry: Entry) => SortBy): KeyOrder {
  let order: string[] | undefined
  /** Somebody reads the order, so the next change makes a copy. A copy for each reader would take longer than most pages. */
  let isRead = false
  let changes = 0

  const positionOf = (keys: readonly string[], key: string, sortBy: (entry: Entry) => SortBy): number => {
    const wanted = map.held(key)
    if (wanted === undefined) return -1
    const wantedBy = sortBy(wanted)
    let [low, high] = [0, keys.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const other = keys[middle] ?? ''
      const entry = map.held(other)
      if (entry !== undefined && compare(sortBy(entry), other, wantedBy, key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Sets the order, in the same turn in which the last entry is read, unless an entry changed meanwhile. */
  async function collect(wait: Wait): Promise<void> {
    const before = changes
    const all: Sortable[] = []
    for (const [key, entry] of map.entries()) {
      all.push({ key, sortBy: sortByOf?.(entry) ?? unsorted })
      const turn = wait()
      if (turn !== undefined) await turn
      if (changes !== before || order !== undefined) return
    }
    order = sortByOf === undefined ? all.map(({ key }) => key) : sortKeys(all)
  }

  return {
    keys: async (wait) => {
      for (let attempt = 1; order === undefined; attempt++) {
        const collecting = collect(attempt < attemptsMax ? wait : () => undefined)
        // What is set already needs no wait, in which it could be forgotten.
        if (order === undefined) await collecting
      }
      isRead = true
      return order
    },
    change: (key, act) => {
      changes += 1
      if (order === undefined) return act()
      if (isRead) order = order.slice()
      isRead = false
      const was = map.held(key) !== undefined
      if (sortByOf !== undefined && was) {
        const position = positionOf(order, key, sortByOf)
        if (order[position] === key) order.splice(position, 1)
      }
      act()
      const is = map.held(key) !== undefined
      if (sortByOf !== undefined && is) order.splice(positionOf(order, key, sortByOf), 0, key)
      // A value that is replaced keeps its place.
      else if (is && !was) order.push(key)
      else if (was && !is && sortByOf === undefined) order = undefined
    },
    forget: () => {
      changes += 1
      order = undefined
    },
  }
}

type Sortable = { key: string; sortBy: SortBy }
const unsorted: SortBy = [0, '']

function sortKeys(all: Sortable[]): string[] {
  return all.sort((one, other) => compare(one.sortBy, one.key, other.sortBy, other.key)).map(({ key }) => key)
}

function compare([number, text]: SortBy, key: string, [otherNumber, otherText]: SortBy, otherKey: string): number {
  if (number !== otherNumber) return number - otherNumber
  if (text !== otherText) return text < otherText ? -1 : 1
  if (key === otherKey) return 0
  return key < otherKey ? -1 : 1
}
