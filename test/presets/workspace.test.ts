// The workspace that newer clients name on the preset endpoints: that of the key is accepted, any other is not found; and the header with a
// session id.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Row, startTestServer, type TestServer } from '../support/latchkey.ts'

let latchkey: TestServer
let key: string
let workspace: string
beforeAll(async () => {
  latchkey = await startTestServer()
  ;({ key } = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'admin', kind: 'management' }))
  const { body } = await send('POST', '/presets/support/chat/completions', chat)
  workspace = String((body as { data: Row }).data.workspace_id)
})
afterAll(() => latchkey.stop())

const chat = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
async function send(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
  const response = await fetch(latchkey.server.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as object }
}

const notFound = {
  status: 404,
  body: { error: { code: 404, message: 'Resource not found', metadata: { error_type: expect.any(String) } } },
}
const requests: [method: string, path: string, body?: object][] = [
  ['GET', '/presets'],
  ['GET', '/presets/support'],
  ['GET', '/presets/support/versions'],
  ['GET', '/presets/support/versions/1'],
  ['DELETE', '/presets/support'],
  ['POST', '/presets/support/restore'],
  ['POST', '/presets/support/chat/completions', chat],
  ['POST', '/presets/support/complete', { messages: chat.messages }],
  ['PATCH', '/presets/support', { description: 'described' }],
]

describe('in the query', () => {
  for (const [method, path, body] of requests)
    test(`of ${method} ${path}, the workspace of the key is accepted, and another is not found`, async () => {
      for (const other of [crypto.randomUUID(), 'default', ''])
        expect(await send(method, `${path}?workspace_id=${other}`, body)).toEqual(notFound)
      expect((await send(method, `${path}?workspace_id=${workspace}`, body)).status).toBe(200)
      expect((await send(method, `${path}?workspaceid=${workspace}`, body)).status).toBe(400)
    })
})

describe('in the body', () => {
  test.each([
    ['DELETE', '/presets/support'],
    ['POST', '/presets/support/restore'],
  ])('of %s %s, the workspace of the key is accepted, and another is not found', async (method, path) => {
    for (const other of [crypto.randomUUID(), 7])
      expect(await send(method, path, { workspace_id: other })).toEqual(notFound)
    expect((await send(method, path, { workspace_id: workspace })).status).toBe(200)
  })
})

test('a post to a preset is refused with a session id of more than 256 characters in its header, as in its body', async () => {
  const path = '/presets/session/chat/completions'
  const post = async (header: string, session_id?: string) =>
    (await send('POST', path, { ...chat, session_id }, { 'x-session-id': header })).status
  expect([await post('x'.repeat(256)), await post('x'.repeat(257)), await post('x', 'x'.repeat(257))]).toEqual([
    200, 400, 400,
  ])
  expect(await post('x'.repeat(257), 'short')).toBe(200)
})

test('a post that is not JSON is a 400', async () => {
  const { status } = await send('POST', '/presets/support/chat/completions', chat, { 'content-type': 'text/plain' })
  expect(status).toBe(400)
})
