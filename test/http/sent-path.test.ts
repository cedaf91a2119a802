// A path counts as it was sent: a path that a proxy in front could read differently is not found.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { isPlainPath } from '../../src/http/sent-path.ts'
import { type Row, startTestServer, type TestServer } from '../support/latchkey.ts'
import { openRawRequest } from '../support/raw-request.ts'

describe('on the wire', () => {
  let latchkey: TestServer
  let authorization: string
  beforeAll(async () => {
    latchkey = await startTestServer()
    const { key } = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'admin', kind: 'management' })
    authorization = `Bearer ${key}`
  })
  afterAll(() => latchkey.stop())

  async function statusOf(target: string, headers: Record<string, string> = {}): Promise<number> {
    const { socket, answer } = openRawRequest(
      latchkey.server.baseUrl,
      'GET',
      { authorization, connection: 'close', ...headers },
      target,
    )
    const { status } = await answer
    socket.destroy()
    return status
  }

  const plain = ['/v1/keys', '/v1/keys?workspace_id=a\\..\\b//c/../d', '/v1/%6beys', '/v1/presets']
  for (const target of plain)
    test(`GET ${target} finds what it names`, async () => {
      expect(await statusOf(target)).toBe(target.includes('%') ? 404 : 200)
    })

  // Bun recognizes the paths of workloads itself.
  for (const target of ['/v1/models', '/v1/models?a=/../b'])
    test(`GET ${target} is found, and refuses a management key`, async () => {
      expect(await statusOf(target)).toBe(403)
    })

  const altered = [
    '/v1/./models',
    '/v1/x/../models',
    '/v1\\models',
    '/v1//models',
    '/v1/models/',
    '/v1/mode%6cs',
    'http://other/v1/../v1/models',
    '/v1/chat\\..\\keys',
    '/v1\\keys',
    '/v1/keys\\',
    '/v1/chat/../keys',
    '/v1/./keys',
    '/v1/keys/.',
    '/v1/keys/x/..',
    '/v1/%2e%2e/v1/keys',
    '/v1/chat/.%2E/keys',
    '/../v1/keys',
    '//v1/keys',
    '/v1//keys',
    '/v1//../keys',
    '/v1/keys/',
    '/x/../v1/presets',
    'http://other/v1/../v1/keys',
    `/v1${'/x/..'.repeat(40)}/keys`,
  ]
  for (const target of altered)
    test(`GET ${target.slice(0, 40)} is a 404`, async () => {
      expect(await statusOf(target)).toBe(404)
    })

  test('an invalid Host shows the path as it is, and changes nothing', async () => {
    expect(await statusOf('/v1/presets', { host: 'y:1\\z' })).toBe(200)
    expect(await statusOf('/v1/x/../presets', { host: 'y:1\\z' })).toBe(404)
  })

  test('two Host headers are a 400 on every path, whatever they name', async () => {
    const { host } = new URL(latchkey.server.baseUrl)
    const pairs: Record<string, string>[] = [{ Host: 'other' }, { Host: host }, { host: `${host}, other` }]
    for (const headers of pairs)
      for (const target of ['/v1/presets', '/livez', '/v1/chat/completions', '/none'])
        expect({ headers, target, status: await statusOf(target, headers) }).toEqual({ headers, target, status: 400 })
  })
})

describe('a path is plain', () => {
  const rows: [path: string, sent: string[] | undefined, isPlain: boolean][] = [
    ['/v1/keys', undefined, true],
    ['/v1/keys', ['v1', 'keys'], true],
    ['/v1/models/a%2Fb', ['v1', 'models', 'a/b'], true],
    ['/v1/models/a%2Fb', undefined, true],
    ['/v1/models/..a/.b/c..', undefined, true],
    ['/v1/models/%E2%82%AC', ['v1', 'models', '€'], true],
    ['/v1/keys', ['v1', 'chat\\..\\keys'], false],
    ['/v1/keys', ['v1', 'chat', '..', 'keys'], false],
    ['/v1/keys', ['v1', 'other'], false],
    ['/v1/keys', [], false],
    ['/v1/keys/x', ['v1', 'keys'], false],
    ['/v1/%zz', ['v1', '�'], false],
    ['/v1/a\\b', undefined, false],
    ['/v1/../keys', undefined, false],
    ['/v1/%2E./keys', undefined, false],
    ['/v1/./keys', ['v1', '.', 'keys'], false],
    ['//v1/keys', undefined, false],
    ['/v1/keys/', undefined, false],
    ['/v1/keys/..', undefined, false],
    ['', undefined, false],
  ]
  for (const [path, sent, expected] of rows)
    test(`${JSON.stringify(path)} sent as ${JSON.stringify(sent) ?? 'it is'}: ${expected}`, () =>
      expect(isPlainPath(path, sent)).toBe(expected))
})
