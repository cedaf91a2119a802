// What the logs say of a request: its trace, the client's address, and one line of the access log, without anything secret.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { linkSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Inference, question, startInference } from '../support/inference.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { until } from '../support/until.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const traceparent = `00-${traceId}-b7ad6b7169203331-01`

let folder: ReturnType<typeof temporaryFolder>
let latchkey: Inference | undefined
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(async () => {
  await latchkey?.stop()
  latchkey = undefined
  folder.remove()
})

type Line = Record<string, unknown>
const parse = (lines: string[]) => lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Line)
const accessLines = () => parse(readFileSync(join(folder.path, 'access.log'), 'utf8').split('\n'))
const logLines = (event: string) => parse(latchkey?.logLines ?? []).filter((line) => line.event === event)

async function start(settings: Record<string, string> = {}): Promise<Inference> {
  latchkey = await startInference(settings)
  return latchkey
}

describe('the access log', () => {
  test('has one line for each request, with the route and the key, in a file that only its owner reads', async () => {
    const { complete, key, server } = await start({ LATCHKEY_ACCESS_LOG: join(folder.path, 'access.log') })
    const completed = await complete(question, { traceparent })
    await fetch(`${server.baseUrl}/presets/secret-slug?token=secret-query`)
    await fetch(`${server.baseUrl}/secret-path`)
    await until('the last line', () => accessLines().at(-1)?.path === null)
    const lines = accessLines().slice(-3)
    expect(lines).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-.*Z$/),
        request_id: completed.headers.get('x-request-id'),
        trace_id: traceId,
        method: 'POST',
        path: '/v1/chat/completions',
        status: 200,
        milliseconds: expect.any(Number),
        key_id: key.id,
        client_address: '127.0.0.1',
      },
      expect.objectContaining({ method: 'GET', path: '/v1/presets/{slug}', status: 401, key_id: null }),
      expect.objectContaining({ method: 'GET', path: null, status: 404, key_id: null }),
    ])
    expect(JSON.stringify(lines)).not.toContain('secret')
    expect(JSON.stringify(lines)).not.toContain(key.key)
    expect(statSync(join(folder.path, 'access.log')).mode & 0o777).toBe(0o600)
  })

  test('is never the database, not even by another name: closing it would give up the lock', async () => {
    const databasePath = join(folder.path, 'latchkey.db')
    writeFileSync(databasePath, '')
    const { openAccessLog } = await import('../../src/observe/access-log.ts')
    const path = join(folder.path, 'other-name.log')
    linkSync(databasePath, path)
    const open = () => openAccessLog({ kind: 'file', path }, { databasePath, log: () => {} })
    expect(open).toThrow('it is the database')
  })

  test('cannot be out of reach, which the message says', async () => {
    const path = join(folder.path, 'access.log')
    symlinkSync(path, path)
    await expect(start({ LATCHKEY_ACCESS_LOG: path })).rejects.toThrow('LATCHKEY_ACCESS_LOG is')
  })

  test('cannot be a folder', async () => {
    mkdirSync(join(folder.path, 'access.log'))
    await expect(start({ LATCHKEY_ACCESS_LOG: join(folder.path, 'access.log') })).rejects.toThrow('not a regular file')
  })
})

describe('a refused request', () => {
  test('is logged with its trace and the address of its client', async () => {
    const { server, exchange } = await start()
    await fetch(`${server.baseUrl}/key`, { headers: { traceparent } })
    await exchange('no.jwt.here')
    expect(logLines('request_refused')).toEqual([
      expect.objectContaining({ trace_id: traceId, client_address: '127.0.0.1', status: 401 }),
    ])
    expect(logLines('exchange_refused')).toEqual([expect.objectContaining({ client_address: '127.0.0.1' })])
    expect(logLines('exchange_refused')[0]).not.toHaveProperty('trace_id')
  })

  test('is not logged where only errors are', async () => {
    const { server } = await start({ LATCHKEY_LOG_LEVEL: 'error' })
    await fetch(`${server.baseUrl}/key`)
    expect(logLines('request_refused')).toEqual([])
  })
})

test('every request is logged at the level debug', async () => {
  const { complete, key } = await start({ LATCHKEY_LOG_LEVEL: 'debug' })
  const completed = await complete()
  expect(logLines('request').at(-1)).toMatchObject({
    level: 'debug',
    request_id: completed.headers.get('x-request-id'),
    key_id: key.id,
  })
})

test('an upstream gets no traceparent that cannot be read, and no tracestate with it', async () => {
  const { complete, upstream } = await start()
  await complete(question, { traceparent: '00-1-2-01', tracestate: 'a=b' })
  const headers = Object.fromEntries(upstream.requests[0]?.headers ?? [])
  expect(headers).not.toHaveProperty('traceparent')
  expect(headers).not.toHaveProperty('tracestate')
})
