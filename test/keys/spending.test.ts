// What a key has spent in the running day, week and month (UTC, weeks from Monday), and what its limit leaves.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createSpending, dayOf, remainingOf } from '../../src/keys/spending.ts'

const at = (text: string) => Date.parse(text)

describe('what was spent', () => {
  const spent = [
    '2026-10-31T12:00Z',
    '2026-11-15T23:59Z',
    '2026-11-16T00:00Z',
    '2026-11-20T12:00Z',
    '2026-11-21T12:00Z',
  ]
  const rows: [now: string, daily: number, weekly: number, monthly: number][] = [
    ['2026-11-21T23:59Z', 1, 3, 4],
    ['2026-11-22T00:00Z', 0, 3, 4],
    ['2026-11-23T00:00Z', 0, 0, 4],
    ['2026-12-01T00:00Z', 0, 0, 0],
  ]
  for (const [now, daily, weekly, monthly] of rows) {
    test(`is counted from midnight, Monday and the first, seen at ${now}`, () => {
      const spending = createSpending([])
      for (const time of spent) spending.add('k', at(time), 1)
      expect(spending.of('k', at(now))).toEqual({ ever: 5, daily, weekly, monthly })
      expect(spending.of('other', at(now))).toEqual({ ever: 0, daily: 0, weekly: 0, monthly: 0 })
    })
  }

  test('of a request that ran over midnight belongs to the day it began', () => {
    const spending = createSpending([])
    spending.add('k', at('2026-11-21T00:01Z'), 1)
    spending.add('k', at('2026-11-20T23:59Z'), 2)
    expect(spending.of('k', at('2026-11-21T01:00Z'))).toEqual({ ever: 3, daily: 1, weekly: 3, monthly: 3 })
  })

  test('is the same whether it was added or read from the database', () => {
    const cost = fc.record({
      day: fc.integer({ min: 20_000, max: 20_060 }),
      costNanodollars: fc.integer({ min: 0, max: 9 }),
    })
    fc.assert(
      fc.property(fc.array(cost), (costs) => {
        const days = costs.map((each) => ({ keyId: 'k', ...each })).toSorted((one, other) => one.day - other.day)
        const added = createSpending([])
        for (const { day, costNanodollars } of days) added.add('k', day * 86_400_000, costNanodollars)
        const now = 20_060 * 86_400_000
        expect(createSpending(days).of('k', now)).toEqual(added.of('k', now))
        expect(dayOf(now)).toBe(20_060)
      }),
    )
  })
})

test('a limit leaves what its own period has not spent, and never less than nothing', () => {
  const spent = { ever: 50, daily: 1, weekly: 5, monthly: 10 }
  expect(remainingOf({ limitNanodollars: null, limitReset: null }, spent)).toBeNull()
  expect(remainingOf({ limitNanodollars: 20, limitReset: null }, spent)).toBe(0)
  for (const [limitReset, left] of [
    ['daily', 19],
    ['weekly', 15],
    ['monthly', 10],
  ] as const)
    expect(remainingOf({ limitNanodollars: 20, limitReset }, spent)).toBe(left)
})
