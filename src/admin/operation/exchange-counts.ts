// How many exchanges were issued and refused in each hour, kept in memory: the first question reads the audit, later ones only the rows
// that were added since.

import type { Orm } from '../../../db/file/open.ts'
import { firstRowSince, rangeOfAudit, rowAtOrAfter } from '../../../db/tables/audit.ts'
import { countExchanges, type ExchangeCount, hourMilliseconds } from '../../../db/tables/exchange-counts.ts'

/** Counts by reason; those that were issued have the reason null. */
export type Outcomes = ReadonlyMap<string | null, number>

export type ExchangeCounts = {
  /**
   * Counts everything that is committed now and not older than `since`, and returns the earliest time that is wholly counted.
   * Milliseconds.
   */
  countSince: (since: number) => Promise<number>
  /** What was counted in one hour (hours since 1970) of an organization. */
  ofOrganization: (hour: number, organizationId: string) => Outcomes
  /** What was counted in one of the last 24 hours of a policy. */
  ofPolicy: (hour: number, policyId: string) => Outcomes
}

/** Rows that are read at most, in a few seconds. Older exchanges are not counted. */
const exchangesCountedMax = 1_000_000

type ByHour = Map<number, Map<string, Map<string | null, number>>>
const [hoursKept, policyHoursKept] = [32 * 24, 26]
const none: Outcomes = new Map()

export function createExchangeCounts(
  orm: Orm,
  now: () => number,
  { rowsMax = exchangesCountedMax }: { rowsMax?: number } = {},
): ExchangeCounts {
  const organizations: ByHour = new Map()
  const policies: ByHour = new Map()
  /** The rows that are counted: includes `from`, excludes `until`. */
  let counted: { from: number; until: number } | undefined
  let countedSince = Number.POSITIVE_INFINITY
  let counting: Promise<unknown> = Promise.resolve()

  async function add(from: number, until: number): Promise<void> {
    const oldest = Math.floor(now() / hourMilliseconds) - policyHoursKept
    for await (const counts of countExchanges(orm, { from, until })) for (const count of counts) addOne(count, oldest)
  }

  function addOne([organizationId, policyId, hour, reason, count]: ExchangeCount, oldest: number): void {
    if (organizationId !== null) grow(organizations, hour, organizationId, reason, count)
    if (policyId !== null && hour > oldest) grow(policies, hour, policyId, reason, count)
  }

  async function count(since: number): Promise<number> {
    const hour = Math.floor(now() / hourMilliseconds)
    dropBefore(organizations, hour - hoursKept)
    dropBefore(policies, hour - policyHoursKept)
    const { first, end } = await rangeOfAudit(orm)
    counted ??= { from: end, until: end }
    if (end > counted.until) {
      await add(Math.max(counted.until, end - rowsMax), end)
      counted = { ...counted, until: end }
    }
    if (since >= countedSince) return countedSince
    const start = Math.max(await firstRowSince(orm, since), counted.until - rowsMax, first)
    if (start < counted.from) {
      await add(start, counted.from)
      counted = { ...counted, from: start }
    }
    const cut = start > first && counted.until - start >= rowsMax
    countedSince = cut ? await timeOfRow(orm, start, since) : since
    return countedSince
  }

  return {
    countSince: (since) => {
      const result = counting.then(() => count(since))
      counting = result.catch(() => {})
      return result
    },
    ofOrganization: (hour, id) => organizations.get(hour)?.get(id) ?? none,
    ofPolicy: (hour, id) => policies.get(hour)?.get(id) ?? none,
  }
}

function grow(byHour: ByHour, hour: number, id: string, reason: string | null, count: number): void {
  const ofHour = byHour.get(hour) ?? new Map<string, Map<string | null, number>>()
  const outcomes = ofHour.get(id) ?? new Map<string | null, number>()
  byHour.set(hour, ofHour.set(id, outcomes.set(reason, (outcomes.get(reason) ?? 0) + count)))
}

function dropBefore(byHour: ByHour, hour: number): void {
  for (const each of byHour.keys()) if (each < hour) byHour.delete(each)
}

async function timeOfRow(orm: Orm, id: number, since: number): Promise<number> {
  return Math.max((await rowAtOrAfter(orm, id))?.at ?? since, since)
}

/** The tokens that were issued and refused. */
export function totalsOfOutcomes(outcomes: Outcomes): { issued: number; refused: number } {
  let refused = 0
  for (const [reason, count] of outcomes) if (reason !== null) refused += count
  return { issued: outcomes.get(null) ?? 0, refused }
}
