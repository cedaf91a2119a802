// Refused inference requests as one process counts them: by key and reason, for 24 hours, with few samples, in bounded memory.
import { expect, test } from 'bun:test'
import { Fault } from '../../src/fault.ts'
import { createRefusals } from '../../src/inference/refusals.ts'

const hour = 3_600_000
const start = 1_000 * hour
const call = { organizationId: 'o', keyId: 'k', policyId: 'p', model: 'm' as unknown }
const overBudget = new Fault('payment_required', 'Over the limit', { reason: 'budget_exceeded' })
const tooMany = new Fault('rate_limited', 'Too many', { reason: 'key_rate', subject: { kind: 'key', id: 'k' } })
const made = () => {
  const refusals = createRefusals(() => start)
  let number = 0
  const note = (at: number, more = {}, fault = overBudget) =>
    refusals.noteFault(fault, { unsettled: { ...call, ...more }, requestId: `r${++number}` }, at)
  return { refusals, note }
}

test('a key and a reason are one row, the latest first', () => {
  const { refusals, note } = made()
  note(start)
  note(start + 1, {}, tooMany)
  note(start + 2_000)
  const shown = refusals.list('o', start + 3_000)
  expect(shown.map(({ reason, requests }) => [reason, requests])).toEqual([
    ['budget_exceeded', 2],
    ['key_rate', 1],
  ])
  expect(shown[0]).toMatchObject({ message: 'Over the limit', lastAt: start + 2_000, keyId: 'k', status: 402 })
  expect(shown.map(({ subject }) => subject)).toEqual([undefined, { kind: 'key', id: 'k' }])
  expect(refusals.list('another', start)).toEqual([])
  expect(refusals.list(undefined, start + 3_000)).toHaveLength(2)
})

test('a flood is counted in full and sampled once a second, five at most', () => {
  const { refusals, note } = made()
  for (let number = 0; number < 10_000; number++) note(start + number)
  const [group] = refusals.list('o', start + 10_000)
  expect(group?.requests).toBe(10_000)
  expect(group?.samples.map(({ at }) => at - start)).toEqual([9_000, 8_000, 7_000, 6_000, 5_000])
})

test('an hour is forgotten after 24 hours, and a key that was refused in none of them is not shown', () => {
  const { refusals, note } = made()
  note(start)
  note(start + 5 * hour)
  const countAt = (at: number) => refusals.list('o', at)[0]?.requests
  expect(countAt(start + 23 * hour)).toBe(2)
  expect(countAt(start + 24 * hour)).toBe(1)
  expect(countAt(start + 29 * hour)).toBeUndefined()
  note(start + 1_000 * hour)
  expect(countAt(start + 1_000 * hour)).toBe(1)
})

test('a clock that is set back loses nothing', () => {
  const { refusals, note } = made()
  note(start + 2 * hour)
  note(start)
  expect(refusals.list('o', start + 2 * hour)[0]?.requests).toBe(2)
})

test('a clock that was far ahead counts and samples as before once it is set back, and forgets what it counted', () => {
  const { refusals, note } = made()
  note(start + 9_000 * hour)
  note(start)
  note(start + 23 * hour)
  const [group] = refusals.list('o', start + 23 * hour)
  expect([group?.requests, group?.lastAt]).toEqual([2, start + 23 * hour])
  expect(group?.samples.slice(0, 2).map(({ at }) => at - start)).toEqual([23 * hour, 0])
  expect(refusals.list('o', start + 24 * hour)[0]?.requests).toBe(1)
})

test('what was refused longest ago makes room for more than 2,000 keys', () => {
  const { refusals, note } = made()
  for (let number = 0; number < 2_000; number++) note(start, { keyId: `k${number}` })
  note(start, { keyId: 'k0' })
  note(start, { keyId: 'new' })
  const keys = refusals.list('o', start).map(({ keyId }) => keyId)
  expect(keys).toHaveLength(2_000)
  expect(keys.slice(0, 2)).toEqual(['new', 'k0'])
  expect(keys).not.toContain('k1')
})

test.each([
  [`Bearer sk-lk-v1-${'0'.repeat(64)}`, 'Bearer sk-lk-v1-…'],
  ['x'.repeat(100_000), 'x'.repeat(256)],
  [{ any: 'thing' }, null],
  [undefined, null],
])('a sample has the model as the ledger would', (model, recorded) => {
  const { refusals, note } = made()
  note(start, { model })
  expect(refusals.list('o', start)[0]?.samples[0]?.model).toBe(recorded)
})

test('what has no caller, was forwarded, or failed here is not counted', () => {
  const { refusals, note } = made()
  refusals.noteFault(overBudget, { requestId: 'r', unsettled: undefined }, start)
  note(start, {}, new Fault('unavailable', 'Stopping'))
  expect(refusals.list(undefined, start)).toEqual([])
})
