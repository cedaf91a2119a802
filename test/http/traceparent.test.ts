// The traceparent header, parsed as strictly as W3C Trace Context asks.
import { describe, expect, test } from 'bun:test'
import { parseTraceparent } from '../../src/http/traceparent.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const parentId = 'b7ad6b7169203331'

describe('a valid header has a trace id:', () => {
  const valid = [
    `00-${traceId}-${parentId}-01`,
    `00-${traceId}-${parentId}-00`,
    `01-${traceId}-${parentId}-01`,
    `cc-${traceId}-${parentId}-01-what-the-future-adds`,
  ]
  for (const text of valid) test(text, () => expect(parseTraceparent(text)).toEqual({ traceId }))
})

describe('any other text has none:', () => {
  const invalid = [
    '',
    '00-1-2-01',
    `00-${traceId}-${parentId}`,
    `00-${traceId}-${parentId}-01-more`,
    `01-${traceId}-${parentId}-01more`,
    `ff-${traceId}-${parentId}-01`,
    `00-${traceId.toUpperCase()}-${parentId}-01`,
    `00-${'0'.repeat(32)}-${parentId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    ` 00-${traceId}-${parentId}-01`,
    `00-${traceId}-${parentId}-01, 00-${traceId}-${parentId}-01`,
  ]
  for (const text of invalid) test(JSON.stringify(text), () => expect(parseTraceparent(text)).toBeUndefined())
  test('a missing header', () => expect(parseTraceparent(null)).toBeUndefined())
})
