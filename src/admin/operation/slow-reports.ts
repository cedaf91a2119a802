// Reports that take long are computed once for everyone who asks: while they run, and afterwards for twenty times as long as they took.
// Open pages that ask again and again take at most a twentieth of one core for a report.

/** Computes a report, or returns one that is recent. `name` contains everything that it depends on. */
export type SlowReports = <Result>(name: string, compute: () => Promise<Result>) => Promise<Result>

const slowMilliseconds = 100
const keptFactor = 20
const reportsKept = 50

/** `monotonic` in milliseconds. */
export function createSlowReports(monotonic: () => number): SlowReports {
  const kept = new Map<string, { result: Promise<unknown>; until: number }>()
  const dropOld = () => {
    const now = monotonic()
    for (const [name, { until }] of kept) if (until <= now || kept.size > reportsKept) kept.delete(name)
  }
  return <Result>(name: string, compute: () => Promise<Result>) => {
    dropOld()
    const known = kept.get(name)
    if (known !== undefined) return known.result as Promise<Result>
    const startedAt = monotonic()
    const result = compute()
    const entry = { result, until: Number.POSITIVE_INFINITY }
    kept.set(name, entry)
    const drop = () => {
      if (kept.get(name) === entry) kept.delete(name)
    }
    result.then(() => {
      const took = monotonic() - startedAt
      if (took < slowMilliseconds) drop()
      else entry.until = monotonic() + keptFactor * took
    }, drop)
    return result
  }
}
