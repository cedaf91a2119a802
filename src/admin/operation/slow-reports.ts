// Reports that take long are computed once for everyone who asks: while they run, and afterward for twenty times as long as they took.
// Open pages that ask again and again take at most a twentieth of one core for a report.
import { LRUCache } from 'lru-cache'

/** Computes a report, or returns one that is recent. `name` contains everything that it depends on. */
export type SlowReports = <Result>(name: string, compute: () => Promise<Result>) => Promise<Result>

const slowMilliseconds = 100
const keptFactor = 20
const reportsKept = 50

/** `monotonic` in milliseconds. */
export function createSlowReports(monotonic: () => number): SlowReports {
  const kept = new LRUCache<string, Promise<unknown>>({
    max: reportsKept,
    ttlResolution: 0,
    perf: { now: monotonic },
  })
  return <Result>(name: string, compute: () => Promise<Result>) => {
    const known = kept.get(name)
    if (known !== undefined) return known as Promise<Result>
    const startedAt = monotonic()
    const result = compute()
    kept.set(name, result)
    const keepFor = (milliseconds: number) => {
      if (kept.peek(name) !== result) return
      if (milliseconds > 0) kept.set(name, result, { ttl: milliseconds })
      else kept.delete(name)
    }
    result.then(
      () => {
        const took = monotonic() - startedAt
        keepFor(took < slowMilliseconds ? 0 : keptFactor * took)
      },
      () => keepFor(0),
    )
    return result
  }
}
