// A map that keeps values as text until they are used, because most rows of a large installation are not.
import { createKeyOrder, type SortBy } from './key-order.ts'

/** Iterating unpacks a value without keeping it: only `get` does, so that a value in use stays the same. */
export type PackedMap<Value extends object> = ReadonlyMap<string, Value> & {
  set: (key: string, value: Value) => void
  setPacked: (key: string, text: string) => void
  delete: (key: string) => boolean
  /** The values whose text passes a quick check, and all that are not packed. */
  valuesWith: (mayFit: (text: string) => boolean) => Iterable<Value>
  /** A value as it is held: as text while it is packed. */
  held: (key: string) => Value | string | undefined
  /** Unpacks a value without keeping it. */
  peek: (key: string) => Value | undefined
  /** A copy of the keys, in the order that the map was made with, or else of insertion. */
  keysInOrder: () => string[]
}

export function createPackedMap<Value extends object>(
  unpack: (text: string) => Value,
  sortByOf?: (held: Value | string) => SortBy,
): PackedMap<Value> {
  const entries = new Map<string, Value | string>()
  const order = sortByOf && createKeyOrder(entries, sortByOf)
  const toValue = (entry: Value | string) => (typeof entry === 'string' ? unpack(entry) : entry)

  function put(key: string, entry: Value | string): void {
    order?.beforeRemoval(key)
    entries.set(key, entry)
    order?.afterAddition(key)
  }
  function* iterate(): Generator<[string, Value], undefined> {
    for (const [key, entry] of entries) yield [key, toValue(entry)]
  }
  function* values(): Generator<Value, undefined> {
    for (const entry of entries.values()) yield toValue(entry)
  }
  function* valuesWith(mayFit: (text: string) => boolean): Generator<Value, undefined> {
    for (const entry of entries.values())
      if (typeof entry !== 'string') yield entry
      else if (mayFit(entry)) yield unpack(entry)
  }

  const map: PackedMap<Value> = {
    get: (key) => {
      const entry = entries.get(key)
      if (typeof entry !== 'string') return entry
      const value = unpack(entry)
      entries.set(key, value)
      return value
    },
    set: put,
    setPacked: put,
    delete: (key) => {
      order?.beforeRemoval(key)
      return entries.delete(key)
    },
    has: (key) => entries.has(key),
    get size() {
      return entries.size
    },
    keys: () => entries.keys(),
    values,
    valuesWith,
    held: (key) => entries.get(key),
    peek: (key) => {
      const entry = entries.get(key)
      return entry === undefined ? undefined : toValue(entry)
    },
    keysInOrder: () => order?.keys() ?? [...entries.keys()],
    entries: iterate,
    [Symbol.iterator]: iterate,
    forEach: (act) => {
      for (const [key, value] of iterate()) act(value, key, map)
    },
  }
  return map
}
