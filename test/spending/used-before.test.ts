// What was used a while ago: never more than was used then, and known once it is long enough ago.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { rememberUsed } from '../../src/spending/used-before.ts'

const amounts = (requests: number) => [{ nanodollars: 0, tokens: 0, requests }]

test('is what was used five seconds ago or earlier, and not much earlier where it is asked for often', () => {
  const steps = fc.array(fc.record({ wait: fc.integer({ min: 1, max: 3_000 }), used: fc.nat(3) }), { maxLength: 60 })
  fc.assert(
    fc.property(steps, (given) => {
      let [clock, total] = [0, 0]
      const usedBefore = rememberUsed(() => clock, 5_000)
      const history: { at: number; total: number }[] = []
      for (const { wait, used } of given) {
        clock += wait
        total += used
        history.push({ at: clock, total })
        const seen = usedBefore('a', amounts(total))[0]?.requests ?? 0
        const totalAt = (at: number) => history.findLast((each) => each.at <= at)?.total ?? 0
        expect(seen).toBeLessThanOrEqual(totalAt(clock - 5_000))
        expect(seen).toBeGreaterThanOrEqual(totalAt(clock - 5_000 - 3_500))
      }
    }),
  )
})

test('is nothing after a period has begun, or windows have changed, until that is long enough ago', () => {
  let clock = 0
  const usedBefore = rememberUsed(() => clock, 5_000)
  usedBefore('a', amounts(9))
  clock = 6_000
  expect(usedBefore('a', amounts(9))).toEqual(amounts(9))
  expect(usedBefore('a', amounts(1))).toEqual([])
  clock = 12_000
  expect(usedBefore('a', amounts(2))).toEqual(amounts(1))
  expect(usedBefore('a', [...amounts(2), ...amounts(2)])).toEqual([])
  expect(usedBefore('b', amounts(2))).toEqual([])
})
