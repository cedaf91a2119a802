// When the hours, days, weeks and months of budgets begin and end. Weeks begin on Monday. Times are in milliseconds.
import type { BudgetPeriod } from '../../db/schema/budget-schema.ts'

/** From `start`, up to `end`. */
export type Period = { start: number; end: number }

const hourMilliseconds = 60 * 60 * 1_000
const dayMilliseconds = 24 * hourMilliseconds
const lifetime: Period = { start: 0, end: Number.POSITIVE_INFINITY }

/** Returns the period of a time in a time zone (IANA name); UTC without one. */
export function periodAt(per: BudgetPeriod, time: number, timeZone: string | null): Period {
  if (per === 'lifetime') return lifetime
  if (per === 'hour') {
    const start = Math.floor(time / hourMilliseconds) * hourMilliseconds
    return { start, end: start + hourMilliseconds }
  }
  const local = new Date(localTime(time, timeZone))
  const [year, month, day] = [local.getUTCFullYear(), local.getUTCMonth(), local.getUTCDate()]
  const weekday = (local.getUTCDay() + 6) % 7
  const midnight = (days: number, months = 0) => startOf(Date.UTC(year, month + months, days), timeZone)
  if (per === 'day') return { start: midnight(day), end: midnight(day + 1) }
  if (per === 'week') return { start: midnight(day - weekday), end: midnight(day - weekday + 7) }
  return { start: midnight(1), end: midnight(1, 1) }
}

/** Reports whether this is the name of a time zone. */
export function isTimeZone(name: string): boolean {
  try {
    formatFor(name)
    return /^[A-Za-z]/.test(name)
  } catch {
    return false
  }
}

const formats = new Map<string, Intl.DateTimeFormat>()

function formatFor(timeZone: string): Intl.DateTimeFormat {
  const digits = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' } as const
  const format =
    formats.get(timeZone) ??
    new Intl.DateTimeFormat('en-US', { timeZone, hourCycle: 'h23', second: 'numeric', ...digits })
  formats.set(timeZone, format)
  return format
}

/** What clocks in the zone show, as if they showed UTC. */
function localTime(time: number, timeZone: string | null): number {
  if (timeZone === null) return time
  const parts = new Map(
    formatFor(timeZone)
      .formatToParts(time)
      .map(({ type, value }) => [type, Number(value)]),
  )
  const of = (name: Intl.DateTimeFormatPartTypes) => parts.get(name) ?? 0
  return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second'))
}

/**
 * Returns the first whole hour at which clocks in the zone show this midnight or later: totals are by hour, and some zones
 * differ by half an hour, or have no midnight on a day.
 */
function startOf(localMidnight: number, timeZone: string | null): number {
  if (timeZone === null) return localMidnight
  // No zone is further away than 14 hours.
  const earliest = localMidnight - 15 * hourMilliseconds
  let [low, high] = [0, 30]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (localTime(earliest + middle * hourMilliseconds, timeZone) >= localMidnight) high = middle
    else low = middle + 1
  }
  return earliest + low * hourMilliseconds
}

export const hourOf = (time: number) => Math.floor(time / hourMilliseconds)
export const startOfHour = (hour: number) => hour * hourMilliseconds
export const daysAsMilliseconds = (days: number) => days * dayMilliseconds
