// The local proxy beside a server that breaks HTTP: it responds before the body has arrived, or with what no client accepts.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { holdToken } from '../../src/agent/held-token.ts'
import { type LocalListener, listenAt } from '../../src/agent/listener.ts'
import { createProxy } from '../../src/agent/proxy.ts'
import { openRawRequest } from '../support/raw-request.ts'

type Connection = { socket: Socket; requests: number; closed: Promise<void> }
const whole = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const connections: Connection[] = []
let respond: (connection: Connection) => void
let server: Server
let agent: LocalListener
let url: string

beforeAll(async () => {
  server = createServer((socket) => {
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    const connection = { socket, requests: 0, closed }
    connections.push(connection)
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      if (!chunk.toString('latin1').includes(' HTTP/1.1\r\n')) return
      connection.requests += 1
      respond(connection)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const exchange = async () => ({ text: 'token', issuedAt: Date.now(), expiresAt: Date.now() + 900_000 })
  const token = holdToken({ exchange, now: Date.now })
  agent = await listenAt({ hostname: '127.0.0.1', port: 0 }, (port) =>
    createProxy({
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
      token,
      rules: { port, secret: undefined },
    }),
  )
  url = `http://127.0.0.1:${agent.port}/v1/chat/completions`
})
afterAll(async () => {
  await agent.stop(0)
  for (const { socket } of connections) socket.destroy()
  server.close()
})
beforeEach(() => {
  respond = ({ socket }) => void socket.write(whole)
})

test('a damaged response on a kept connection is a 502, and the request is sent once', async () => {
  expect(await (await fetch(url)).text()).toBe('ok')
  const before = connections.reduce((sum, { requests }) => sum + requests, 0)
  respond = ({ socket }) =>
    void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n')
  expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(502)
  expect(connections.reduce((sum, { requests }) => sum + requests, 0)).toBe(before + 1)
})

test('a status that no server may send is a 502, and its connection is closed', async () => {
  respond = ({ socket }) => void socket.write('HTTP/1.1 099 Odd\r\ncontent-length: 2\r\n\r\nok')
  expect((await fetch(url)).status).toBe(502)
  await connections.findLast(({ requests }) => requests > 0)?.closed
})

test('a response to half of a body arrives, and its connection is closed', async () => {
  respond = ({ socket }) => void socket.write(whole.replace('200 OK', '413 Content Too Large'))
  const upload = openRawRequest(url, 'POST', { 'content-length': String(8 * 1024 * 1024) })
  upload.socket.write('x'.repeat(64 * 1024))
  expect((await upload.answer).status).toBe(413)
  await connections.findLast(({ requests }) => requests > 0)?.closed
  upload.socket.destroy()
})
