// A map that keeps values as text until they are used, because most rows of a large installation are not.

/** Iterating unpacks a value without keeping it: only `get` does, so that a value in use stays the same. */
export type PackedMap<Value extends object> = ReadonlyMap<string, Value> & {
  set: (key: string, value: Value) => void
  setPacked: (key: string, text: string) => void
  delete: (key: string) => boolean
  /** The values whose text passes a quick check, and all that are not packed. */
  valuesWith: (mayFit: (text: string) => boolean) => Iterable<Value>
}

export function createPackedMap<Value extends object>(unpack: (text: string) => Value): PackedMap<Value> {
  const entries = new Map<string, Value | string>()
  const toValue = (entry: Value | string) => (typeof entry === 'string' ? unpack(entry) : entry)

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
    set: (key, value) => void entries.set(key, value),
    setPacked: (key, text) => void entries.set(key, text),
    delete: (key) => entries.delete(key),
    has: (key) => entries.has(key),
    get size() {
      return entries.size
    },
    keys: () => entries.keys(),
    values,
    valuesWith,
    entries: iterate,
    [Symbol.iterator]: iterate,
    forEach: (act) => {
      for (const [key, value] of iterate()) act(value, key, map)
    },
  }
  return map
}
