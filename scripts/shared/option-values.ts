// Reads the values of options: numbers, money and times.
import { InvalidArgumentError } from 'commander'
import { durationForms, readDuration, readWhole } from '../../src/values/duration-text.ts'
import { readTime } from '../../src/values/time-text.ts'

/** Reads an option that `--no-…` removes: null if removed, undefined if absent (Commander reports true). */
export function removable(value: string | boolean | undefined): string | null | undefined {
  if (value === false) return null
  return value === true ? undefined : value
}

/** Parses an integer option. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('use a whole number, 0 or more')
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
  const ago = readDuration(text)
  const moment = ago === undefined ? readTime(text) : Date.now() - ago
  if (moment === undefined)
    throw new InvalidArgumentError(
      'use a time such as 2026-11-21T09:30:00Z, or a duration such as 24h for the last 24 hours',
    )
  return new Date(moment).toISOString()
}

/** Parses `2027-01-01`, `2027-01-01T09:30:00Z`, or a duration from now such as `12h` or `30d`. */
export function futureText(text: string): string {
  const ahead = readDuration(text)
  const moment = ahead === undefined ? readTime(text) : Date.now() + ahead
  if (moment === undefined)
    throw new InvalidArgumentError(
      'use a time such as 2027-01-01T00:00:00Z, or a duration such as 30d for 30 days from now',
    )
  return new Date(moment).toISOString()
}

/** Parses a duration and returns milliseconds. */
export function waitText(text: string): number {
  const milliseconds = readDuration(text)
  if (milliseconds === undefined) throw new InvalidArgumentError(`use a duration such as ${durationForms}`)
  return milliseconds
}

/** Parses a duration, or whole seconds as they were written before, and returns seconds. */
export function durationSeconds(text: string): number {
  const seconds = readWhole(text, 'seconds')
  if (seconds === undefined) throw new InvalidArgumentError(`use a duration such as ${durationForms}`)
  return seconds
}
