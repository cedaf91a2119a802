// Counters and histograms in memory, with a bound on their series and on the values of a label. Adding to one allocates next to nothing.
import type { Family } from './metric-families.ts'

/** One value with the values of its family's labels. `suffix` and `le` belong to histograms. */
export type Sample = { labels: readonly string[]; value: number; suffix?: string; le?: string }

/** What a label says of the values that have no series. */
export const otherLabel = 'other'
/** A family with more combinations of labels than this counts the rest as `other`. */
const seriesMax = 10_000
/** The same for the combinations of one organization, so that one cannot use up the series of all. */
const seriesPerOrganizationMax = 1_000

export type Counter = {
  add: (amount: number, ...labels: string[]) => void
  samples: () => Sample[]
  /** Forgets the series whose label at `index` is in `values`. */
  drop: (index: number, values: ReadonlySet<string>) => void
}

export function createCounter(family: Pick<Family, 'labels'>): Counter {
  const series = createSeries(family, (labels) => ({ labels, value: 0 }))
  return {
    add: (amount, ...labels) => {
      series.find(labels).value += amount
    },
    samples: () => series.all(),
    drop: series.drop,
  }
}

export type Histogram = {
  observe: (value: number, ...labels: string[]) => void
  samples: () => Sample[]
  drop: Counter['drop']
}

export function createHistogram({ labels: names, buckets = [] }: Pick<Family, 'labels' | 'buckets'>): Histogram {
  const create = (labels: readonly string[]) => ({ labels, counts: new Array(buckets.length + 1).fill(0), sum: 0 })
  const series = createSeries<Distribution>({ labels: names }, create)
  return {
    observe: (value, ...labels) => {
      const found = series.find(labels)
      const index = buckets.findIndex((bound) => value <= bound)
      const at = index < 0 ? buckets.length : index
      found.counts[at] = (found.counts[at] ?? 0) + 1
      found.sum += value
    },
    samples: () => series.all().flatMap((distribution) => samplesOf(distribution, buckets)),
    drop: series.drop,
  }
}

type Distribution = { labels: readonly string[]; counts: number[]; sum: number }

function samplesOf({ labels, counts, sum }: Distribution, buckets: readonly number[]): Sample[] {
  let count = 0
  const cumulative = counts.map((more, index): Sample => {
    count += more
    return { labels, value: count, suffix: '_bucket', le: String(buckets[index] ?? '+Inf') }
  })
  return [...cumulative, { labels, value: sum, suffix: '_sum' }, { labels, value: count, suffix: '_count' }]
}

/**
 * The series of a family by their labels. Past a bound, what an organization adds is in one series of that organization,
 * whose other labels are `other`.
 */
function createSeries<Value extends { labels: readonly string[] }>(
  { labels: names }: Pick<Family, 'labels'>,
  create: (labels: readonly string[]) => Value,
) {
  const isPerOrganization = names[0] === 'organization'
  const series = new Map<string, Value>()
  const index = createLabelIndex<Value>()
  const counts = new Map<string, number>()
  const countOf = ([first = '']: readonly string[]) => counts.get(first) ?? 0
  const isFull = (labels: readonly string[]) =>
    series.size >= seriesMax || (isPerOrganization && countOf(labels) >= seriesPerOrganizationMax)
  const recount = (labels: readonly string[], change: 1 | -1) => {
    const count = countOf(labels) + change
    if (count > 0) counts.set(labels[0] ?? '', count)
    else counts.delete(labels[0] ?? '')
  }
  return {
    find: (labels: string[]): Value => {
      const known = index.find(labels)
      if (known !== undefined) return known
      if (isFull(labels)) labels.fill(otherLabel, isPerOrganization ? 1 : 0)
      const id = labels.join('\n')
      const found = series.get(id)
      if (found !== undefined) return found
      const made = create(labels)
      series.set(id, made)
      index.add(made)
      recount(labels, 1)
      return made
    },
    all: () => [...series.values()],
    drop: (at: number, values: ReadonlySet<string>) => {
      for (const [id, { labels }] of series) {
        if (values.has(labels[at] ?? '') && series.delete(id)) recount(labels, -1)
      }
      index.clear()
      for (const each of series.values()) index.add(each)
    },
  }
}

type Branch = Map<string, unknown>

/** Finds values by their labels, one after the other: a text of all of them would be made and hashed for each request. */
function createLabelIndex<Value extends { labels: readonly string[] }>() {
  const root: Branch = new Map()
  /** Of a family without labels. */
  let only: Value | undefined
  return {
    find: (labels: readonly string[]): Value | undefined => {
      let found: unknown = labels.length === 0 ? only : root
      for (const label of labels) {
        found = (found as Branch).get(label)
        if (found === undefined) return undefined
      }
      return found as Value | undefined
    },
    add: (value: Value) => {
      const { labels } = value
      let branch = root
      for (const label of labels.slice(0, -1)) {
        const next = (branch.get(label) as Branch | undefined) ?? new Map()
        branch.set(label, next)
        branch = next
      }
      if (labels.length === 0) only = value
      else branch.set(labels.at(-1) ?? '', value)
    },
    clear: () => {
      root.clear()
      only = undefined
    },
  }
}

export type LabelBound = {
  /** Gives the first values that may be admitted as they are, and any other as `other`. */
  label: (value: string, mayAdmit?: boolean) => string
  /** Makes room for other values. Returns the values that are gone. */
  keepOnly: (isLive: (value: string) => boolean) => ReadonlySet<string>
}

export function createLabelBound(max: number): LabelBound {
  const known = new Set<string>()
  return {
    label: (value, mayAdmit = true) => {
      if (known.has(value)) return value
      if (!mayAdmit || known.size >= max) return otherLabel
      known.add(value)
      return value
    },
    keepOnly: (isLive) => {
      const gone = new Set([...known].filter((value) => !isLive(value)))
      for (const value of gone) known.delete(value)
      return gone
    },
  }
}

export type BusiestIds = {
  /** Counts a use, and gives the id itself while it is among the busiest. */
  label: (id: string) => string
  /** The busiest. */
  ids: () => Iterable<string>
  /** Drops the uses of an id that is no longer used, which leaves the busiest at the next ranking. */
  forget: (id: string) => void
  /** Ranks again by the uses since the last time, older ones at half. Returns the ids that are no longer among the busiest. */
  rank: () => ReadonlySet<string>
}

/** A changing `other` must not decrease: what an id adds goes to its own series while it is named, and to `other` otherwise. */
export function createBusiest(max: number): BusiestIds {
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
    forget: (id) => void uses.delete(id),
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
