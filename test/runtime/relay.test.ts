// Listening for TLS: only modern versions, a helpful answer to plain HTTP, and new certificates without a lost request.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { clientAddressOf } from '../../src/http/client-address.ts'
import { listenOnBun } from '../../src/runtime/bun.ts'
import { listen, listenSecurely, type SecureListener } from '../../src/runtime/listen.ts'
import type { AddressOf, Handler, TlsPair } from '../../src/runtime/listener.ts'
import { listenThroughRelay, type OpenListener } from '../../src/runtime/relay.ts'
import { addressList } from '../../src/values/ip-address.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { openRawRequest } from '../support/raw-request.ts'
import { hasOpenssl, makeCertificate, presentedName } from '../support/tls.ts'
import { until } from '../support/until.ts'

let folder: ReturnType<typeof temporaryFolder>
let pairs: [one: TlsPair, two: TlsPair]
let listener: SecureListener | undefined
beforeAll(() => {
  folder = temporaryFolder()
  const read = (name: string): TlsPair => {
    const { certFile, keyFile } = makeCertificate(folder.path, name)
    return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
  }
  if (hasOpenssl) pairs = [read('one'), read('two')]
})
afterEach(async () => {
  await listener?.drain()
  listener = undefined
})
afterAll(() => folder.remove())

const ok: Handler = async (message) => {
  await message.text()
  return new Response('ok')
}
const start = async (handler: Handler = ok) => {
  listener = await listenSecurely({ hostname: '127.0.0.1', port: 0 }, handler, pairs[0])
  return listener
}

/** The body of a response, or the error. */
function ask(port: number, agent: Agent, path = '/'): Promise<string> {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', agent }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve(response.complete ? text : 'cut off'))
      response.on('error', (error) => resolve(error.message))
    })
    sent.on('error', (error) => resolve(error.message))
    sent.end('hello')
  })
}

describe.skipIf(!hasOpenssl)('a secure listener (needs openssl)', () => {
  test('loses no request and no stream while its pair is replaced 20 times', async () => {
    const gate = Promise.withResolvers<void>()
    let begun = 0
    const { port, preparePair } = await start(async (message, peer) => {
      if (!message.url.endsWith('/stream')) return ok(message, peer)
      begun += 1
      return new Response(
        new ReadableStream({
          start: async (controller) => {
            controller.enqueue('begin ')
            await gate.promise
            controller.enqueue('end')
            controller.close()
          },
        }),
      )
    })
    const [kept, fresh] = [true, false].map((keepAlive) => new Agent({ keepAlive, rejectUnauthorized: false }))
    const streams = Array.from({ length: 50 }, () => ask(port, fresh as Agent, '/stream'))
    const answers: string[] = []
    const load = Array.from({ length: 20 }, async (_, index) => {
      // One in ten requests comes on a new connection.
      for (let count = 0; count < 50; count++)
        answers.push(await ask(port, (count % 10 === index % 10 ? fresh : kept) as Agent))
    })
    const names: string[] = []
    for (let swap = 1; swap <= 20; swap++) {
      const before = answers.length
      preparePair(pairs[swap % 2 === 0 ? 0 : 1]).use()
      names.push(await presentedName(port))
      await until('the next response', () => answers.length !== before || answers.length === 1_000)
    }
    await Promise.all(load)
    expect(begun).toBe(50)
    gate.resolve()
    expect(await Promise.all(streams)).toEqual(Array(50).fill('begin end'))
    expect(answers).toEqual(Array(1_000).fill('ok'))
    expect(names).toEqual(Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? 'two' : 'one')))
    kept?.destroy()
  })

  test('keeps its pair when the next one cannot be used, or is discarded', async () => {
    const { port, preparePair } = await start()
    expect(() => preparePair({ cert: 'no certificate', key: pairs[1].key })).toThrow()
    preparePair(pairs[1]).discard()
    expect(await presentedName(port)).toBe('one')
  })

  test('shows its handler the address of the client', async () => {
    const { port } = await start(async (_request, { address }) => new Response(address))
    expect(await ask(port, new Agent({ rejectUnauthorized: false }))).toBe('127.0.0.1')
  })

  test('names no client, whatever headers say, for a program on this machine that goes around the relay', async () => {
    const bounds = { idleSeconds: 60, drainMilliseconds: 1_000 }
    const stopping = { isCut: () => false, outlives: () => {} }
    const proxies = addressList('127.0.0.0/8', '::1')
    const show: Handler = async (message, { address }) =>
      Response.json({ address, client: clientAddressOf(message, address, proxies) })
    let innerPort = 0
    const open: OpenListener = (pair, addressOf) => {
      const inner = listenOnBun({ hostname: '127.0.0.1', port: 0 }, show, bounds, stopping, { pair, addressOf })
      innerPort = inner.port
      return inner
    }
    const relay = await listenThroughRelay({ hostname: '127.0.0.1', port: 0 }, open, pairs[0])
    const headers = { 'x-forwarded-for': '192.0.2.1' }
    const tls = { rejectUnauthorized: false }
    const askAt = async (port: number) => (await fetch(`https://127.0.0.1:${port}/`, { headers, tls })).json()
    expect(await askAt(relay.port)).toEqual({ address: '127.0.0.1', client: '192.0.2.1' })
    expect(await askAt(innerPort)).toEqual({ address: null, client: null })
    await relay.stop()
  })

  test('explains to a client that speaks plain HTTP what to do', async () => {
    const { port } = await start()
    const { answer } = openRawRequest(`http://127.0.0.1:${port}/v1/models`, 'GET', {})
    expect(await answer).toMatchObject({ status: 400, body: expect.stringContaining('use an https:// URL') })
  })

  test('is not shared, and takes no address that is taken', async () => {
    const { port } = await start()
    const again = { hostname: '127.0.0.1', port }
    await expect(listenSecurely(again, ok, pairs[0])).rejects.toMatchObject({ code: 'configuration' })
    await expect(listen(again, ok)).rejects.toMatchObject({ code: 'configuration' })
  })

  test('shows its handler that the client has left', async () => {
    const left = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const { port } = await start(async ({ signal }) => {
      signal.addEventListener('abort', () => left.resolve())
      asked.resolve()
      await left.promise
      return new Response()
    })
    const client = request({ host: '127.0.0.1', port, rejectUnauthorized: false })
    client.on('error', () => {})
    client.end()
    await asked.promise
    client.destroy()
    await left.promise
  })

  test('closes a connection on which nothing is sent, and one that falls silent in the handshake', async () => {
    const bounds = { idleSeconds: 1, drainMilliseconds: 1_000 }
    listener = await listenSecurely({ hostname: '127.0.0.1', port: 0 }, ok, pairs[0], bounds)
    const { port } = listener
    const closed = [[], [0x16, 0x03, 0x01]].map((bytes) => {
      const client = connect(port, '127.0.0.1', () => client.write(Buffer.from(bytes)))
      return new Promise((resolve) => client.resume().once('close', resolve))
    })
    await Promise.all(closed)
  })

  test('stops at once with connections on which nothing was sent', async () => {
    const { port } = await start()
    const silent = connect(port, '127.0.0.1')
    await new Promise((resolve) => silent.once('connect', resolve))
    await ask(port, new Agent({ keepAlive: true, rejectUnauthorized: false }))
    const closed = new Promise((resolve) => silent.once('close', resolve))
    await listener?.drain()
    await closed
    listener = undefined
  })

  test('stops at once with connections in the middle of their handshake', async () => {
    const { port } = await start()
    const hello = await new Promise<Buffer>((resolve) => {
      const recorder = createServer((socket) => socket.once('data', resolve)).listen(0, '127.0.0.1', () => {
        const { port: at } = recorder.address() as AddressInfo
        connectSecurely({ port: at, host: '127.0.0.1' }).on('error', () => recorder.close())
      })
    })
    const closed = [hello, hello.subarray(0, 7)].map((bytes) => {
      const client = connect(port, '127.0.0.1', () => client.write(bytes))
      return new Promise((resolve) => client.resume().once('close', resolve))
    })
    // Connections are accepted in their order, so the server has the others when this one is served.
    expect(await presentedName(port)).toBe('one')
    await listener?.drain()
    await Promise.all(closed)
    listener = undefined
  })

  test('lets requests that run end when it stops, whatever the version of TLS', async () => {
    const gate = Promise.withResolvers<void>()
    const bothAsked = Promise.withResolvers<void>()
    let asked = 0
    const { port, drain } = await start(async (request, peer) => {
      asked += 1
      if (asked === 2) bothAsked.resolve()
      await gate.promise
      return ok(request, peer)
    })
    const versions = ['TLSv1.2', 'TLSv1.3'] as const
    const answers = versions.map((maxVersion) => ask(port, new Agent({ rejectUnauthorized: false, maxVersion })))
    await bothAsked.promise
    const drained = drain()
    gate.resolve()
    expect(await Promise.all(answers)).toEqual(['ok', 'ok'])
    await drained
    listener = undefined
  })

  for (const [version, isSpoken] of [
    ['tls1', false],
    ['tls1_1', false],
    ['tls1_2', true],
    ['tls1_3', true],
  ] as const) {
    test(`${isSpoken ? 'speaks' : 'refuses'} ${version}`, async () => {
      const { port } = await start()
      const args = ['s_client', '-connect', `127.0.0.1:${port}`, `-${version}`, '-cipher', 'DEFAULT@SECLEVEL=0']
      const client = Bun.spawn(['openssl', ...args], { stdin: new Blob([]), stdout: 'pipe', stderr: 'pipe' })
      const [text, problem] = await Promise.all([
        new Response(client.stdout).text(),
        new Response(client.stderr).text(),
      ])
      const words = isSpoken ? /New, TLSv1\.[23], Cipher is (?!\(NONE\))/ : /alert protocol version/
      expect(isSpoken ? text : problem).toMatch(words)
    })
  }
})

test('a relay names to each listener only the clients of its own connections', async () => {
  const inner = createServer()
  await new Promise<void>((resolve) => inner.listen(0, '127.0.0.1', resolve))
  const { port } = inner.address() as AddressInfo
  const lookups: AddressOf[] = []
  const open = (_pair: TlsPair, addressOf: AddressOf) => {
    lookups.push(addressOf)
    return { port, stop: async () => {}, cut: () => {} }
  }
  const pair = { cert: '', key: '' }
  const relay = await listenThroughRelay({ hostname: '127.0.0.1', port: 0 }, open, pair)
  relay.preparePair(pair).use()
  const accepted = new Promise<Socket>((resolve) => inner.once('connection', resolve))
  const client = connect(relay.port, '127.0.0.1', () => client.write(Buffer.from([0x16])))
  const connection = await accepted
  await new Promise((resolve) => connection.once('data', resolve))
  connection.on('error', () => {})
  const { remotePort = 0 } = connection
  const seen = lookups.map((addressOf) => addressOf({ address: '127.0.0.1', port: remotePort }))
  expect(seen).toEqual([null, '127.0.0.1'])
  expect(lookups[1]?.({ address: '127.0.0.2', port: remotePort })).toBe(null)
  client.destroy()
  await relay.stop()
  inner.close()
})
