// A body that is judged as JSON reaches the upstream as JSON: what another reader would take for a form goes nowhere.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { inferencePaths } from '../../src/values/inference-paths.ts'
import { type Inference, question, startInference, type UsageRow } from '../support/inference.ts'

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

/** Bytes have no media type, so only the given header is sent. */
function send(path: string, contentType: string | undefined): Promise<Response> {
  return fetch(latchkey.server.baseUrl + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${latchkey.key.key}`,
      ...(contentType === undefined ? {} : { 'content-type': contentType }),
    },
    body: new TextEncoder().encode(JSON.stringify(question)),
  })
}

describe('the upstream gets application/json', () => {
  for (const contentType of [undefined, 'application/json', 'application/json; charset=utf-8', 'Application/JSON'])
    test(`of a request with ${contentType ?? 'no Content-Type'}`, async () => {
      expect((await send('/chat/completions', contentType)).status).toBe(200)
      expect(latchkey.upstream.requests[0]?.headers.get('content-type')).toBe('application/json')
    })
})

describe('415 is the answer', () => {
  const refused = [
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/plain;charset=UTF-8',
    'text/json',
    'application/json, application/x-www-form-urlencoded',
    'application/json; charset=utf-16',
    'application/json; boundary=x',
    'application/jsonx',
  ]
  for (const contentType of refused)
    test(`to ${contentType}`, async () => {
      const response = await send('/chat/completions', contentType)
      expect(response.status).toBe(415)
      const message = `"${contentType}" is not a supported Content-Type: the body must be JSON; send Content-Type: application/json`
      expect(await response.json()).toEqual({
        error: { code: 415, message, metadata: { error_type: expect.any(String) } },
      })
      expect(latchkey.upstream.requests).toEqual([])
    })

  const withBody = Object.values(inferencePaths).filter(({ body }) => body !== 'none')
  for (const { endpoint: path } of withBody)
    test(`on ${path}, without a row in the ledger`, async () => {
      const response = await send(path, 'application/x-www-form-urlencoded')
      expect(response.status).toBe(415)
      expect(await response.json()).toMatchObject({ error: { code: 415 } })
      const { data } = await latchkey.admin<{ data: UsageRow[] }>('usage.requests', { limit: 100 })
      expect(data.map(({ status }) => status)).not.toContain(415)
    })

  test('only to a caller with a credential', async () => {
    const headers = { 'content-type': 'text/plain' }
    const response = await fetch(`${latchkey.server.baseUrl}/responses`, { method: 'POST', headers, body: 'x' })
    expect(response.status).toBe(401)
  })
})
