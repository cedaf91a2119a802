// What repeats does not overlap, and a failure does not end it.
import { expect, test } from 'bun:test'
import { every } from '../../src/scheduling/every.ts'
import { until } from '../support/until.ts'

test('no call begins while another runs, and each failure is reported', async () => {
  const failures: unknown[] = []
  const ends: (() => void)[] = []
  let calls = 0
  const stop = every(
    1,
    () => {
      calls += 1
      return new Promise((_, reject) => ends.push(() => reject(new Error(`call ${calls}`))))
    },
    (error) => failures.push((error as Error).message),
  )
  await until('the first call', () => calls === 1)
  const others = { calls: 0 }
  const stopOthers = every(1, () => {
    others.calls += 1
  })
  await until('five calls of another timer', () => others.calls >= 5)
  stopOthers()
  expect(calls).toBe(1)
  ends[0]?.()
  await until('the second call', () => calls === 2)
  expect(failures).toEqual(['call 1'])
  stop()
  ends[1]?.()
  await until('the second failure', () => failures.length === 2)
  const before = others.calls
  const stopLast = every(1, () => {
    others.calls += 1
  })
  await until('five more', () => others.calls >= before + 5)
  stopLast()
  expect(calls).toBe(2)
})
