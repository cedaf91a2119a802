// The part of a rate of exchanges that a node admits.
import { expect, test } from 'bun:test'
import { shareOf } from '../../src/nodes/join-rates.ts'

test.each([
  [1, 60],
  [3, 20],
])('of %d nodes, each admits its part of the rate, and the whole burst', (nodes, perMinute) => {
  const follow = { liveNodes: () => nodes }
  expect(shareOf({ perMinute: 60, burst: 10 }, follow)).toEqual({ perMinute, burst: 10 })
  expect(shareOf(undefined, follow)).toBeUndefined()
})
