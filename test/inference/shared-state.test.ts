// Bodies that use state which upstreams keep: work in the background is always refused, references to what is stored
// where the setting says so.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type Inference, startInference } from '../support/inference.ts'

let open: Inference
let closed: Inference
beforeAll(async () => {
  open = await startInference()
  closed = await startInference({ LATCHKEY_REFUSE_SHARED_STATE: 'true' })
})
beforeEach(() => {
  open.reset()
  closed.reset()
})
afterAll(async () => {
  await open.stop()
  await closed.stop()
})

type Answer = { error?: { message: string } }

async function ask({ server, key, upstream }: Inference, endpoint: string, fields: object) {
  const response = await fetch(server.baseUrl + endpoint, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', ...fields }),
  })
  const { error } = (await response.json()) as Answer
  return { status: response.status, message: error?.message, forwarded: upstream.requests.length }
}

describe('a response in the background', () => {
  for (const background of [true, 'true', 1, {}])
    test(`is refused and not forwarded: ${JSON.stringify(background)}`, async () => {
      const { message, ...rest } = await ask(open, '/responses', { background })
      expect(rest).toEqual({ status: 400, forwarded: 0 })
      expect(message).toContain('background must be false')
      expect(message).toContain('Set stream to true')
    })

  test('is refused in another case, which some upstreams accept', async () => {
    expect(await ask(open, '/responses', { Background: true })).toMatchObject({ status: 400, forwarded: 0 })
  })

  for (const background of [false, null])
    test(`that is not asked for passes: ${background}`, async () => {
      expect(await ask(open, '/responses', { background })).toMatchObject({ status: 200, forwarded: 1 })
    })

  test('means nothing to the other endpoints', async () => {
    expect(await ask(open, '/chat/completions', { background: true })).toMatchObject({ status: 200, forwarded: 1 })
  })
})

const fileSearch = { type: 'file_search', vector_store_ids: ['vs_1'] }
const interpreter = { type: 'code_interpreter', container: { type: 'auto', file_ids: ['file_1'] } }
const user = (part: object) => [{ role: 'user', content: [part] }]
const stored: [named: string, endpoint: string, fields: object][] = [
  ['previous_response_id', '/responses', { previous_response_id: 'resp_1' }],
  ['conversation', '/responses', { conversation: 'conv_1' }],
  ['conversation', '/responses', { conversation: { id: 'conv_1' } }],
  ['item_reference', '/responses', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
  ['item_reference', '/responses', { input: [{ id: 'msg_1' }] }],
  ['file_id', '/responses', { input: user({ type: 'input_file', file_id: 'file_1' }) }],
  ['vector_store_ids', '/responses', { tools: [fileSearch] }],
  ['file_ids', '/responses', { tools: [interpreter] }],
  ['container', '/responses', { tools: [{ type: 'code_interpreter', container: 'container_1' }] }],
  ['file_id', '/chat/completions', { messages: user({ type: 'file', file: { file_id: 'file_1' } }) }],
  ['file_id', '/messages', { messages: user({ type: 'document', source: { type: 'file', file_id: 'file_1' } }) }],
  ['container', '/messages', { container: 'container_1' }],
]
const own: [name: string, endpoint: string, fields: object][] = [
  ['null', '/responses', { previous_response_id: null, conversation: null }],
  ['an item with a role and an id', '/responses', { input: [{ role: 'assistant', id: 'msg_1', content: 'x' }] }],
  ['an output of a tool', '/responses', { input: [{ type: 'function_call_output', call_id: 'c', output: 'x' }] }],
  [
    'a schema with these names',
    '/responses',
    { tools: [{ type: 'function', parameters: { properties: { file_id: { type: 'string' }, conversation: {} } } }] },
  ],
  ['metadata', '/responses', { metadata: { file_id: 'mine', container: 'blue' } }],
  ['content that speaks of them', '/responses', { input: '{"previous_response_id":"resp_1","file_id":"file_1"}' }],
]

describe('where shared state is refused', () => {
  for (const [named, endpoint, fields] of stored)
    test(`${JSON.stringify(fields)} is, by name, and not forwarded`, async () => {
      const { message, ...rest } = await ask(closed, endpoint, fields)
      expect(rest).toEqual({ status: 400, forwarded: 0 })
      expect(message).toContain(`does not accept`)
      expect(message).toContain(named)
    })

  for (const [name, endpoint, fields] of own)
    test(`${name} passes`, async () => {
      expect(await ask(closed, endpoint, fields)).toMatchObject({ status: 200, forwarded: 1 })
    })
})

test('shared state passes where nothing is set, but for a response that the key did not make', async () => {
  for (const [named, endpoint, fields] of stored)
    expect(await ask(open, endpoint, fields)).toMatchObject({ status: named === 'previous_response_id' ? 404 : 200 })
})
