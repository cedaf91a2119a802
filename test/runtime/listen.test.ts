// Listening: one process listens on an address, a silent connection is closed, and a stop lets running requests end.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Fault } from '../../src/fault.ts'
import { readBody } from '../../src/http/body.ts'
import { listen } from '../../src/runtime/listen.ts'
import type { ListenOptions } from '../../src/runtime/listener.ts'
import { outboundFetch } from '../../src/runtime/outbound.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { openRawRequest } from '../support/raw-request.ts'
import { rejectionOf } from '../support/rejection.ts'
import { until } from '../support/until.ts'

const loopback = { hostname: '127.0.0.1', port: 0 }

test('an address that is taken is refused, not shared', async () => {
  const first = await listen(loopback, async () => new Response('first'))
  try {
    const second = await listen({ ...loopback, port: first.port }, async () => new Response('second')).catch(
      (error: unknown) => error,
    )
    expect(second).toBeInstanceOf(Fault)
    expect(second).toMatchObject({ code: 'configuration', message: expect.stringContaining(`127.0.0.1:${first.port}`) })
  } finally {
    await first.drain()
  }
})

test('a plain path is matched letter by letter, and what would stand for other text in it stands for nothing', async () => {
  const { port, drain } = await listen({ ...loopback, plainPaths: ['/v1/plain', '/:x/y', '/*'] }, async (_, peer) =>
    Response.json(peer.sentSegments ?? 'plain'),
  )
  const sent = async (target: string) => {
    const { socket, answer } = openRawRequest(`http://127.0.0.1:${port}`, 'GET', { connection: 'close' }, target)
    const { body } = await answer
    socket.destroy()
    return JSON.parse(body)
  }
  try {
    for (const target of ['/v1/plain', '/v1/plain?a=/../b']) expect(await sent(target)).toBe('plain')
    for (const [target, segments] of [
      ['/v1/other', ['v1', 'other']],
      ['/../y', ['..', 'y']],
      ['/v1/x/../plain', ['v1', 'x', '..', 'plain']],
      ['/v1/pl%61in', ['v1', 'plain']],
    ] as const)
      expect(await sent(target)).toEqual(segments)
  } finally {
    await drain()
  }
})

test('draining lets a running request end and takes no new one', async () => {
  const { promise: isInside, resolve: enter } = Promise.withResolvers<void>()
  const { promise: mayLeave, resolve: leave } = Promise.withResolvers<void>()
  const { port, drain } = await listen(loopback, async () => {
    enter()
    await mayLeave
    return new Response('done')
  })
  const running = fetch(`http://127.0.0.1:${port}/`)
  await isInside
  const drained = drain()
  leave()
  expect(await (await running).text()).toBe('done')
  await drained
  expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow()
})

test('draining lets what outlives an answer end', async () => {
  const { promise: work, resolve: end } = Promise.withResolvers<void>()
  const { port, drain } = await listen(loopback, async (_request, { outlives }) => {
    outlives(work)
    return new Response('done')
  })
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('done')
  let isDrained = false
  const drained = drain().then(() => {
    isDrained = true
  })
  // A refused connection shows that the drain has begun.
  await until('the port to be closed', () =>
    fetch(`http://127.0.0.1:${port}/`, { keepalive: false }).then(
      () => false,
      () => true,
    ),
  )
  expect(isDrained).toBe(false)
  end()
  await drained
})

test('what cannot end in time is cut, and its handler comes to its own end first', async () => {
  const isInside = Promise.withResolvers<void>()
  let isRecorded = false
  const handler = async (request: Request) => {
    isInside.resolve()
    await new Promise((resolve) => request.signal.addEventListener('abort', resolve))
    await new Promise(setImmediate)
    isRecorded = true
    return new Response()
  }
  const { port, drain } = await listen(loopback, handler, { idleSeconds: 60, drainMilliseconds: 1 })
  const running = fetch(`http://127.0.0.1:${port}/`).catch(() => 'cut')
  await isInside.promise
  await drain()
  expect(isRecorded).toBe(true)
  expect(await running).toBe('cut')
})

test('a connection that falls silent after an answer is closed, also after one that lifted the limit', async () => {
  const { port, drain } = await listen(
    loopback,
    async (request, { liftIdleLimit, restoreIdleLimit }) => {
      if (request.url.endsWith('/slow')) {
        liftIdleLimit(request)
        restoreIdleLimit(request)
      }
      return new Response('done')
    },
    { idleSeconds: 1, drainMilliseconds: 10_000 },
  )
  const closed = ['/', '/slow'].map(async (path) => {
    const { socket, answer } = openRawRequest(`http://127.0.0.1:${port}${path}`, 'GET', {})
    const isClosed = new Promise((resolve) => socket.on('close', resolve))
    expect((await answer).body).toBe('done')
    await isClosed
  })
  await Promise.all(closed)
  await drain()
})

test('a local socket has the limit that it is given, not a longer one', async () => {
  const folder = temporaryFolder()
  const socketPath = join(folder.path, 'own.sock')
  const closed = async (options: ListenOptions, idleSeconds: number) => {
    const never = Promise.withResolvers<Response>()
    const { port, drain } = await listen(options, () => never.promise, { idleSeconds, drainMilliseconds: 1 })
    const socket = 'socketPath' in options ? connect(socketPath) : connect(port, options.hostname)
    socket.on('error', () => {})
    socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
    await new Promise((resolve) => socket.on('close', resolve))
    never.resolve(new Response())
    await drain()
    return 'socketPath' in options ? 'local' : 'address'
  }
  const [local, address] = [closed({ socketPath }, 1), closed(loopback, 8)]
  expect(await Promise.race([local, address])).toBe('local')
  await address
  folder.remove()
})

test('a fetch that is held to an address goes there, and its certificate must be for the host of the URL', async () => {
  const read = (name: string) => readFileSync(join(import.meta.dirname, '../fixtures/tls', name), 'utf8')
  const tls = { cert: read('server.pem'), key: read('server.key') }
  const answer = ({ headers }: Request) => new Response(headers.get('host'))
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls, fetch: answer })
  const ca = read('ca.pem')
  const address = '127.0.0.1'
  const response = await outboundFetch(`https://localhost:${server.port}/`, { ca, address })
  expect(await response.text()).toBe(`localhost:${server.port}`)
  // No resolver knows this name, so that only the address can lead there.
  const other = outboundFetch(`https://idp.invalid:${server.port}/`, { ca, address })
  await expect(other).rejects.toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  await server.stop(true)
})

test('a request whose body never arrives ends with the time that a stop has', async () => {
  const isInside = Promise.withResolvers<void>()
  const outcome = Promise.withResolvers<unknown>()
  const handler = async (request: Request) => {
    isInside.resolve()
    await readBody(request, 100).then(outcome.resolve, outcome.resolve)
    return new Response()
  }
  const { port, drain } = await listen(loopback, handler, { idleSeconds: 60, drainMilliseconds: 1 })
  const { answer } = openRawRequest(`http://127.0.0.1:${port}/`, 'POST', { 'content-length': '9' })
  await isInside.promise
  await drain()
  expect(await outcome.promise).toMatchObject({ code: 'invalid', reason: 'body_broken' })
  expect(await rejectionOf(answer)).toBeInstanceOf(Error)
})
