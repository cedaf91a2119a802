// A map that keeps values packed, many in one text, until they are used, because most rows of a large installation are not.
import { type Common, createTextRows, isPacked, type RowText } from './text-rows.ts'

/** Iterating unpacks a value without keeping it: only `get` does, so that a value in use stays the same. */
export type PackedMap<Value extends object, Shared extends Common = Common> = ReadonlyMap<string, Value> & {
  set: (key: string, value: Value) => void
  /** Adds packed rows whose keys the map does not have. */
  addPacked: (rows: RowText<Shared>) => void
  delete: (key: string) => boolean
  /** The values whose packed row contains the text, and all that are not packed. */
  valuesContaining: (text: string) => Iterable<Value>
  /** A value as it is held: as a row while it is packed. */
  held: (key: string) => Value | RowText<Shared> | undefined
  /** Unpacks a value without keeping it. */
  peek: (key: string) => Value | undefined
  /** The keys as they are now, in the order of insertion: a reader who goes slice by slice misses nothing. */
  keysNow: () => readonly string[]
  /** The key of the row that was added packed with this value at one of the other places. It may be changed or deleted since. */
  packedKeyWith: (value: string) => string | undefined
}

/** Packed rows are found by their values at the other places too. */
export function createPackedMap<Value extends object, Shared extends Common = Common>(
  unpack: (row: RowText<Shared>) => Value,
  otherPlaces: readonly number[] = [],
): PackedMap<Value, Shared> {
  const { rows, values, packedRow, take, held, keys, size, keyOf } = createHoldings<Value, Shared>(otherPlaces)
  let keysNow: readonly string[] | undefined

  function peek(key: string): Value | undefined {
    const found = held(key)
    return found !== undefined && isPacked(found) ? unpack(found) : found
  }
  function* entries(): Generator<[string, Value], undefined> {
    for (const key of keys()) {
      const value = peek(key)
      if (value !== undefined) yield [key, value]
    }
  }
  function* iterateValues(): Generator<Value, undefined> {
    for (const [, value] of entries()) yield value
  }
  function* valuesContaining(text: string): Generator<Value, undefined> {
    for (const row of rows.containing(text)) {
      const value = peek(rows.keyAt(row))
      if (value !== undefined) yield value
    }
    // What was taken while somebody read slice by slice was yielded above.
    for (const [key, value] of values) {
      const row = rows.find(0, key)
      if (row === undefined || !rows.contains(row, text)) yield value
    }
  }

  const map: PackedMap<Value, Shared> = {
    get: (key) => {
      const used = values.get(key)
      if (used !== undefined) return used
      const value = peek(key)
      if (value !== undefined && take(key)) values.set(key, value)
      return value
    },
    set: (key, value) => {
      if (!map.has(key)) keysNow = undefined
      take(key)
      values.set(key, value)
    },
    addPacked: (text) => {
      keysNow = undefined
      rows.add(text)
    },
    delete: (key) => {
      keysNow = undefined
      const wasPacked = take(key)
      return values.delete(key) || wasPacked
    },
    has: (key) => values.has(key) || packedRow(key) !== undefined,
    get size() {
      return size()
    },
    keys,
    values: iterateValues,
    valuesContaining,
    held,
    peek,
    keysNow: () => {
      keysNow ??= [...keys()]
      return keysNow
    },
    packedKeyWith: keyOf,
    entries,
    [Symbol.iterator]: entries,
    forEach: (act) => {
      for (const [key, value] of entries()) act(value, key, map)
    },
  }
  return map
}

/** Packed rows, and the values that took the place of some of them or came later. */
function createHoldings<Value extends object, Shared extends Common>(otherPlaces: readonly number[]) {
  const rows = createTextRows<Shared>([0, ...otherPlaces])
  const values = new Map<string, Value>()
  /** The rows whose value was used, changed or deleted. */
  const taken = new Set<number>()

  /** The row of a value that is still packed. */
  function packedRow(key: string): number | undefined {
    const row = rows.find(0, key)
    return row === undefined || taken.has(row) ? undefined : row
  }
  return {
    rows,
    values,
    packedRow,
    /** Returns whether the value was packed until now. */
    take: (key: string): boolean => {
      const row = packedRow(key)
      if (row !== undefined) taken.add(row)
      return row !== undefined
    },
    held: (key: string): Value | RowText<Shared> | undefined => {
      const value = values.get(key)
      if (value !== undefined) return value
      const row = packedRow(key)
      return row === undefined ? undefined : rows.rowAt(row)
    },
    /** A value keeps its place when it is used or changed. */
    *keys(): Generator<string, undefined> {
      for (let row = 0; row < rows.size(); row++) {
        const key = rows.keyAt(row)
        if (!taken.has(row) || values.has(key)) yield key
      }
      for (const key of values.keys()) if (rows.find(0, key) === undefined) yield key
    },
    size: () => rows.size() - taken.size + values.size,
    keyOf: (value: string): string | undefined => {
      for (const place of otherPlaces) {
        const row = rows.find(place, value)
        if (row !== undefined) return rows.keyAt(row)
      }
      return undefined
    },
  }
}
