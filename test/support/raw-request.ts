// A byte-level HTTP/1.1 exchange, for what a correct client cannot send: a wrong Content-Length, an endless body, a
// broken sender.
import { connect, type Socket } from 'node:net'

export type RawAnswer = { status: number; headers: Headers; body: string }
export type RawRequest = {
  socket: Socket
  /** The complete response by its Content-Length, even if the connection stays open. */
  answer: Promise<RawAnswer>
}

/**
 * Sends the head of a request and leaves the rest to the test. `target` is sent unchanged, if it differs from the path
 * of the URL.
 */
export function openRawRequest(
  url: string,
  method: string,
  headers: Record<string, string>,
  target = pathOf(url),
): RawRequest {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const lines = Object.entries({ host: `${hostname}:${port}`, ...headers }).map(([name, value]) => `${name}: ${value}`)
  socket.write(`${[`${method} ${target} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`)
  const answer = new Promise<RawAnswer>((resolve, reject) => {
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const parsed = parseAnswer(text)
      if (parsed !== undefined) resolve(parsed)
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`The connection closed after ${JSON.stringify(text)}`)))
  })
  answer.catch(() => {})
  return { socket, answer }
}

/** Responses on later connections prove that the server has had time to notice disconnected clients. */
export async function letNotice(baseUrl: string): Promise<void> {
  for (let count = 0; count < 5; count++) await (await fetch(`${baseUrl}/oauth/jwks`, { keepalive: false })).text()
}

function pathOf(url: string): string {
  const { pathname, search } = new URL(url)
  return pathname + search
}

/** One chunk of a chunked body. */
export function chunkOf(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
}

function parseAnswer(text: string): RawAnswer | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n')
  const headers = new Headers(lines.map((line) => line.split(/: ?(.*)/s).slice(0, 2) as [string, string]))
  const body = text.slice(end + 4)
  if (body.length < Number(headers.get('content-length') ?? 0)) return undefined
  return { status: Number(statusLine.split(' ')[1]), headers, body }
}
