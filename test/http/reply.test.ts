// How a fault becomes an answer: its status, its shape, and for clients of the messages API the type that they look for.
import { describe, expect, test } from 'bun:test'
import { Fault, type FaultCode } from '../../src/fault.ts'
import { errorReply, messagesErrorReply } from '../../src/http/reply.ts'

const rows: [code: FaultCode, status: number, type: string, errorType: string][] = [
  ['invalid', 400, 'invalid_request_error', 'invalid_request'],
  ['unauthorized', 401, 'authentication_error', 'authentication'],
  ['payment_required', 402, 'billing_error', 'payment_required'],
  ['forbidden', 403, 'permission_error', 'permission_denied'],
  ['not_found', 404, 'not_found_error', 'not_found'],
  ['method_not_allowed', 405, 'invalid_request_error', 'invalid_request'],
  ['timeout', 408, 'invalid_request_error', 'timeout'],
  ['conflict', 409, 'invalid_request_error', 'conflict'],
  ['too_large', 413, 'request_too_large', 'payload_too_large'],
  ['rate_limited', 429, 'rate_limit_error', 'rate_limit_exceeded'],
  ['internal', 500, 'api_error', 'server'],
  ['configuration', 500, 'api_error', 'server'],
  ['bad_gateway', 502, 'api_error', 'provider_unavailable'],
  ['unavailable', 503, 'api_error', 'server'],
  ['gateway_timeout', 504, 'api_error', 'timeout'],
]

describe.each(rows)('%s', (code, status, type, errorType) => {
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
    const metadata = { error_type: errorType }
    expect(await response.json()).toEqual({ error: { code: status, message: 'What was wrong', metadata } })
  })

  test(`is ${type} in the messages API`, async () => {
    const response = messagesErrorReply(fault)
    expect(response.status).toBe(status)
    expect(response.headers.get('cache-control')).toBe('no-store')
    const error = { type, code: status, message: 'What was wrong', metadata: { error_type: errorType } }
    expect(await response.json()).toEqual({ type: 'error', error })
  })
})
