// Which responses of a database server are read, and which are refused before they take memory or time.
import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { readFitting } from '../../../db/read/fitting.ts'
import { parseBounded, readBounded, responseBytesMax } from '../../../db/remote/bounded-response.ts'
import { openServerDatabase } from '../../../db/remote/server-database.ts'
import { isTooLarge } from '../../../db/remote/server-errors.ts'
import { connectTo } from '../../../src/nodes/server-connection.ts'
import { startHranaServer } from '../../support/hrana-server.ts'
import { listenLocally, temporaryFolder } from '../../support/latchkey.ts'
import { rejectionOf } from '../../support/rejection.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

const zeros = '0'.repeat(1_000_000)

/** Sends a million bytes again and again, and counts them. */
function endless(): { body: ReadableStream<Uint8Array>; sent: () => number; isCancelled: () => boolean } {
  let [sent, isCancelled] = [0, false]
  const bytes = new TextEncoder().encode(zeros)
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      sent += bytes.length
      controller.enqueue(bytes)
    },
    cancel: () => {
      isCancelled = true
    },
  })
  return { body, sent: () => sent, isCancelled: () => isCancelled }
}

test('a response without an end is canceled soon after the limit', async () => {
  const { body, sent, isCancelled } = endless()
  expect(isTooLarge(await rejectionOf(readBounded(new Response(body))))).toBe(true)
  expect(isCancelled()).toBe(true)
  expect(sent()).toBeLessThan(responseBytesMax + 3 * zeros.length)
})

describe('of responses that are short enough,', () => {
  const isRefused = async (text: string) =>
    readBounded(new Response(text)).then(
      (bytes) => {
        expect(bytes.length).toBe(text.length)
        return false
      },
      (error: unknown) => isTooLarge(error),
    )
  const many = (count: number, item: (index: number) => string) => Array.from({ length: count }, (_, at) => item(at))

  test('those that take the parser long are refused', async () => {
    expect(await isRefused('['.repeat(100_000))).toBe(true)
    expect(await isRefused(`[${many(60_000, () => '[]')}]`)).toBe(true)
    expect(await isRefused(`{${many(10_000, (index) => `"a${index}":1`)}}`)).toBe(true)
    expect(await isRefused(`[${many(10_000, (index) => `{"a\\"${index}" :1}`)}]`)).toBe(true)
  })

  test('rows with any text are read', async () => {
    const value = JSON.stringify({ type: 'text', value: `{"quoted": [[[[[[[[[[[[[[[[[[[[ \\" : ] , "a" :` })
    expect(await isRefused(`{"rows":[${many(20_000, () => `[${value},${value}]`)}]}`)).toBe(false)
  })
})

describe('before the client decodes a response,', () => {
  const digits = '9'.repeat(1_000_000)
  const isCostly = (result: unknown) =>
    parseBounded(new TextEncoder().encode(JSON.stringify({ results: [result], text: digits }))).then(
      () => false,
      ({ code }: { code: string }) => code === 'HRANA_COSTLY',
    )
  const row = [
    { type: 'text', value: digits },
    { type: 'integer', value: String(-(2n ** 63n)) },
    { type: 'null' },
    { type: 'float', value: 1.5 },
  ]

  test('integers of a million digits, BLOBs and thousands of columns are refused', async () => {
    expect(await isCostly({ rows: [row, [{ type: 'integer', value: digits }]] })).toBe(true)
    expect(await isCostly({ rows: [row], last_insert_rowid: digits })).toBe(true)
    expect(await isCostly({ rows: [row, [{ type: 'blob', base64: '-_' }]] })).toBe(true)
    expect(await isCostly({ cols: new Array(2_001).fill({ name: 'a' }), rows: [row] })).toBe(true)
  })

  test('text with as many digits is read, beside the longest integer', async () => {
    expect(await isCostly({ cols: [{ name: 'a' }], rows: [row], last_insert_rowid: '7' })).toBe(false)
  })
})

test('a node asks for no compression, and refuses a compressed response without decompressing it', async () => {
  const asked: (string | null)[] = []
  const { url, listener } = await listenLocally(async (request) => {
    asked.push(request.headers.get('accept-encoding'))
    return new Response(gzipSync('0'.repeat(10_000_000)), { headers: { 'content-encoding': 'gzip' } })
  })
  const send = connectTo({ caFile: undefined })
  const response = await send(new Request(url, { method: 'POST', body: '{}' }), AbortSignal.timeout(5_000))
  expect(asked).toEqual(['identity'])
  expect((await rejectionOf(readBounded(response))).message).toContain('turn compression off')
  await listener.drain()
})

test('rows that do not fit in one response are read in parts', async () => {
  const database = await startHranaServer({ path: join(folder.path, 'large.db') })
  const opened = await openServerDatabase({
    url: database.url,
    token: undefined,
    create: true,
    send: (request) => fetch(request),
  })
  if ('refused' in opened) throw new Error(opened.message)
  const fill = `insert into notes select printf('%.*c', 1500000, 'x') from (values (1), (2), (3), (4))`
  await opened.client.batch(['create table notes (text text)', fill], 'write')
  const read = (rows: number) => opened.client.execute(`select text from notes limit ${rows}`)
  expect(isTooLarge(await rejectionOf(read(4)))).toBe(true)
  expect((await readFitting(4, read)).rows).toBe(2)
  await opened.close()
  await database.close()
})
