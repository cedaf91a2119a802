// Checks what every token endpoint response must and must not contain, and its one audit record.
import { expect } from 'bun:test'
import type { TestServer } from './latchkey.ts'

export type AuditEntry = {
  request_id: string
  outcome: string
  error: string | null
  reason: string | null
  detail: string | null
  organization_id: string | null
  policy_id: string | null
  policy_named: string | null
  issuer_id: string | null
  key_id: string | null
  subject: string | null
  subject_token_id: string | null
  subject_token_sha256: string | null
  access_token_id: string | null
  access_token_expires_at: string | null
}
export type TokenReply = {
  access_token: string
  issued_token_type: string
  token_type: string
  expires_in: number
  scope: string
}

const requestIdText = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const headersOfRefusal = [
  'cache-control',
  'content-length',
  'content-type',
  'date',
  'pragma',
  'request-id',
  'x-request-id',
]

/** Finds the audit records of a response by its request id. */
export async function auditOf(test: Pick<TestServer, 'admin'>, response: Response): Promise<AuditEntry[]> {
  const { data } = await test.admin<{ data: AuditEntry[] }>('audit.list', { limit: 10_000 })
  return data.filter((entry) => entry.request_id === response.headers.get('x-request-id'))
}

/** Parts of a token that must not appear anywhere: the whole token, its payload, its signature. */
export function expectNoTokenText(text: string, token: string): void {
  for (const part of [token, ...token.split('.').slice(1)]) {
    if (part.length > 20 && text.includes(part))
      throw new Error(`It holds ${part.slice(0, 40)}…, which is a part of a token`)
  }
}

export function expectNoStore(response: Response): void {
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(response.headers.get('pragma')).toBe('no-cache')
  expect(response.headers.get('x-request-id')).toMatch(requestIdText)
}

export async function expectIssued(
  test: Pick<TestServer, 'admin' | 'logLines'>,
  response: Response,
  token = '',
): Promise<{ reply: TokenReply; audit: AuditEntry }> {
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 200 })
  expectNoStore(response)
  expect(response.headers.get('content-type')).toBe('application/json')
  const reply = JSON.parse(text) as TokenReply
  expect(Object.keys(reply).toSorted()).toEqual([
    'access_token',
    'expires_in',
    'issued_token_type',
    'scope',
    'token_type',
  ])
  const records = await auditOf(test, response)
  expect(records).toHaveLength(1)
  const audit = records[0] as AuditEntry
  expect(audit).toMatchObject({ outcome: 'issued', error: null, reason: null })
  for (const secret of [token, reply.access_token]) expectNoTokenText(JSON.stringify(records) + test.logLines, secret)
  return { reply, audit }
}

export type Expected = { status: number; error: string; reason: string; detail?: string; extraHeaders?: string[] }

/** Returns the body without its request id, as text, and the only audit record. */
export async function expectRefused(
  test: Pick<TestServer, 'admin' | 'logLines'>,
  response: Response,
  { status, error, reason, detail, extraHeaders = [] }: Expected,
  token = '',
): Promise<{ text: string; audit: AuditEntry }> {
  const text = await response.text()
  const records = await auditOf(test, response)
  expect({ status: response.status, text, reasons: records.map((record) => record.reason) }).toMatchObject({
    status,
    reasons: [reason],
  })
  expectNoStore(response)
  const names = [...response.headers.keys()].filter((name) => name !== 'connection' && name !== 'keep-alive')
  expect(names.toSorted()).toEqual([...headersOfRefusal, ...extraHeaders].toSorted())
  expect(response.headers.get('content-type')).toBe('application/json')
  const body = JSON.parse(text) as Record<string, unknown>
  expect(Object.keys(body).toSorted()).toEqual(['error', 'error_description', 'request_id'])
  expect(body.request_id).toBe(response.headers.get('x-request-id'))
  expect(body.error).toBe(error)
  expect(String(body.error_description).length).toBeGreaterThan(10)
  const audit = records[0] as AuditEntry
  const none = { access_token_id: null, access_token_expires_at: null }
  expect(audit).toMatchObject({ outcome: 'refused', error, ...none, ...(detail === undefined ? {} : { detail }) })
  expectNoTokenText(text + JSON.stringify(records) + test.logLines, token)
  return { text: text.replace(String(body.request_id), ''), audit }
}
