// Counters and histograms in memory, with a bound on their series and on the values of a label. Adding to one allocates next to nothing.
import type { Family } from './metric-families.ts'

/** One value with the values of its family's labels. `suffix` and `le` belong to histograms. */
export type Sample = { labels: readonly string[]; value: number; suffix?: string; le?: string }

/** What a label says of the values that have no series. */
export const otherLabel = 'other'
/** A family with more combinations of labels than this counts the rest as `other`. */
const seriesMax = 10_000

export type Counter = {
  add: (amount: number, ...labels: string[]) => void
  samples: () => Sample[]
  /** Forgets the series whose label at `index` is in `values`. */
  drop: (index: number, values: ReadonlySet<string>) => void
}

export function createCounter(): Counter {
  const series = new Map<string, { labels: readonly string[]; value: number }>()
  return {
    add: (amount, ...labels) => {
      seriesOf(series, labels, () => ({ labels, value: 0 })).value += amount
    },
    samples: () => [...series.values()],
    drop: (index, values) => {
      for (const [id, { labels }] of series) if (values.has(labels[index] ?? '')) series.delete(id)
    },
  }
}

export type Histogram = { observe: (value: number, ...labels: string[]) => void; samples: () => Sample[] }

type Distribution = { labels: readonly string[]; counts: number[]; sum: number }

export function createHistogram({ buckets = [] }: Pick<Family, 'buckets'>): Histogram {
  const series = new Map<string, Distribution>()
  return {
    observe: (value, ...labels) => {
      const found = seriesOf(series, labels, () => ({ labels, counts: new Array(buckets.length + 1).fill(0), sum: 0 }))
      const index = buckets.findIndex((bound) => value <= bound)
      const at = index < 0 ? buckets.length : index
      found.counts[at] = (found.counts[at] ?? 0) + 1
      found.sum += value
    },
    samples: () => [...series.values()].flatMap((distribution) => samplesOf(distribution, buckets)),
  }
}

function samplesOf({ labels, counts, sum }: Distribution, buckets: readonly number[]): Sample[] {
  let count = 0
  const cumulative = counts.map((more, index): Sample => {
    count += more
    return { labels, value: count, suffix: '_bucket', le: String(buckets[index] ?? '+Inf') }
  })
  return [...cumulative, { labels, value: sum, suffix: '_sum' }, { labels, value: count, suffix: '_count' }]
}

/** Past the bound on series, everything is in one whose labels are all `other`. */
function seriesOf<Value extends { labels: readonly string[] }>(
  series: Map<string, Value>,
  labels: string[],
  create: () => Value,
): Value {
  const known = series.get(labels.join('\n'))
  if (known !== undefined) return known
  if (series.size >= seriesMax) labels.fill(otherLabel)
  const id = labels.join('\n')
  const made = series.get(id) ?? create()
  series.set(id, made)
  return made
}

/** Gives the first `max` values that may be admitted as they are, and any other as `other`. */
export function createLabelBound(max: number): (value: string, mayAdmit?: boolean) => string {
  const known = new Set<string>()
  return (value, mayAdmit = true) => {
    if (known.has(value)) return value
    if (!mayAdmit || known.size >= max) return otherLabel
    known.add(value)
    return value
  }
}

export type Busiest = {
  /** Counts a use, and gives the id itself while it is among the busiest. */
  label: (id: string) => string
  /** The busiest. */
  ids: () => Iterable<string>
  /** Ranks again by the uses since the last time, older ones at half. Returns the ids that are no longer among the busiest. */
  rank: () => ReadonlySet<string>
}

/** A changing `other` must not decrease: what an id adds goes to its own series while it is named, and to `other` otherwise. */
export function createBusiest(max: number): Busiest {
  const uses = new Map<string, number>()
  let named = new Set<string>()
  return {
    label: (id) => {
      uses.set(id, (uses.get(id) ?? 0) + 1)
      if (!named.has(id) && named.size >= max) return otherLabel
      named.add(id)
      return id
    },
    ids: () => named.values(),
    rank: () => {
      const busiest = [...uses].toSorted(([, one], [, other]) => other - one).slice(0, max)
      const before = named
      named = new Set(busiest.map(([id]) => id))
      for (const [id, count] of uses) {
        if (count >= 2) uses.set(id, count / 2)
        else if (!named.has(id)) uses.delete(id)
      }
      return new Set([...before].filter((id) => !named.has(id)))
    },
  }
}
