// What each key has spent, in memory: in all, and in the running day, week and month (UTC, weeks from Monday). Money is in nanodollars.
import type { ApiKey } from '../../db/schema.ts'

export type Spent = { ever: number; daily: number; weekly: number; monthly: number }
export type SpentDay = { keyId: string; day: number; costNanodollars: number }

export type Spending = {
  /** Adds a cost that has just been committed. `at` in milliseconds. */
  add: (keyId: string, at: number, nanodollars: number) => void
  of: (keyId: string, now: number) => Spent
}

type Known = Spent & { day: number }

const dayMilliseconds = 24 * 60 * 60 * 1_000
export const dayOf = (time: number) => Math.floor(time / dayMilliseconds)
/** The first day of 1970 was a Thursday. */
const weekOf = (day: number) => Math.floor((day + 3) / 7)
const monthOf = (day: number) => new Date(day * dayMilliseconds).toISOString().slice(0, 7)

/** `rows` are the totals by day that the database has. */
export function createSpending(rows: Iterable<SpentDay>): Spending {
  const known = new Map<string, Known>()

  function current(keyId: string, today: number): Known {
    const spent = known.get(keyId) ?? { ever: 0, daily: 0, weekly: 0, monthly: 0, day: today }
    known.set(keyId, spent)
    if (today > spent.day) {
      spent.daily = 0
      if (weekOf(today) !== weekOf(spent.day)) spent.weekly = 0
      if (monthOf(today) !== monthOf(spent.day)) spent.monthly = 0
      spent.day = today
    }
    return spent
  }

  /** A cost of an earlier day, of a request that ran over midnight, belongs to the periods that hold that day. */
  function add(keyId: string, day: number, nanodollars: number): void {
    const spent = current(keyId, day)
    spent.ever += nanodollars
    if (day === spent.day) spent.daily += nanodollars
    if (weekOf(day) === weekOf(spent.day)) spent.weekly += nanodollars
    // To write out a month costs more than all else here.
    if (day === spent.day || monthOf(day) === monthOf(spent.day)) spent.monthly += nanodollars
  }

  for (const { keyId, day, costNanodollars } of rows) add(keyId, day, costNanodollars)
  return {
    add: (keyId, at, nanodollars) => add(keyId, dayOf(at), nanodollars),
    of: (keyId, now) => {
      const { ever, daily, weekly, monthly } = current(keyId, dayOf(now))
      return { ever, daily, weekly, monthly }
    },
  }
}

/** What is left of a key's limit, never below zero; null without a limit. */
export function remainingOf(
  { limitNanodollars, limitReset }: Pick<ApiKey, 'limitNanodollars' | 'limitReset'>,
  spent: Spent,
): number | null {
  if (limitNanodollars === null) return null
  return Math.max(0, limitNanodollars - spent[limitReset ?? 'ever'])
}
