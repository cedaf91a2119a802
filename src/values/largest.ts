// The largest of many values, without sorting all of them.

/** The `most` largest by `compare`, which is negative if the first one is larger; the largest first. */
export function createLargest<Value>(most: number, compare: (one: Value, other: Value) => number) {
  const kept: Value[] = []
  return {
    add: (value: Value): void => {
      const last = kept.at(-1)
      if (kept.length >= most && last !== undefined && compare(value, last) >= 0) return
      let [low, high] = [0, kept.length]
      while (low < high) {
        const middle = (low + high) >> 1
        const at = kept[middle]
        if (at !== undefined && compare(at, value) <= 0) low = middle + 1
        else high = middle
      }
      kept.splice(low, 0, value)
      if (kept.length > most) kept.pop()
    },
    values: (): readonly Value[] => kept,
  }
}
