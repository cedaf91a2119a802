// Requests and tokens a minute of one key: at once up to the bound, then as fast as the bucket refills.
import { expect, test } from 'bun:test'
import { createKeyRates } from '../../src/keys/key-rates.ts'

const key = (requestsPerMinute: number | null, tokensPerMinute: number | null, id = 'k') => ({
  id,
  requestsPerMinute,
  tokensPerMinute,
})

test('a key without bounds is never held up', () => {
  const rates = createKeyRates()
  for (let count = 0; count < 1_000; count++) expect(rates.take(key(null, null), 0)).toBe(0)
})

test('requests pass up to the bound at once, and then as the minute goes on; each key for itself', () => {
  const rates = createKeyRates()
  expect([1, 2, 3].map(() => rates.take(key(2, null), 0))).toEqual([0, 0, 30])
  expect(rates.take(key(2, null, 'other'), 0)).toBe(0)
  expect(rates.take(key(2, null), 29_000)).toBe(1)
  expect(rates.take(key(2, null), 30_000)).toBe(0)
  expect(rates.take(key(2, null), 30_000)).toBe(30)
})

test('a request that is refused takes nothing', () => {
  const rates = createKeyRates()
  rates.take(key(1, null), 0)
  for (let second = 0; second < 59; second++) expect(rates.take(key(1, null), second * 1_000)).toBeGreaterThan(0)
  expect(rates.take(key(1, null), 60_000)).toBe(0)
})

test('tokens that an answer used beyond the bound hold the key up until they are paid back', () => {
  const rates = createKeyRates()
  expect(rates.take(key(null, 60), 0)).toBe(0)
  rates.use('k', 120, 0)
  expect(rates.take(key(null, 60), 0)).toBe(61)
  expect(rates.take(key(null, 60), 61_000)).toBe(0)
})

test('a changed bound counts at once, and what was used too much stays owed', () => {
  const rates = createKeyRates()
  expect([rates.take(key(1, null), 0), rates.take(key(1, null), 0)]).toEqual([0, 60])
  expect(rates.take(key(100, null), 0)).toBe(0)
  rates.take(key(null, 100), 0)
  rates.use('k', 50_000, 0)
  expect(rates.take(key(null, 101), 0)).toBeGreaterThan(1_000)
})
