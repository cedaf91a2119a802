// Reports that take long: computed once for all who ask, kept for twenty times as long as they took, and computed again afterward.
import { expect, test } from 'bun:test'
import { createSlowReports } from '../../../src/admin/operation/slow-reports.ts'

let time = 0
const reports = createSlowReports(() => time)
let computed = 0
const take = (milliseconds: number) => async () => {
  await Promise.resolve()
  time += milliseconds
  computed += 1
  return computed
}

test('a slow report is shared and kept, but not for long, and not under another name', async () => {
  const [one, other] = await Promise.all([reports('a', take(300)), reports('a', take(300))])
  expect([one, other]).toEqual([1, 1])
  time += 5_999
  expect(await reports('a', take(300))).toBe(1)
  expect(await reports('b', take(300))).toBe(2)
  time += 10
  expect(await reports('a', take(300))).toBe(3)
})

test('a quick report is computed each time', async () => {
  const first = await reports('quick', take(10))
  expect(await reports('quick', take(10))).toBe(first + 1)
})

test('a report that fails is not kept', async () => {
  const fail = () => Promise.reject(new Error('no'))
  await expect(reports('failing', fail)).rejects.toThrow('no')
  expect(await reports('failing', take(300))).toBe(computed)
})
