// Which requests have an unknown cost, by what the ledger has of them.
import { expect, test } from 'bun:test'
import { freeEndpoints, isCostUnknown } from '../../../db/schema/unknown-cost.ts'
import { inferencePaths } from '../../../src/values/inference-paths.ts'

const unknown = { costNanodollars: null, status: 200, endpoint: '/chat/completions' }

test.each([
  ['a response without a cost', {}, true],
  ['a cost', { costNanodollars: 7 }, false],
  ['a cost of nothing', { costNanodollars: 0 }, false],
  ['a failed request', { status: 400 }, false],
  ['the last status that is no failure', { status: 399 }, true],
  ['a token count', { endpoint: '/tokenize' }, false],
])('%s', (_what, change, expected) => {
  expect(isCostUnknown({ ...unknown, ...change })).toBe(expected)
})

test('the free endpoints are those that are not charged', () => {
  const free = Object.values(inferencePaths).filter(({ isCharged }) => !isCharged)
  expect(freeEndpoints.toSorted()).toEqual([...new Set<string>(free.map(({ endpoint }) => endpoint))].toSorted())
})
