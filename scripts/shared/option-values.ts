// Reads the values of options: numbers, money and times.
import { InvalidArgumentError } from 'commander'
import { readTime } from '../../src/values/time-text.ts'

/** Reads an option that `--no-…` removes: null if removed, undefined if absent (Commander reports true). */
export function removable(value: string | boolean | undefined): string | null | undefined {
  if (value === false) return null
  return value === true ? undefined : value
}

/** Parses an integer option. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('use a whole number')
  return Number(text)
}

/** Parses an amount in US dollars. */
export function money(text: string): number {
  if (!/^\d{1,7}(\.\d{1,9})?$/.test(text)) throw new InvalidArgumentError('use an amount such as 0.15')
  return Number(text)
}

/**
 * Parses `2026-11-21`, `2026-11-21T09:30:00Z`, or a duration before now such as `30m`, `24h` or `7d`. A time without a
 * zone is UTC.
 */
export function momentText(text: string): string {
  const ago = durationOf(text)
  const moment = ago === undefined ? readTime(text) : Date.now() - ago
  if (moment === undefined)
    throw new InvalidArgumentError(
      'use a time such as 2026-11-21T09:30:00Z, or a duration such as 24h for the last 24 hours',
    )
  return new Date(moment).toISOString()
}

/** The option of lists that selects what was not used for a time. */
export function unusedOption(what: string): [flags: string, help: string, read: (text: string) => string] {
  return [
    '--unused <time>',
    `only ${what} that have not worked since this time, or for a duration such as 90d`,
    momentText,
  ]
}

/** Parses `2027-01-01`, `2027-01-01T09:30:00Z`, or a duration from now such as `12h` or `30d`. */
export function futureText(text: string): string {
  const ahead = durationOf(text)
  const moment = ahead === undefined ? readTime(text) : Date.now() + ahead
  if (moment === undefined)
    throw new InvalidArgumentError(
      'use a time such as 2027-01-01T00:00:00Z, or a duration such as 30d for 30 days from now',
    )
  return new Date(moment).toISOString()
}

/** Parses `500ms`, `15s` or `2m` and returns milliseconds. */
export function waitText(text: string): number {
  const given = /^(\d{1,6})(ms|s|m)$/.exec(text)
  const unit = { ms: 1, s: 1_000, m: 60_000 }[given?.[2] ?? '']
  if (unit === undefined) throw new InvalidArgumentError('use a duration such as 15s or 2m')
  return Number(given?.[1]) * unit
}

function durationOf(text: string): number | undefined {
  const given = /^(\d{1,6})([mhd])$/.exec(text)
  const unit = { m: 60_000, h: 3_600_000, d: 86_400_000 }[given?.[2] ?? '']
  return unit === undefined ? undefined : Number(given?.[1]) * unit
}
