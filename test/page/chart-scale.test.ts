// The scales of charts: lines that a person can read, at whole numbers where things are counted, and labels at the same distances.
import { expect, test } from 'bun:test'
import fc from 'fast-check'

// Not a path that TypeScript follows: the page has its own types.
const { niceStep, labeledBars } = (await import(`${import.meta.dirname}/../../src/page/assets/chart-scale.js`)) as {
  niceStep: (most: number, isWhole?: boolean) => number
  labeledBars: (bars: number) => number[]
}

test('what is counted has lines at whole numbers, and what is measured at smaller ones', () => {
  expect([1, 3, 4, 5, 10, 100, 0].map((most) => niceStep(most, true))).toEqual([1, 1, 1, 2, 5, 25, 1])
  expect([1, 10, 0.5].map((most) => niceStep(most))).toEqual([0.25, 2.5, 0.2])
})

test('four lines are enough for any amount, and none is a fraction of a count', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e12 }), (most) => {
      const step = niceStep(most, true)
      expect([Number.isInteger(step), step * 4 >= most, step <= Math.max(most * 2.5, 1)]).toEqual([true, true, true])
    }),
  )
})

test('labels begin at the first bar, at one distance, and are at most six', () => {
  expect(labeledBars(24)).toEqual([0, 4, 8, 12, 16, 20])
  expect(labeledBars(30)).toEqual([0, 5, 10, 15, 20, 25])
  expect([labeledBars(1), labeledBars(0)]).toEqual([[0], []])
  for (let bars = 1; bars <= 92; bars++) {
    const all = labeledBars(bars)
    expect({ bars, most: all.length <= 6, last: (all.at(-1) ?? 0) < bars }).toEqual({ bars, most: true, last: true })
    expect(new Set(all.slice(1).map((at, index) => at - (all[index] ?? 0))).size).toBeLessThanOrEqual(1)
  }
})
