// Which errors of a connection to a database server prove that nothing was sent. A request that was sent may have been
// committed, so each case counts what the server has received.
import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createSecureServer } from 'node:tls'
import { LibsqlError } from '@libsql/client'
import { openServerDatabase } from '../../db/remote/server-database.ts'
import { asNotReached, isUnknownOutcome } from '../../db/remote/server-errors.ts'
import { connectTo } from '../../src/nodes/server-connection.ts'
import { startHranaServer } from '../support/hrana-server.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { rejectionOf } from '../support/rejection.ts'
import { hasOpenssl, makeCertificate } from '../support/tls.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

const send = connectTo({ caFile: undefined })
const post = async (url: string) => {
  const response = await send(new Request(url, { method: 'POST', body: 'commit' }), AbortSignal.timeout(5_000))
  await response.arrayBuffer()
}
const isNotSent = (error: unknown) => error instanceof LibsqlError && error.code === 'DATABASE_NOT_REACHED'
const listen = (server: Server) =>
  new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })

/** Responds to the first request of a connection, and does this to the second one. */
async function startRude(toSecond: (socket: Socket, server: Server) => void) {
  const received: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      received.push(bytes.toString())
      if (received.length === 1) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
      else toSecond(socket, server)
    })
  })
  return { url: `http://127.0.0.1:${await listen(server)}/`, received, server }
}

test('a refused connection and an unknown name do', async () => {
  const { url, server } = await startRude(() => {})
  await new Promise((resolve) => server.close(resolve))
  expect(isNotSent(await rejectionOf(post(url)))).toBe(true)
  expect(isNotSent(await rejectionOf(post(`http://${'x'.repeat(64)}.invalid/`)))).toBe(true)
})

for (const [how, end] of [
  ['is closed', (socket: Socket) => socket.destroy()],
  ['is reset', (socket: Socket) => socket.resetAndDestroy()],
  ['ends', (socket: Socket) => socket.end()],
] as const)
  test(`a used connection that ${how} after the request does not, although the next one is refused`, async () => {
    const { url, received } = await startRude((socket, server) => {
      server.close()
      end(socket)
    })
    await post(url)
    const error = await rejectionOf(post(url))
    expect(received.at(-1)).toContain('commit')
    expect(isNotSent(error)).toBe(false)
  })

test('a redirect is not followed, so its errors are not mistaken for those of the first request', async () => {
  const { url: gone, server: other } = await startRude(() => {})
  await new Promise((resolve) => other.close(resolve))
  const { url, server } = await startRude((socket) =>
    socket.end(`HTTP/1.1 307 Moved\r\nlocation: ${gone}\r\ncontent-length: 0\r\n\r\n`),
  )
  await post(url)
  const response = await send(new Request(url, { method: 'POST', body: 'commit' }), AbortSignal.timeout(5_000))
  expect(response.status).toBe(307)
  server.close()
})

test('a status of a proxy that waited too long does not: the commit can have been made', async () => {
  const server = await startHranaServer({ path: join(folder.path, 'proxied.db') })
  let isSlow = false
  let sent = 0
  const sendThroughProxy = async (request: Request) => {
    if (isSlow && sent++ > 0) throw asNotReached(new Error('gone'))
    const response = await fetch(request)
    if (!isSlow) return response
    await response.arrayBuffer()
    return new Response('', { status: 408 })
  }
  const options = { url: server.url, token: undefined, create: true, outcomeMillisecondsMax: 50 }
  const opened = await openServerDatabase({ ...options, send: sendThroughProxy })
  if ('refused' in opened) throw new Error(opened.message)
  await opened.commit([{ sql: 'create table notes (text text)', args: [] }])
  isSlow = true
  const error = await rejectionOf(() => opened.commit([{ sql: "insert into notes values ('made')", args: [] }]))
  expect(isUnknownOutcome(error)).toBe(true)
  isSlow = false
  expect((await opened.client.execute('select text from notes')).rows).toHaveLength(1)
  await opened.close()
  await server.close()
})

test.skipIf(!hasOpenssl)('a rejected certificate does, and nothing arrives (needs openssl)', async () => {
  const { certFile, keyFile } = makeCertificate(folder.path, 'database')
  let received = 0
  const options = { cert: readFileSync(certFile), key: readFileSync(keyFile) }
  const server = createSecureServer(options, (socket) => {
    socket.on('error', () => {})
    socket.on('data', () => {
      received += 1
    })
  })
  const port = await listen(server)
  expect(isNotSent(await rejectionOf(post(`https://127.0.0.1:${port}/`)))).toBe(true)
  expect(received).toBe(0)
  server.close()
})
