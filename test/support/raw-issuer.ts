// An issuer that sends exactly the bytes that a test specifies, so that it can be as wrong, large or slow as the test
// needs.
import { type AddressInfo, createServer } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setInterval } from 'node:timers/promises'

type Part = string | Uint8Array
/** The bytes to send. With `stalls`, the connection then stays open. */
export type Sent = { parts: Iterable<Part> | AsyncIterable<Part>; stalls?: boolean }
/** What an issuer sends as its discovery document, as its key set, and at the redirect target of its key set. */
export type Behavior = Partial<Record<'discovery' | 'keys' | 'moved', (url: string) => Sent>>
export type RawIssuers = { origin: string; close: () => void }

/** Issuers by the first path segment of their URL. `healthy` replaces whatever `behaviorOf` omits. */
export async function startRawIssuers(
  behaviorOf: (name: string) => Behavior,
  healthy: Required<Behavior>,
): Promise<RawIssuers> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (request: Buffer) => {
      const [, name = '', first] = (String(request).split(' ')[1] ?? '').split('/')
      const kind = first === '.well-known' ? 'discovery' : first === 'keys' ? 'keys' : 'moved'
      const { parts, stalls } = (behaviorOf(name)[kind] ?? healthy[kind])(`${origin}/${name}`)
      pipeline(Readable.from(parts), socket, { end: stalls !== true }).catch(() => {})
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { origin, close: () => server.close() }
}

export function head(status: number, headers: Record<string, string | number> = {}): string {
  const lines = Object.entries({ connection: 'close', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} Whatever\r\n${lines.join('')}\r\n`
}

/** A complete response. A value that is neither text nor bytes is sent as JSON. */
export function reply(document: unknown, status = 200, headers: Record<string, string> = {}): Sent {
  const body = typeof document === 'string' || document instanceof Uint8Array ? document : JSON.stringify(document)
  return { parts: [head(status, { 'content-length': Buffer.byteLength(body), ...headers }), body] }
}

export function redirect(location: string): Sent {
  return reply('', 302, { location })
}

export function stall(...parts: Part[]): Sent {
  return { parts, stalls: true }
}

/** Sends as fast as the client reads. */
export function flood(first: string, part: Part, count: number): Sent {
  const parts = function* () {
    yield first
    for (let sent = 0; sent < count; sent++) yield part
  }
  return { parts: parts() }
}

/** Sends small pieces endlessly. */
export function drip(first: string, part: Part): Sent {
  const parts = async function* () {
    yield first
    for await (const _ of setInterval(50)) yield part
  }
  return { parts: parts() }
}
