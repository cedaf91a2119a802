// How a fault becomes an answer: its status, its shape, and for clients of the messages API the type that they look for.
import { describe, expect, test } from 'bun:test'
import { Fault, type FaultCode } from '../../src/fault.ts'
import { errorReply, messagesErrorReply } from '../../src/http/reply.ts'

const rows: [code: FaultCode, status: number, type: string][] = [
  ['invalid', 400, 'invalid_request_error'],
  ['unauthorized', 401, 'authentication_error'],
  ['payment_required', 402, 'billing_error'],
  ['forbidden', 403, 'permission_error'],
  ['not_found', 404, 'not_found_error'],
  ['method_not_allowed', 405, 'invalid_request_error'],
  ['timeout', 408, 'invalid_request_error'],
  ['conflict', 409, 'invalid_request_error'],
  ['too_large', 413, 'request_too_large'],
  ['rate_limited', 429, 'rate_limit_error'],
  ['internal', 500, 'api_error'],
  ['configuration', 500, 'api_error'],
  ['bad_gateway', 502, 'api_error'],
  ['unavailable', 503, 'api_error'],
  ['gateway_timeout', 504, 'api_error'],
]

describe.each(rows)('%s', (code, status, type) => {
  const fault = new Fault(code, 'What was wrong', {
    reason: 'private',
    detail: 'private',
    headers: { 'retry-after': '7' },
  })

  test(`is ${status} with its message, and nothing private`, async () => {
    const response = errorReply(fault)
    expect(response.status).toBe(status)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('retry-after')).toBe('7')
    expect(await response.json()).toEqual({ error: { code: status, message: 'What was wrong' } })
  })

  test(`is ${type} in the messages API`, async () => {
    const response = messagesErrorReply(fault)
    expect(response.status).toBe(status)
    expect(response.headers.get('cache-control')).toBe('no-store')
    const error = { type, code: status, message: 'What was wrong' }
    expect(await response.json()).toEqual({ type: 'error', error })
  })
})
