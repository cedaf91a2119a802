// An inference server that closes kept connections without announcing it, as llama.cpp does after a stream.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { answer } from '../../support/inference.ts'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'

let latchkey: TestServer
let server: Server
let key: string
/** How many requests each connection got, and which of them it answers. */
let connections: { requests: number }[] = []
let answers: (connection: number, request: number) => boolean
const sockets = new Set<Socket>()

beforeAll(async () => {
  const body = JSON.stringify(answer)
  const response = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  server = createServer((socket) => {
    sockets.add(socket)
    const connection = { requests: 0 }
    const number = connections.push(connection)
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      if (!String(bytes).includes('POST ')) return
      connection.requests += 1
      if (answers(number, connection.requests)) socket.write(response)
      else socket.resetAndDestroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  latchkey = await startTestServer()
  key = (await latchkey.admin<{ key: string }>('keys.create', { name: 'caller' })).key
  await latchkey.admin('upstreams.add', { name: 'gpu', base_url: `http://127.0.0.1:${port}/v1` })
})
beforeEach(() => {
  for (const socket of sockets) socket.destroy()
  connections = []
})
afterAll(async () => {
  await latchkey.stop()
  for (const socket of sockets) socket.destroy()
  server.close()
})

async function post() {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'm', messages: [] })
  const response = await fetch(`${latchkey.server.baseUrl}/chat/completions`, { method: 'POST', headers, body })
  await response.text()
  return response.status
}

describe('a request on a connection that its server closes', () => {
  test('is sent again on a new one', async () => {
    answers = (_, request) => request === 1
    expect([await post(), await post(), await post()]).toEqual([200, 200, 200])
    expect(connections.reduce((sum, { requests }) => sum + requests, 0)).toBeGreaterThan(3)
  })

  test('is sent twice at most', async () => {
    answers = () => false
    expect(await post()).toBe(502)
    expect(connections.map(({ requests }) => requests)).toEqual([1, 1])
  })
})
