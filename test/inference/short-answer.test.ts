// A short answer of known length is read in one go: what the client gets of one that is whole, and of one that is cut.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer, type Server } from 'node:net'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'

const answer = '{"model":"m","usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}'
let sent = answer.length
let upstream: Server
let federation: Federation
beforeAll(async () => {
  upstream = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${answer.length}\r\n\r\n`
      socket.write(head + answer.slice(0, sent), () => setTimeout(() => socket.destroy(), 20))
    })
  })
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  const { port } = upstream.address() as { port: number }
  federation = await startFederation({ upstreamUrl: `http://127.0.0.1:${port}/v1` })
})
afterAll(async () => {
  await federation.stop()
  upstream.close()
})

const ask = async () => {
  const response = await fetch(`${federation.server.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${federation.key.key}` },
    body: '{"model":"m"}',
  })
  return response.text()
}
const lastRow = async () => {
  const { data } = await federation.admin<{ data: (Row & Record<string, unknown>)[] }>('usage.requests', { limit: 1 })
  return data[0]
}

test('a whole answer arrives as it was sent, with its length, and its usage is recorded', async () => {
  sent = answer.length
  expect(await ask()).toBe(answer)
  expect(await lastRow()).toMatchObject({ status: 200, completed: true, total_tokens: 7 })
})

for (const length of [0, 1, answer.length - 1]) {
  test(`an answer that is cut after ${length} bytes is cut for the client as well, and recorded as that`, async () => {
    sent = length
    await expect(ask()).rejects.toThrow()
    expect(await lastRow()).toMatchObject({ status: 200, completed: false, client_left: false, total_tokens: null })
  })
}
