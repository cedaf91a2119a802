// The largest of many values are those that sorting all of them would give.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createLargest } from '../../src/values/largest.ts'

test('the largest are the first of all when they are sorted, for any values and any number of them', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20)), fc.nat(6), (values, most) => {
      const largest = createLargest<number>(most, (one, other) => other - one)
      for (const value of values) largest.add(value)
      expect(largest.values()).toEqual(values.toSorted((one, other) => other - one).slice(0, most))
    }),
  )
})
