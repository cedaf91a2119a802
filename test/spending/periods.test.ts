// When periods begin and end: months' ends, leap days, weeks, and zones with summer time and half hours.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { budgetPeriods } from '../../db/schema/budget-schema.ts'
import { isTimeZone, periodAt } from '../../src/spending/periods.ts'

const periodOf = (per: (typeof budgetPeriods)[number], time: string, zone: string | null = null) => {
  const { start, end } = periodAt(per, Date.parse(time), zone)
  return [new Date(start).toISOString(), new Date(end).toISOString()]
}

describe('the period', () => {
  const rows: [per: (typeof budgetPeriods)[number], zone: string | null, time: string, start: string, end: string][] = [
    ['hour', null, '2026-11-26T10:59:59.999Z', '2026-11-26T10:00', '2026-11-26T11:00'],
    ['day', null, '2028-02-29T23:59:59Z', '2028-02-29T00:00', '2028-03-01T00:00'],
    ['month', null, '2028-02-29T12:00:00Z', '2028-02-01T00:00', '2028-03-01T00:00'],
    ['month', null, '2026-12-31T23:59:59Z', '2026-12-01T00:00', '2027-01-01T00:00'],
    ['week', null, '2026-11-29T23:00:00Z', '2026-11-23T00:00', '2026-11-30T00:00'],
    ['week', null, '2026-11-30T00:00:00Z', '2026-11-30T00:00', '2026-12-07T00:00'],
    ['day', 'Europe/Berlin', '2026-11-26T23:30:00Z', '2026-11-26T23:00', '2026-11-27T23:00'],
    // Summer time begins: the day has 23 hours; and ends: it has 25.
    ['day', 'Europe/Berlin', '2026-03-29T10:00:00Z', '2026-03-28T23:00', '2026-03-29T22:00'],
    ['day', 'Europe/Berlin', '2026-10-25T10:00:00Z', '2026-10-24T22:00', '2026-10-25T23:00'],
    ['month', 'America/Los_Angeles', '2026-11-01T06:59:59Z', '2026-10-01T07:00', '2026-11-01T07:00'],
    ['month', 'America/Los_Angeles', '2026-11-01T07:00:00Z', '2026-11-01T07:00', '2026-12-01T08:00'],
    // Half an hour is rounded up to the next whole hour in UTC.
    ['day', 'Asia/Kolkata', '2026-11-26T19:00:00Z', '2026-11-26T19:00', '2026-11-27T19:00'],
    ['day', 'Pacific/Kiritimati', '2026-11-26T10:00:00Z', '2026-11-26T10:00', '2026-11-27T10:00'],
    ['day', 'Pacific/Pago_Pago', '2026-11-26T10:59:00Z', '2026-11-25T11:00', '2026-11-26T11:00'],
    // Midnight does not exist on this day.
    ['day', 'America/Santiago', '2026-09-06T12:00:00Z', '2026-09-06T04:00', '2026-09-07T03:00'],
  ]
  test.each(rows)('of a %s in %p at %s', (per, zone, time, start, end) =>
    expect(periodOf(per, time, zone)).toEqual([`${start}:00.000Z`, `${end}:00.000Z`]),
  )
})

test('periods of one kind follow one another without gaps, in every zone', () => {
  const zones = [null, 'Europe/Berlin', 'America/Santiago', 'Asia/Kathmandu', 'Australia/Lord_Howe', 'Pacific/Apia']
  const time = fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2040, 0) })
  fc.assert(
    fc.property(time, fc.constantFrom(...zones), fc.constantFrom(...budgetPeriods), (at, zone, per) => {
      const hour = Math.floor(at / 3_600_000) * 3_600_000
      const { start, end } = periodAt(per, hour, zone)
      expect(start <= hour && hour < end).toBe(true)
      if (end === Number.POSITIVE_INFINITY) return
      expect(start % 3_600_000).toBe(0)
      expect(periodAt(per, end, zone).start).toBe(end)
      expect(periodAt(per, end - 3_600_000, zone)).toEqual({ start, end })
    }),
  )
})

test.each([
  ['Europe/Berlin', true],
  ['UTC', true],
  ['Europe/Atlantis', false],
  ['+01:00', false],
  ['', false],
  ['constructor', false],
])('%p is a time zone: %p', (name, expected) => expect(isTimeZone(name)).toBe(expected))
