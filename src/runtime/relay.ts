// Listens for TLS with a certificate that can be replaced. No runtime can replace the certificate of a listener: one that is stopped closes
// connections on which a request is on its way. So the public port belongs to a relay that never closes. It passes the encrypted bytes to
// a listener of the runtime on loopback; a new certificate gets a new listener, and connections stay with the one that they began with.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { AddressOf, ListeningSocket, TlsPair } from './listener.ts'

/** A listener on loopback. `addressOf` gives the address of the client behind a connection of the relay. */
export type OpenListener = (pair: TlsPair, addressOf: AddressOf) => ListeningSocket

/** A pair that can be used: `use` gives it to all new connections. */
export type PreparedPair = { use: () => void; discard: () => void }

export type Relay = ListeningSocket & {
  /** @throws the runtime's error when it cannot use the pair; the one in use stays */
  preparePair: (pair: TlsPair) => PreparedPair
}

type Inner = {
  listening: ListeningSocket
  connections: number
  /** By the local port of their connection. Two inner listeners can have connections from the same port. */
  addresses: Map<number, string | null>
  stopped?: Promise<unknown>
}
type State = {
  current: Inner
  inners: Set<Inner>
  clients: Set<Socket>
  /** Those that have sent no application data yet, so no request is on its way. */
  handshaking: Set<Socket>
}

const loopback = '127.0.0.1'
/** Types of TLS records (RFC 8446 §5.1). The first record of a connection belongs to its handshake. */
const handshakeByte = 0x16
const applicationDataByte = 0x17
const recordHeaderBytes = 5
/** How long a client may take to close its half of a connection after the last byte was sent to it. */
const closeMilliseconds = 1_000

/** @throws the runtime's error when the address or the pair cannot be used */
export async function listenThroughRelay(
  { hostname, port }: { hostname: string; port: number },
  open: OpenListener,
  pair: TlsPair,
): Promise<Relay> {
  const openWith = (next: TlsPair): Inner => {
    const addresses = new Map<number, string | null>()
    // Another program can connect from the same port of another loopback address.
    const addressOf: AddressOf = ({ address, port: from }) =>
      address === loopback ? (addresses.get(from) ?? null) : null
    return { listening: open(next, addressOf), connections: 0, addresses }
  }
  const first = openWith(pair)
  const state: State = { current: first, inners: new Set([first]), clients: new Set(), handshaking: new Set() }
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => relay(client, state))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: hostname, port }, () => resolve())
  }).catch(async (error: unknown) => {
    await first.listening.stop()
    throw error
  })
  // Such as no descriptors left for another connection: the others go on.
  server.on('error', () => {})
  return {
    port: (server.address() as AddressInfo).port,
    preparePair: (pair) => {
      const next = openWith(pair)
      const use = () => {
        const previous = state.current
        state.current = next
        state.inners.add(next)
        stopIfUnused(previous, state)
      }
      return { use, discard: () => void stopInner(next) }
    },
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      // The runtime waits for these as if a request were on its way.
      for (const client of state.handshaking) client.destroy()
      await Promise.all([closed, ...[...state.inners].map(stopInner)])
    },
    cut: () => {
      for (const { listening } of state.inners) listening.cut()
      for (const client of state.clients) client.destroy()
    },
  }
}

function stopInner(inner: Inner): Promise<unknown> {
  inner.stopped ??= inner.listening.stop()
  return inner.stopped
}

/** A listener whose pair was replaced ends with its last connection. */
function stopIfUnused(inner: Inner, { current, inners }: State): void {
  if (inner === current || inner.connections > 0) return
  void stopInner(inner)
  inners.delete(inner)
}

function relay(client: Socket, state: State): void {
  const inner = state.current
  const upstream = connect({ host: loopback, port: inner.listening.port, allowHalfOpen: true, noDelay: true })
  inner.connections += 1
  state.clients.add(client)
  state.handshaking.add(client)
  upstream.once('connect', () => {
    const { localPort = 0 } = upstream
    inner.addresses.set(localPort, client.remoteAddress ?? null)
    upstream.once('close', () => inner.addresses.delete(localPort))
    client.once('data', (first: Buffer) => {
      passOn(client, upstream, first, state)
    })
  })
  // Read from the start, to see when the listener closes the connection.
  upstream.pipe(client)
  upstream.on('error', () => client.destroy())
  upstream.once('close', () => {
    inner.connections -= 1
    stopIfUnused(inner, state)
  })
  client.on('error', () => upstream.destroy())
  // Everything was sent; a client that does not close its half is not waited for.
  client.once('finish', () => setTimeout(() => client.destroy(), closeMilliseconds).unref())
  client.once('close', () => {
    state.clients.delete(client)
    state.handshaking.delete(client)
    upstream.destroy()
  })
}

function passOn(client: Socket, upstream: Socket, first: Buffer, { handshaking }: State): void {
  if (first[0] !== handshakeByte) {
    upstream.unpipe(client)
    upstream.destroy()
    client.resume()
    client.end(httpsOnly)
    return
  }
  upstream.write(first)
  const hasApplicationData = createRecordReader()
  const watch = (chunk: Buffer) => {
    if (!hasApplicationData(chunk)) return
    handshaking.delete(client)
    client.off('data', watch)
  }
  client.on('data', watch)
  watch(first)
  client.pipe(upstream)
}

/** Reads the headers of the records in a stream of bytes. Returns whether application data has begun. */
function createRecordReader(): (chunk: Buffer) => boolean {
  const header = Buffer.alloc(recordHeaderBytes)
  let headerBytes = 0
  let bodyBytes = 0
  return (chunk) => {
    for (let at = 0; at < chunk.length; ) {
      const skipped = Math.min(bodyBytes, chunk.length - at)
      bodyBytes -= skipped
      at += skipped
      if (bodyBytes > 0 || at >= chunk.length) return false
      if (headerBytes === 0 && chunk[at] === applicationDataByte) return true
      const copied = chunk.copy(header, headerBytes, at, at + recordHeaderBytes - headerBytes)
      headerBytes += copied
      at += copied
      if (headerBytes < recordHeaderBytes) return false
      bodyBytes = header.readUInt16BE(3)
      headerBytes = 0
    }
    return false
  }
}

const httpsOnlyBody = JSON.stringify({
  error: {
    code: 400,
    message: 'This port accepts HTTPS only: use an https:// URL',
    metadata: { error_type: 'invalid_request' },
  },
})
const httpsOnly = [
  'HTTP/1.1 400 Bad Request',
  'content-type: application/json',
  `content-length: ${httpsOnlyBody.length}`,
  'connection: close',
  '',
  httpsOnlyBody,
].join('\r\n')
