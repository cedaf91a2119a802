// The bucket of a network: a burst, then as many as flow in, forgotten when too many others come.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createRateLimiter } from '../../src/http/rate-limit.ts'
import { rateBucketsMax } from '../../src/limits.ts'

const limit = { perMinute: 60, burst: 3 }
const take = (limiter: ReturnType<typeof createRateLimiter>, times: number, now: number, address = 'a') =>
  Array.from({ length: times }, () => limiter.take(address, now))

test('a burst passes, and then one a second', () => {
  const limiter = createRateLimiter(() => limit)
  expect(take(limiter, 5, 0)).toEqual([0, 0, 0, 1, 1])
  expect(take(limiter, 2, 1_000)).toEqual([0, 1])
  expect(take(limiter, 2, 1_500)).toEqual([1, 1])
  expect(take(limiter, 5, 60_000)).toEqual([0, 0, 0, 1, 1])
})

test('the returned wait is long enough', () => {
  const settings = fc.record({ perMinute: fc.integer({ min: 1, max: 1_000 }), burst: fc.integer({ min: 1, max: 9 }) })
  fc.assert(
    fc.property(settings, fc.nat(100_000), (given, now) => {
      const limiter = createRateLimiter(() => given)
      let wait = 0
      while (wait === 0) wait = limiter.take('a', now)
      expect(limiter.take('a', now + wait * 1_000)).toBe(0)
    }),
  )
})

test('no order of requests lets more through than the burst and what flowed in', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(3_000), { maxLength: 100 }), (steps) => {
      const limiter = createRateLimiter(() => limit)
      let now = 0
      let passed = 0
      for (const step of steps) {
        now += step
        if (limiter.take('a', now) === 0) passed++
      }
      expect(passed).toBeLessThanOrEqual(limit.burst + now / 1_000)
    }),
  )
})

test('each network has its own bucket; addresses of one network share it', () => {
  const limiter = createRateLimiter(() => ({ perMinute: 1, burst: 1 }))
  expect(['1.1.1.1', '1.1.1.2', '2001:db8::1'].map((address) => limiter.take(address, 0))).toEqual([0, 0, 0])
  expect(limiter.take('2001:db8::ffff', 0)).toBeGreaterThan(0)
})

test('a clock that goes back gives nothing', () => {
  const limiter = createRateLimiter(() => limit)
  take(limiter, 3, 10_000)
  expect(limiter.take('a', 0)).toBeGreaterThan(0)
})

test('only so many networks are remembered, those heard last', () => {
  const limiter = createRateLimiter(() => ({ perMinute: 1, burst: 1 }))
  limiter.take('kept', 0)
  limiter.take('forgotten', 0)
  for (let index = 0; index < rateBucketsMax - 1; index++) limiter.take(`n${index}`, 0)
  expect(limiter.take('kept', 0)).toBe(0)
  limiter.take('kept', 0)
  for (let index = 0; index < rateBucketsMax - 2; index++) limiter.take(`m${index}`, 0)
  expect(limiter.take('kept', 0)).toBeGreaterThan(0)
})

test('a network heard again outlives those heard before that', () => {
  const limiter = createRateLimiter(() => ({ perMinute: 1, burst: 1 }))
  const hear = (address: string) => limiter.take(address, 0)
  hear('again')
  for (let index = 0; index < rateBucketsMax - 1; index++) hear(`n${index}`)
  hear('again')
  hear('new')
  // The new network replaced n0; the others have nothing left of their burst.
  expect(hear('again')).toBeGreaterThan(0)
  expect(hear('n0')).toBe(0)
})
