// What a key has spent in the running day, week and month (UTC, weeks from Monday), and what its limit leaves.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createSpending, dayOf, remainingOf } from '../../src/keys/spending.ts'

const at = (text: string) => Date.parse(text)

type SpentDay = [day: number, nanodollars: number]
/** The days of a key as they are read from the database. */
const pack = (days: SpentDay[]) => [JSON.stringify(['k', days])]

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
      const spending = createSpending([], 0)
      for (const time of spent) spending.add('k', at(time), 1)
      expect(spending.of('k', at(now))).toEqual({ ever: 5, daily, weekly, monthly })
      expect(spending.of('other', at(now))).toEqual({ ever: 0, daily: 0, weekly: 0, monthly: 0 })
    })
  }

  test('of a request that ran over midnight belongs to the day it began', () => {
    const spending = createSpending([], 0)
    spending.add('k', at('2026-11-21T00:01Z'), 1)
    spending.add('k', at('2026-11-20T23:59Z'), 2)
    expect(spending.of('k', at('2026-11-21T01:00Z'))).toEqual({ ever: 3, daily: 1, weekly: 3, monthly: 3 })
  })

  test('under a clock that was wrong for a while counts for its own time alone', () => {
    const spending = createSpending([], 0)
    const [now, later] = [at('2026-11-21T12:00Z'), at('2027-12-26T12:00Z')]
    spending.add('k', now, 1)
    spending.add('k', later, 10)
    spending.add('k', now, 2)
    expect(spending.of('k', later)).toEqual({ ever: 13, daily: 10, weekly: 10, monthly: 10 })
    expect(spending.of('k', now)).toEqual({ ever: 13, daily: 3, weekly: 3, monthly: 3 })
    const days = [20_778, 21_178].map((day): SpentDay => [day, 1])
    expect(createSpending(pack(days), now).of('k', now)).toEqual({ ever: 2, daily: 1, weekly: 1, monthly: 1 })
  })

  test('is right for whatever time it is, as long as the clock does not jump on and on', () => {
    const now = 20_400
    const days = fc.array(fc.record({ jump: fc.constantFrom(0, 0, 400, -400), step: fc.nat(12), cost: fc.nat(9) }))
    fc.assert(
      fc.property(days, (costs) => {
        const spending = createSpending([], 0)
        const added: { day: number; cost: number }[] = []
        let today = now
        for (const { jump, step, cost } of costs) {
          today += step
          const day = today + jump
          spending.add('k', day * 86_400_000, cost)
          added.push({ day, cost })
          if (step > 0) continue
          const within = (isMeant: (day: number) => boolean) =>
            added.filter((each) => isMeant(each.day)).reduce((sum, each) => sum + each.cost, 0)
          const month = (of: number) => new Date(of * 86_400_000).toISOString().slice(0, 7)
          expect(spending.of('k', day * 86_400_000)).toEqual({
            ever: within(() => true),
            daily: within((each) => each === day),
            weekly: within((each) => Math.floor((each + 3) / 7) === Math.floor((day + 3) / 7)),
            monthly: within((each) => month(each) === month(day)),
          })
        }
      }),
    )
  })

  test('of a key that is years old, and was used under a clock far ahead, is read from the database', () => {
    const now = 20_778
    const rows = Array.from({ length: 1_000 }, (_, index): SpentDay => [now - index, 1])
    const ahead = Array.from({ length: 100 }, (_, index): SpentDay => [now + 400 + index, 1])
    const spending = createSpending(pack([...ahead, ...rows]), now * 86_400_000)
    expect(spending.of('k', now * 86_400_000)).toEqual({ ever: 1_100, daily: 1, weekly: 6, monthly: 21 })
  })

  test('is the same whether it was added or read from the database', () => {
    const cost = fc.tuple(fc.integer({ min: 20_000, max: 20_060 }), fc.integer({ min: 0, max: 9 }))
    fc.assert(
      fc.property(fc.array(cost), (costs) => {
        const days = costs.toSorted(([one], [other]) => one - other)
        const added = createSpending([], 0)
        for (const [day, cost] of days) added.add('k', day * 86_400_000, cost)
        const now = 20_060 * 86_400_000
        expect(createSpending(pack(days), now).of('k', now)).toEqual(added.of('k', now))
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
