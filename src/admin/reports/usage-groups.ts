// Groups of usage: their order, their days, and their sum.
import type { UsageGroup, UsageTotals } from '../../../db/read/usage-report.ts'

/** What the groups can be ordered by. */
export const orders = { total_tokens: 'totalTokens', requests: 'requests', cost: 'costNanodollars' } as const

/** The days of all groups without those of some. A request can end between the two readings, and no number is below 0. */
export function otherDays(all: ReadonlyMap<number, UsageTotals>, shown: Iterable<UsageGroup>): [number, UsageTotals][] {
  const rest = new Map([...all].map(([day, totals]) => [day, { ...totals }]))
  for (const { days } of shown)
    for (const [day, totals] of days) {
      const ofDay = rest.get(day)
      if (ofDay === undefined) continue
      for (const field of Object.keys(ofDay) as (keyof UsageTotals)[])
        ofDay[field] = Math.max(0, ofDay[field] - totals[field])
    }
  return [...rest].toSorted(([one], [other]) => one - other)
}

/** One group for each day. */
export function daysOf(groups: ReadonlyMap<string, UsageGroup>): UsageGroup[] {
  const [all] = groups.values()
  return daysInOrder(all).map(([day, totals]) => ({ values: [day], totals, days: new Map() }))
}

/** The days of a group, the earliest first. */
export function daysInOrder(group: UsageGroup | undefined): [day: number, totals: UsageTotals][] {
  return [...(group?.days ?? [])].toSorted(([one], [other]) => one - other)
}

/** The groups with the most of something first. */
export function largestFirst(groups: ReadonlyMap<string, UsageGroup>, order: keyof typeof orders): UsageGroup[] {
  const first = orders[order]
  return [...groups.values()].toSorted(
    ({ totals: one }, { totals: other }) =>
      other[first] - one[first] || other.totalTokens - one.totalTokens || other.requests - one.requests,
  )
}

export function sumOf(all: readonly UsageTotals[]): UsageTotals {
  const sum = { requests: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanodollars: 0, unpriced: 0 }
  for (const totals of all) for (const field of Object.keys(sum) as (keyof UsageTotals)[]) sum[field] += totals[field]
  return sum
}
