// The one call of the SPIFFE Workload API that gets a JWT-SVID: gRPC over a Unix socket, in as much of HTTP/2 and protobuf
// as it needs (SPIFFE Workload API §6.2; gRPC over HTTP/2).
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'

const milliseconds = 10_000
const responseBytesMax = 64 * 1024

/**
 * Returns the JWT-SVID for an audience: the first, if the workload has several. Rejects with the message of the API, also
 * when the workload is not registered.
 */
export function fetchJwtSvid(socketPath: string, audience: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2('http://localhost', { createConnection: () => connect(socketPath) })
    const end = (error: Error | undefined, svid = '') => {
      clearTimeout(timer)
      session.destroy()
      if (error === undefined) resolve(svid)
      else reject(error)
    }
    const timer = setTimeout(
      () => end(new Error(`it did not respond within ${milliseconds / 1000} seconds`)),
      milliseconds,
    )
    session.once('error', (error) => end(error))
    const call = session.request({
      ':method': 'POST',
      ':path': '/SpiffeWorkloadAPI/FetchJWTSVID',
      'content-type': 'application/grpc',
      te: 'trailers',
      // The API refuses calls without it, because a page or proxy could not send it (SPIFFE Workload Endpoint §3).
      'workload.spiffe.io': 'true',
    })
    const chunks: Buffer[] = []
    let bytes = 0
    let status: Record<string, unknown> = {}
    call.once('error', (error) => end(error))
    call.on('response', (headers) => (status = { ...status, ...headers }))
    call.on('trailers', (headers) => (status = { ...status, ...headers }))
    call.on('data', (chunk: Buffer) => {
      bytes += chunk.byteLength
      if (bytes > responseBytesMax) end(new Error('it sent more than 64 KB'))
      else chunks.push(chunk)
    })
    call.once('end', () => {
      // Trailers can be announced after the end of the body.
      setImmediate(() => {
        const svid = readSvid(Buffer.concat(chunks))
        end(problemOf(status) ?? (svid === '' ? new Error('it sent no JWT-SVID') : undefined), svid)
      })
    })
    call.end(frame(field(1, audience)), () => {})
  })
}

function problemOf(headers: Record<string, unknown>): Error | undefined {
  const status = headers['grpc-status']
  if (headers[':status'] !== 200) return new Error('it is not a SPIFFE Workload API')
  if (status === '0' || status === undefined) return undefined
  return new Error(`status ${String(status)}: ${unescaped(String(headers['grpc-message'] ?? '')).slice(0, 300)}`)
}

/** A message that is not escaped as gRPC demands stays as it is. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** A gRPC message: not compressed, its length, its bytes. */
function frame(message: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.byteLength, 1)
  return Buffer.concat([head, message])
}

/** A length-delimited field of protobuf. */
function field(number: number, text: string): Buffer {
  const bytes = Buffer.from(text)
  const length: number[] = []
  for (let rest = bytes.byteLength; ; rest >>>= 7) {
    if (rest < 0x80) {
      length.push(rest)
      break
    }
    length.push((rest & 0x7f) | 0x80)
  }
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), bytes])
}

/** The field `svid` of the first of `svids`, '' without one. */
function readSvid(body: Buffer): string {
  const svid = find(body.subarray(5), 1)
  return svid === undefined ? '' : (find(svid, 2)?.toString('utf8') ?? '')
}

/** The first length-delimited field with this number. Fields of other kinds do not occur in these messages. */
function find(message: Buffer, number: number): Buffer | undefined {
  let at = 0
  while (at < message.byteLength) {
    const tag = message[at++] ?? 0
    if ((tag & 7) !== 2) return undefined
    let length = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = message[at++] ?? 0
      length |= (byte & 0x7f) << shift
      if (byte < 0x80) break
    }
    if (tag >> 3 === number) return message.subarray(at, at + length)
    at += length
  }
  return undefined
}
