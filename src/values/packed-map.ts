// A map that keeps values packed as text until they are used, because most rows of a large installation are not.

/** Iterating unpacks a value without keeping it: only `get` does, so that a value in use stays the same. */
export type PackedMap<Value extends object> = ReadonlyMap<string, Value> & {
  set: (key: string, value: Value) => void
  /** Adds a value as text. */
  addPacked: (key: string, text: string) => void
  delete: (key: string) => boolean
  /** The values whose text passes a quick check, and all that are not packed. */
  valuesWith: (mayFit: (text: string) => boolean) => Iterable<Value>
  /** A value as it is held: as text while it is packed. */
  held: (key: string) => Value | string | undefined
  /** Unpacks a value without keeping it. */
  peek: (key: string) => Value | undefined
  /** The keys as they are now, in the order of insertion: a reader who goes slice by slice misses nothing. */
  keysNow: () => readonly string[]
}

export function createPackedMap<Value extends object>(unpack: (text: string) => Value): PackedMap<Value> {
  const all = new Map<string, Value | string>()
  let keysNow: readonly string[] | undefined
  const toValue = (held: Value | string) => (typeof held === 'string' ? unpack(held) : held)

  function put(key: string, held: Value | string): void {
    if (!all.has(key)) keysNow = undefined
    all.set(key, held)
  }
  function* entries(): Generator<[string, Value], undefined> {
    for (const [key, held] of all) yield [key, toValue(held)]
  }
  function* valuesWith(mayFit: (text: string) => boolean): Generator<Value, undefined> {
    for (const held of all.values()) if (typeof held !== 'string' || mayFit(held)) yield toValue(held)
  }

  const map: PackedMap<Value> = {
    get: (key) => {
      const held = all.get(key)
      if (typeof held !== 'string') return held
      const value = unpack(held)
      all.set(key, value)
      return value
    },
    set: put,
    addPacked: put,
    delete: (key) => {
      keysNow = undefined
      return all.delete(key)
    },
    has: (key) => all.has(key),
    get size() {
      return all.size
    },
    keys: () => all.keys(),
    values: () => valuesWith(() => true),
    valuesWith,
    held: (key) => all.get(key),
    peek: (key) => {
      const held = all.get(key)
      return held === undefined ? undefined : toValue(held)
    },
    keysNow: () => {
      keysNow ??= [...all.keys()]
      return keysNow
    },
    entries,
    [Symbol.iterator]: entries,
    forEach: (act) => {
      for (const [key, value] of entries()) act(value, key, map)
    },
  }
  return map
}
