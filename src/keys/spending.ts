// What each key has spent, in memory: in total, and per day, week and month (UTC, weeks start on Monday). Money is in
// nanodollars.
import type { ApiKey } from '../../db/schema/schema.ts'
import type { UnpackedDays } from '../../db/tables/usage.ts'
import { spentPeriodsMax } from '../limits.ts'
import { createPackedMap } from '../values/packed-map.ts'

export type SpendingTotals = { ever: number; daily: number; weekly: number; monthly: number }

export type Spending = {
  /** Adds the cost of a request. `at` in milliseconds. `isCommitted`: its usage row is in the database. */
  add: (keyId: string, at: number, nanodollars: number, isCommitted?: boolean) => void
  of: (keyId: string, now: number) => SpendingTotals
  /** Drops what is known of a deleted key. */
  forget: (keyId: string) => void
  /** How many keys it knows. */
  size: () => number
}

/** Sums by the number of the day, week or month, in the order in which they were added. */
type Sums = Map<number, number>
type KeySums = { ever: number; days: Sums; weeks: Sums; months: Sums }

const dayMilliseconds = 24 * 60 * 60 * 1_000
export const dayOf = (time: number) => Math.floor(time / dayMilliseconds)
/** The first day of 1970 was a Thursday. */
const weekOf = (day: number) => Math.floor((day + 3) / 7)
const monthOf = (day: number) => {
  const date = new Date(day * dayMilliseconds)
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}

const nothingInCommon = { text: '' }

/**
 * `rows` are the totals of each key from the database, which are added up when the key is first used. Each period has a
 * separate sum, so that spending under a wrong clock counts only for the wrong time.
 */
export function createSpending(rows: readonly string[], now: number): Spending {
  const known = createPackedMap(({ text }) => addUp(text, dayOf(now)))
  for (const text of rows) known.addPacked({ text, common: nothingInCommon })
  return {
    add: (keyId, at, nanodollars) => {
      if (nanodollars === 0) return
      const spent = known.get(keyId) ?? nothing()
      known.set(keyId, spent)
      addDay(spent, dayOf(at), nanodollars)
    },
    forget: (keyId) => void known.delete(keyId),
    size: () => known.size,
    of: (keyId, now) => {
      const spent = known.get(keyId)
      const day = dayOf(now)
      return {
        ever: spent?.ever ?? 0,
        daily: spent?.days.get(day) ?? 0,
        weekly: spent?.weeks.get(weekOf(day)) ?? 0,
        monthly: spent?.months.get(monthOf(day)) ?? 0,
      }
    },
  }
}

/** Where the next refresh brings what is in the database, of this node and others, only what is not there is added. */
export function addUncommitted(spending: Spending): Spending {
  return {
    ...spending,
    add: (keyId, at, nanodollars, isCommitted) => {
      if (isCommitted !== true) spending.add(keyId, at, nanodollars)
    },
  }
}

function nothing(): KeySums {
  return { ever: 0, days: new Map(), weeks: new Map(), months: new Map() }
}

/** The days nearest to today are added last: what was added first is dropped first. */
function addUp(packed: string, today: number): KeySums {
  const [, days] = JSON.parse(packed) as UnpackedDays
  const spent = nothing()
  for (const [day, cost] of days.toSorted(([one], [other]) => Math.abs(other - today) - Math.abs(one - today)))
    addDay(spent, day, cost)
  return spent
}

function addDay(spent: KeySums, day: number, nanodollars: number): void {
  spent.ever += nanodollars
  grow(spent.days, day, nanodollars)
  grow(spent.weeks, weekOf(day), nanodollars)
  grow(spent.months, monthOf(day), nanodollars)
}

function grow(sums: Sums, period: number, nanodollars: number): void {
  const sum = sums.get(period)
  if (sum === undefined && sums.size >= spentPeriodsMax) for (const first of sums.keys().take(1)) sums.delete(first)
  sums.set(period, (sum ?? 0) + nanodollars)
}

/** When the period after this one begins, in milliseconds; null for a limit that never resets. */
export function resetAfter(limitReset: ApiKey['limitReset'], now: number): number | null {
  const day = dayOf(now)
  const date = new Date(now)
  if (limitReset === 'daily') return (day + 1) * dayMilliseconds
  if (limitReset === 'weekly') return ((weekOf(day) + 1) * 7 - 3) * dayMilliseconds
  return limitReset === 'monthly' ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) : null
}

/** What remains of the limit of a key, never below zero; null without a limit. */
export function remainingOf(
  { limitNanodollars, limitReset }: Pick<ApiKey, 'limitNanodollars' | 'limitReset'>,
  spent: SpendingTotals,
): number | null {
  if (limitNanodollars === null) return null
  return Math.max(0, limitNanodollars - spent[limitReset ?? 'ever'])
}
