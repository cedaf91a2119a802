// Uploads over HTTP (reference: Uploads): a small form is sent as it is, again if need be; a large one passes on as it
// arrives, and ends the call of the upstream when it says something that should have come first.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import type { Listener } from '../../src/runtime/listen.ts'
import { type Inference, startInference, type UsageRow } from '../support/inference.ts'
import { listenLocally, type Row } from '../support/latchkey.ts'
import { until } from '../support/until.ts'

const megabyte = 1024 * 1024
let latchkey: Inference
let listener: Listener
/** The whole requests that the upstream has received. */
let whole: { bytes: number; digest: string; contentType: string | null }[] = []

beforeAll(async () => {
  latchkey = await startInference({ LATCHKEY_MAX_BODY_MB: '12' })
  const receiving = await listenLocally(async (request) => {
    const hash = createHash('sha256')
    let bytes = 0
    try {
      for await (const chunk of request.body ?? []) {
        bytes += chunk.byteLength
        hash.update(chunk)
      }
    } catch {
      return new Response()
    }
    whole.push({ bytes, digest: hash.digest('hex'), contentType: request.headers.get('content-type') })
    return Response.json({ text: 'heard' })
  })
  listener = receiving.listener
  await latchkey.admin('upstreams.add', { name: 'big', base_url: `${receiving.url}/v1`, models: ['big'] })
  await latchkey.admin('keys.create', { name: 'limited', allowed_models: ['big'] })
})
beforeEach(() => {
  latchkey.reset()
  latchkey.upstream.answer.current = () => Response.json({ error: 'elsewhere' }, { status: 503 })
  whole = []
})
afterAll(async () => {
  await latchkey.stop()
  await listener.drain()
})

const boundary = 'aBoundary'
const field = (name: string, value: string) =>
  `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
const fileStart = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n`
const end = `\r\n--${boundary}--\r\n`
type Piece = string | number

/** Texts, and numbers of megabytes of a file, sent as a stream. */
function post(
  pieces: Piece[],
  { key = latchkey.key.key, contentType = `multipart/form-data; boundary=${boundary}` } = {},
) {
  const chunks = pieces.flatMap((piece) =>
    typeof piece === 'string' ? [Buffer.from(piece)] : Array.from({ length: piece }, () => Buffer.alloc(megabyte, 'x')),
  )
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  const body = new ReadableStream({
    pull: (controller) => {
      const chunk = chunks.shift()
      if (chunk === undefined) controller.close()
      else controller.enqueue(chunk)
    },
  })
  const headers = { authorization: `Bearer ${key}`, 'content-type': contentType }
  const url = `${latchkey.server.baseUrl}/audio/transcriptions`
  const sent = { digest: hash.digest('hex') }
  return { sent, response: fetch(url, { method: 'POST', headers, body, duplex: 'half' } as RequestInit) }
}

describe('a small form', () => {
  test('goes to the next upstream unchanged, with its model after the file', async () => {
    const { sent, response } = post([fileStart, 1, `\r\n${field('model', 'big')}`, end.slice(2)])
    expect((await response).status).toBe(200)
    expect(latchkey.upstream.requests).toHaveLength(1)
    expect(whole).toMatchObject([{ digest: sent.digest, contentType: `multipart/form-data; boundary=${boundary}` }])
  })

  const refused: [name: string, pieces: Piece[], status: number, says: RegExp][] = [
    ['two models', [field('model', 'big'), field('model', 'big'), fileStart, end], 400, /twice/],
    ['a model that is a file', [fileStart.replace('"file"', '"model"'), end], 400, /must be text/],
    ['a preset', [field('model', '@preset/x'), fileStart, end], 400, /cannot name a preset/],
    ['a preset beside the model', [field('model', 'big'), field('preset', 'x'), fileStart, end], 400, /preset/],
    ['an empty model', [field('model', ''), fileStart, end], 400, /model must be a name/],
    ['a line feed in the model', [field('model', 'big\n'), fileStart, end], 400, /without line breaks/],
    ['a long model', [field('model', 'x'.repeat(300)), fileStart, end], 400, /at most 256/],
  ]
  for (const [name, pieces, status, says] of refused)
    test(`with ${name} gets ${status}`, async () => {
      const response = await post(pieces).response
      expect([response.status, await response.text()]).toEqual([status, expect.stringMatching(says)])
      expect(whole).toEqual([])
    })

  test('of another media type gets 415, and says what to send', async () => {
    for (const contentType of ['application/json', 'multipart/form-data', 'multipart/form-data; boundary="a b"']) {
      const response = await post([field('model', 'big'), fileStart, end], { contentType }).response
      expect([response.status, await response.text()]).toEqual([415, expect.stringContaining('multipart/form-data')])
    }
  })

  test('of a caller that is limited to models holds no JSON and no other model', async () => {
    const { key } = await latchkey.admin<Row & { key: string }>('keys.create', {
      name: 'bound',
      allowed_models: ['big'],
    })
    const rows: [more: string, status: number][] = [
      [field('prompt', '[music]'), 200],
      [field('config', ' {"a":"b"}'), 400],
      [field('fallback_models', 'other'), 403],
      [field('engine', 'other'), 403],
    ]
    for (const [more, status] of rows) {
      const response = await post([field('model', 'big'), more, fileStart, end], { key }).response
      expect([more, response.status]).toEqual([more, status])
    }
  })
})

describe('a large form', () => {
  test('passes on as it arrives, unchanged, to the first upstream alone', async () => {
    const { sent, response } = post([field('model', 'big'), fileStart, 40, end])
    // The first upstream serves every model, and is not asked again.
    expect((await response).status).toBe(503)
    expect(latchkey.upstream.requests).toHaveLength(1)
    expect(
      createHash('sha256')
        .update(latchkey.upstream.requests[0]?.body ?? '')
        .digest('hex'),
    ).toBe(sent.digest)
    expect(whole).toEqual([])
  })

  test('without a model in its first megabytes gets 413, and says what to send first', async () => {
    const response = await post([fileStart, 20, `\r\n${field('model', 'big')}`, end.slice(2)]).response
    expect([response.status, await response.text()]).toEqual([
      413,
      expect.stringContaining('send model before the file'),
    ])
    expect(latchkey.upstream.requests).toEqual([])
  })

  for (const [name, late] of [
    ['a second model', field('model', 'other')],
    ['fallbacks', field('fallbacks', 'other')],
    ['JSON', field('metadata', '{"model":"other"}')],
    ['bytes after its end', `${end.slice(2)}x`],
  ] as const)
    test(`with ${name} after the file never arrives whole, and is refused`, async () => {
      const response = await post([field('model', 'big'), fileStart, 20, `\r\n${late}`, end.slice(2)]).response
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('"code":400')])
      expect(latchkey.upstream.requests).toEqual([])
      expect(await latchkey.usageOf(response)).toMatchObject([{ status: 400, completed: false }] as Partial<UsageRow>[])
    })

  test('may have plain fields after the file', async () => {
    const response = await post([field('model', 'big'), fileStart, 20, `\r\n${field('language', 'de')}`, end.slice(2)])
      .response
    expect(response.status).toBe(503)
    expect(latchkey.upstream.requests[0]?.body).toContain('"language"')
  })
})

test('a form that ends early leaves nothing behind', async () => {
  const response = await post([field('model', 'big'), fileStart, 20]).response
  expect([response.status, await response.text()]).toEqual([
    400,
    expect.stringContaining('ends before its last boundary'),
  ])
  await until('the end', () => latchkey.upstream.requests.length === 0)
})
