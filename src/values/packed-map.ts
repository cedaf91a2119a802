// A map that keeps values packed, many in one text, until they are used, because most rows of a large installation are not.
import { createKeyOrder, type SortBy, type Wait } from './key-order.ts'
import { createRowBlocks } from './row-blocks.ts'

/** Iterating unpacks a value without keeping it: only `get` does, so that a value in use stays the same. */
export type PackedMap<Value extends object> = ReadonlyMap<string, Value> & {
  set: (key: string, value: Value) => void
  /** Adds packed rows whose keys the map does not have (see row-blocks.ts). */
  addPacked: (rows: string) => void
  delete: (key: string) => boolean
  /** The values whose text passes a quick check, and all that are not packed. */
  valuesWith: (mayFit: (text: string) => boolean) => Iterable<Value>
  /** A value as it is held: as text while it is packed. */
  held: (key: string) => Value | string | undefined
  /** Unpacks a value without keeping it. */
  peek: (key: string) => Value | undefined
  /** The keys in the order that the map was made with, or else of insertion (see key-order.ts). */
  keysInOrder: (wait: Wait) => Promise<readonly string[]>
  /** The key of a row that was added packed, by its value at the other place of the map. It may be deleted since. */
  packedKeyWith: (other: string) => string | undefined
}

export type PackedMapOptions<Value> = {
  sortByOf?: (held: Value | string) => SortBy
  /** The place of another value by which a packed row is found. */
  otherPlace?: number
}

export function createPackedMap<Value extends object>(
  unpack: (text: string) => Value,
  { sortByOf, otherPlace }: PackedMapOptions<Value> = {},
): PackedMap<Value> {
  const { rows, values, take, held, entries, size } = createHoldings<Value>(otherPlace)
  const order = createKeyOrder({ held, entries }, sortByOf)
  const toValue = (entry: Value | string) => (typeof entry === 'string' ? unpack(entry) : entry)

  function* iterate(): Generator<[string, Value], undefined> {
    for (const [key, entry] of entries()) yield [key, toValue(entry)]
  }
  function* iterateValues(): Generator<Value, undefined> {
    for (const [, entry] of entries()) yield toValue(entry)
  }
  function* iterateKeys(): Generator<string, undefined> {
    for (const [key] of entries()) yield key
  }
  function* valuesWith(mayFit: (text: string) => boolean): Generator<Value, undefined> {
    for (const [, entry] of entries()) if (typeof entry !== 'string' || mayFit(entry)) yield toValue(entry)
  }

  const map: PackedMap<Value> = {
    get: (key) => {
      const entry = values.get(key) ?? held(key)
      if (typeof entry !== 'string') return entry
      const value = unpack(entry)
      take(key)
      values.set(key, value)
      return value
    },
    set: (key, value) => {
      order.change(key, () => {
        take(key)
        values.set(key, value)
      })
    },
    addPacked: (text) => {
      rows.add(text)
      order.forget()
    },
    delete: (key) => {
      let wasHeld = false
      order.change(key, () => {
        const wasPacked = take(key)
        wasHeld = values.delete(key) || wasPacked
      })
      return wasHeld
    },
    has: (key) => held(key) !== undefined,
    get size() {
      return size()
    },
    keys: iterateKeys,
    values: iterateValues,
    valuesWith,
    held,
    peek: (key) => {
      const entry = held(key)
      return entry === undefined ? undefined : toValue(entry)
    },
    keysInOrder: order.keys,
    packedKeyWith: (other) => {
      const row = otherPlace === undefined ? undefined : rows.find(otherPlace, other)
      return row === undefined ? undefined : rows.keyOf(row)
    },
    entries: iterate,
    [Symbol.iterator]: iterate,
    forEach: (act) => {
      for (const [key, value] of iterate()) act(value, key, map)
    },
  }
  return map
}

/** Packed rows, and the values that took the place of some of them or came later. */
function createHoldings<Value extends object>(otherPlace: number | undefined) {
  const rows = createRowBlocks(otherPlace === undefined ? [0] : [0, otherPlace])
  const values = new Map<string, Value>()
  /** The rows whose values were used, replaced or deleted. */
  const taken = new Set<number>()

  function held(key: string): Value | string | undefined {
    const value = values.get(key)
    if (value !== undefined) return value
    const row = rows.find(0, key)
    return row === undefined || taken.has(row) ? undefined : rows.textOf(row)
  }
  /** Returns whether the value was packed until now. */
  function take(key: string): boolean {
    const row = rows.find(0, key)
    if (row === undefined || taken.has(row)) return false
    taken.add(row)
    return true
  }
  /** In the order of insertion: a value that is used or replaced keeps its place. */
  function* entries(): Generator<[string, Value | string], undefined> {
    for (let row = 0; row < rows.size(); row++) {
      const key = rows.keyOf(row)
      const entry = taken.has(row) ? values.get(key) : rows.textOf(row)
      if (entry !== undefined) yield [key, entry]
    }
    for (const entry of values) if (rows.find(0, entry[0]) === undefined) yield entry
  }
  return { rows, values, take, held, entries, size: () => rows.size() - taken.size + values.size }
}
