// What operators read about a database server that fails: what is wrong, which setting to check, and no secret.
import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { createServer as createSecureServer } from 'node:tls'
import type { SendRequest } from '../../db/remote/server-client.ts'
import { openServerDatabase } from '../../db/remote/server-database.ts'
import { describeError } from '../../src/fault.ts'
import { connectTo } from '../../src/nodes/server-connection.ts'
import { listenLocally, temporaryFolder } from '../support/latchkey.ts'
import { hasOpenssl, makeCertificate } from '../support/tls.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

const token = 'secret-database-token'

/** What a start reports, and what its log would have beside it. */
async function refusalOf(url: string, send: SendRequest = connectTo({ caFile: undefined })) {
  const opened = await openServerDatabase({ url, token, create: true, send })
  if (!('refused' in opened)) throw new Error('The database was opened')
  const log = describeError(opened.cause)
  expect(`${opened.message} ${log}`).not.toContain(token.slice(0, 6))
  expect(opened.message).not.toMatch(/\b[A-Z]+_[A-Z_]+: /)
  expect(opened.message).not.toMatch(/\.$/)
  expect(log.length).toBeLessThan(1_000)
  return opened.message
}

type Answer = { status: number; body?: string; headers?: Record<string, string> }

const blocked = { type: 'error', error: { message: 'Reads are blocked', code: 'SQL_READ_BLOCKED' } }
const hostile = { message: `\u001b[2J${token} and ${'x'.repeat(1_000_000)}`, code: 'SQLITE_ERROR' }
const rude = { type: 'error', error: hostile }
const answers: [what: string, answer: Answer, message: string][] = [
  [
    'rejects the token',
    { status: 401, body: `${'x'.repeat(190)} ${token}` },
    'rejects the token (status 401): set LATCHKEY_',
  ],
  ['refuses rights', { status: 403 }, 'may not read and write the database (status 403): set LATCHKEY_DATABASE_TOKEN'],
  ['is not there', { status: 404 }, 'no database server at this URL (status 404): check LATCHKEY_DATABASE_URL'],
  ['refuses the size', { status: 413 }, 'allow bodies of 64 MB'],
  ['redirects', { status: 307, headers: { location: 'http://127.0.0.1:9/' } }, 'redirect (status 307): set LATCHKEY_'],
  ['refuses otherwise', { status: 429 }, 'refuses requests (status 429)'],
  ['fails', { status: 502 }, 'or a proxy in front of it, fails (status 502): see its log'],
  [
    'sends a page',
    { status: 200, body: '<html>Sign in</html>' },
    'not one of a database server: check LATCHKEY_DATABASE',
  ],
  ['sends other JSON', { status: 200, body: '{}' }, 'not one of a database server: check LATCHKEY_DATABASE'],
  ['sends null', { status: 200, body: 'null' }, 'not one of a database server: check LATCHKEY_DATABASE'],
  [
    'reports an error',
    { status: 200, body: JSON.stringify({ baton: null, base_url: null, results: [blocked, blocked] }) },
    'the server responds with an error: Reads are blocked',
  ],
  [
    'reports an endless error that contains the token',
    { status: 200, body: JSON.stringify({ baton: null, base_url: null, results: [rude, rude] }) },
    'the server responds with an error:  [2J… and xxx',
  ],
  ['sends too much', { status: 200, body: 'x'.repeat(5_000_000) }, 'larger than a node reads (4 MB)'],
  [
    'compresses',
    { status: 200, body: 'x', headers: { 'content-encoding': 'gzip' } },
    'turn compression off in the proxy',
  ],
]

test('each response that is not one of a libSQL server is explained', async () => {
  const { url, listener } = await listenLocally(async (request) => {
    const { status, body = '', headers } = answers[Number(new URL(request.url).pathname.split('/')[1])]?.[1] ?? {}
    return new Response(body, { status: status ?? 500, ...(headers && { headers }) })
  })
  // Reads are repeated for two seconds.
  const messages = await Promise.all(answers.map((_, index) => refusalOf(`${url}/${index}`)))
  expect(messages).toEqual(answers.map(([, , message]) => expect.stringContaining(message)))
  await listener.drain()
})

test('each failure of a connection is explained', async () => {
  const closing = createServer((socket) => socket.destroy())
  const port = await new Promise<number>((resolve) => {
    closing.listen(0, '127.0.0.1', () => resolve((closing.address() as AddressInfo).port))
  })
  const { url: gone, listener } = await listenLocally(async () => new Response())
  await listener.drain()
  const late: SendRequest = async () => {
    throw new DOMException('The operation timed out', 'TimeoutError')
  }
  const aborted: SendRequest = async () => {
    throw new DOMException('The operation was aborted', 'AbortError')
  }
  const messages = await Promise.all([
    refusalOf(gone),
    refusalOf(`http://${'x'.repeat(64)}.invalid`),
    refusalOf(`http://127.0.0.1:${port}`),
    refusalOf(gone, late),
    refusalOf(gone, aborted),
  ])
  expect(messages).toEqual([
    expect.stringContaining('refuses connections: start it, or check LATCHKEY_DATABASE_URL'),
    expect.stringContaining('has no address: check LATCHKEY_DATABASE_URL and the name server'),
    expect.stringContaining('connection to the database server fails: check that it runs, and the network'),
    expect.stringContaining('does not respond in time: check its load, and the network'),
    expect.stringContaining('connection to the database server fails: check that it runs, and the network'),
  ])
  closing.close()
})

test.skipIf(!hasOpenssl)('a certificate that is not trusted is explained (needs openssl)', async () => {
  const { certFile, keyFile } = makeCertificate(folder.path, 'database')
  const options = { cert: readFileSync(certFile), key: readFileSync(keyFile) }
  const secure = createSecureServer(options, (socket) => socket.on('error', () => {}))
  const port = await new Promise<number>((resolve) => {
    secure.listen(0, '127.0.0.1', () => resolve((secure.address() as AddressInfo).port))
  })
  const message = await refusalOf(`https://127.0.0.1:${port}`)
  expect(message).toContain('is not trusted: set LATCHKEY_DATABASE_CA_FILE')
  secure.close()
})
