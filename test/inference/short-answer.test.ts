// A short answer of known length is read in one go: what the client gets of one that is whole, and of one that is cut.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer, type Server } from 'node:net'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'

const answer = '{"model":"m","usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}'
let status = '200 OK'
let type = 'application/json'
let announced = answer.length
let sent = answer.length
let upstream: Server
let federation: Federation
beforeAll(async () => {
  upstream = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      const head = `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\nconnection: close\r\ncontent-length: ${announced}\r\n\r\n`
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

const send = () =>
  fetch(`${federation.server.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${federation.key.key}` },
    body: '{"model":"m"}',
  })
const ask = async () => (await send()).text()
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

for (const empty of ['200 OK', '204 No Content']) {
  test(`an empty answer with ${empty} is passed on, and recorded as complete`, async () => {
    status = empty
    type = 'text/plain'
    announced = 0
    sent = 0
    const response = await send()
    expect([response.status, await response.text()]).toEqual([Number(empty.slice(0, 3)), ''])
    const recorded = { status: response.status, completed: true, client_left: false }
    expect(await lastRow()).toMatchObject(recorded)
  })
}
