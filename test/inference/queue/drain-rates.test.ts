import { expect, test } from 'bun:test'
import { createDrainRates } from '../../../src/inference/queue/drain-rates.ts'

function ratesAt() {
  const clock = { now: 0 }
  const rates = createDrainRates(() => clock.now)
  const free = (...times: number[]) => {
    for (const at of times) {
      clock.now = at
      rates.note('gpu')
    }
  }
  return { clock, rates, free }
}

test('says after how many seconds so many places become free', () => {
  const { rates, free } = ratesAt()
  free(0, 2_000, 4_000)
  expect([rates.secondsFor('gpu', 1), rates.secondsFor('gpu', 5)]).toEqual([2, 10])
})

test('says more the longer no place has become free, up to a bound', () => {
  const { clock, rates, free } = ratesAt()
  free(0, 1_000)
  clock.now = 9_000
  expect(rates.secondsFor('gpu', 1)).toBe(9)
  clock.now = 1e9
  expect(rates.secondsFor('gpu', 1)).toBe(120)
})

test('guesses where it knows nothing, also after a load that is over', () => {
  const { clock, rates, free } = ratesAt()
  expect(rates.secondsFor('gpu', 1)).toBe(5)
  free(0, 1_000)
  rates.forget('gpu')
  clock.now = 60_000
  expect(rates.secondsFor('gpu', 1)).toBe(5)
})
