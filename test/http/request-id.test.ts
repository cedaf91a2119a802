// Request ids: UUIDs of version 7 that carry the millisecond and sort by it (RFC 9562 §5.7).
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createRequestId } from '../../src/http/request-id.ts'

const moment = fc.integer({ min: 0, max: 2 ** 48 - 1 })

test('an id is a UUID of version 7 whose first 48 bits are the time', () => {
  fc.assert(
    fc.property(moment, (now) => {
      const id = createRequestId(now)
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toBe(now)
    }),
  )
})

test('ids sort by time', () => {
  fc.assert(
    fc.property(moment, moment, (one, other) => {
      fc.pre(one !== other)
      expect(createRequestId(one) < createRequestId(other)).toBe(one < other)
    }),
  )
})

test('ids of the same millisecond differ', () => {
  expect(new Set(Array.from({ length: 1_000 }, () => createRequestId(1))).size).toBe(1_000)
})
