// The SPIFFE Workload API as the agent calls it, beside a server that speaks its HTTP/2, gRPC and protobuf.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer, type Http2Server, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { join } from 'node:path'
import { fetchJwtSvid } from '../../src/agent/spiffe-workload-api.ts'
import { temporaryFolder } from '../support/latchkey.ts'

type Answer = { status?: number; body?: Buffer; grpcStatus?: string; grpcMessage?: string }
const folder = temporaryFolder()
const socket = join(folder.path, 'agent.sock')
const asked: { headers: IncomingHttpHeaders; body: Buffer }[] = []
let answer: Answer = {}
let server: Http2Server

beforeAll(async () => {
  server = createServer()
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      asked.push({ headers, body: Buffer.concat(chunks) })
      const { status = 200, body = Buffer.alloc(0), grpcStatus = '0', grpcMessage = '' } = answer
      stream.respond({ ':status': status, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': grpcStatus, 'grpc-message': grpcMessage }))
      stream.end(body)
    })
  })
  await new Promise<void>((done) => server.listen(socket, done))
})
afterAll(() => {
  server.close()
  folder.remove()
})

/** A length-delimited field, whose length takes two bytes from 128 on (protobuf: Encoding). */
function field(number: number, bytes: Buffer): Buffer {
  const length = bytes.length < 128 ? [bytes.length] : [(bytes.length & 0x7f) | 0x80, bytes.length >> 7]
  return Buffer.concat([Buffer.from([number * 8 + 2, ...length]), bytes])
}
const framed = (message: Buffer) =>
  Buffer.concat([Buffer.from([0, 0, 0, message.length >> 8, message.length & 0xff]), message])
const svidOf = (id: string, jwt: string) =>
  field(1, Buffer.concat([field(1, Buffer.from(id)), field(2, Buffer.from(jwt))]))

test('asks for one audience with the header that the API requires, and takes the first JWT-SVID', async () => {
  const jwt = `e30.${'x'.repeat(300)}.c2ln`
  answer = {
    body: framed(Buffer.concat([svidOf('spiffe://example.org/a', jwt), svidOf('spiffe://example.org/b', 'b')])),
  }
  const audience = `https://${'long.'.repeat(30)}example.com`
  expect(await fetchJwtSvid(socket, audience)).toBe(jwt)
  const [{ headers, body } = { headers: {} as IncomingHttpHeaders, body: Buffer.alloc(0) }] = asked
  expect(headers).toMatchObject({
    ':path': '/SpiffeWorkloadAPI/FetchJWTSVID',
    'content-type': 'application/grpc',
    'workload.spiffe.io': 'true',
  })
  expect(body.equals(framed(field(1, Buffer.from(audience))))).toBe(true)
})

test('reports what the API says, a server of another kind, one that sends too much, and one that is not there', async () => {
  const failsWith = async (next: Answer, message: string) => {
    answer = next
    await expect(fetchJwtSvid(socket, 'a')).rejects.toThrow(message)
  }
  await failsWith({ grpcStatus: '7', grpcMessage: 'no%20identity%20issued' }, 'status 7: no identity issued')
  await failsWith({ status: 404 }, 'it is not a SPIFFE Workload API')
  await failsWith({ body: framed(Buffer.alloc(60_000)) }, 'it sent no JWT-SVID')
  await failsWith({ body: Buffer.alloc(70_000) }, 'it sent more than 64 KB')
  await expect(fetchJwtSvid(join(folder.path, 'none.sock'), 'a')).rejects.toThrow('ENOENT')
})

test('reports a message that is not escaped as it is', async () => {
  answer = { grpcStatus: '7', grpcMessage: '100% refused' }
  await expect(fetchJwtSvid(socket, 'a')).rejects.toThrow('status 7: 100% refused')
})
