// Progress of long reports: over the local socket as lines of JSON, and on a terminal as one line that goes away.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createProgress } from '../../../scripts/shared/progress.ts'
import { askServer } from '../../../src/admin/transport/client.ts'
import { createLineReader, progressMediaType, respondWithProgress } from '../../../src/admin/transport/progress.ts'
import { Fault } from '../../../src/fault.ts'
import { json } from '../../../src/http/reply.ts'
import { type Listener, listen } from '../../../src/runtime/listen.ts'
import { socketPathFor } from '../../../src/settings/config.ts'
import { onFile } from '../../support/file-only.ts'
import { startTestServer, temporaryFolder } from '../../support/latchkey.ts'
import { type OrganizationRows, usageRow } from '../../support/rows.ts'
import { until } from '../../support/until.ts'

type Told = [done: number, total: number]

describe('over a socket', () => {
  const folder = temporaryFolder()
  const socketPath = `${folder.path}/s`
  let listener: Listener
  /** Released for each step of `slow`. */
  let step = Promise.withResolvers<void>()
  let ended: unknown
  beforeAll(async () => {
    listener = await listen({ socketPath }, (request) =>
      respondWithProgress(
        request,
        async (onProgress) => {
          const name = new URL(request.url).pathname.split('/').at(-1)
          if (name === 'quick') return json(200, { data: [1] })
          try {
            for (let done = 1; done <= (name === 'endless' ? 1e9 : 3); done++) {
              onProgress?.(done, 3)
              await step.promise
            }
          } catch (error) {
            ended = error
          }
          if (name === 'failing') return json(404, { error: { code: 'not_found', message: 'There is no key' } })
          return json(200, { data: ['x'.repeat(300_000), '\n'], more: null })
        },
        0,
      ),
    )
  })
  afterAll(async () => {
    await listener.drain()
    folder.remove()
  })
  const ask = async (name: string) => {
    const told: Told[] = []
    const answered = await askServer(socketPath, name, {}, { onProgress: (...progress) => void told.push(progress) })
    return { told, result: answered?.result }
  }

  test('the answer comes after the progress, whole', async () => {
    step.resolve()
    expect(await ask('slow')).toEqual({
      told: [
        [1, 3],
        [2, 3],
        [3, 3],
      ],
      result: { data: ['x'.repeat(300_000), '\n'], more: null },
    })
  })

  test('an error after progress is the same fault', async () => {
    step.resolve()
    const failed = ask('failing')
    await expect(failed).rejects.toBeInstanceOf(Fault)
    await expect(failed).rejects.toMatchObject({ code: 'not_found', message: 'There is no key' })
  })

  test('what ends without progress is answered as to those who do not ask for it', async () => {
    expect(await ask('quick')).toEqual({ told: [], result: { data: [1] } })
    for (const accept of ['*/*', progressMediaType]) {
      const response = await fetch('http://localhost/quick', { unix: socketPath, headers: { accept } })
      expect(response.headers.get('content-type')).toBe('application/json')
      expect(await response.json()).toEqual({ data: [1] })
    }
  })

  test('who does not ask for it gets the answer alone', async () => {
    step.resolve()
    const response = await fetch('http://localhost/slow', { unix: socketPath })
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.json()).toMatchObject({ more: null })
  })

  test('a report ends when its caller is gone', async () => {
    step = Promise.withResolvers()
    const leaving = new AbortController()
    const headers = { accept: progressMediaType }
    const response = await fetch('http://localhost/endless', { unix: socketPath, headers, signal: leaving.signal })
    await response.body?.getReader().read()
    leaving.abort()
    await until('the end of the report', () => {
      step.resolve()
      step = Promise.withResolvers()
      return ended !== undefined
    })
    expect(ended).toMatchObject({ code: 'unavailable' })
  })
})

test('an operation that reports nothing sends lines, so that nobody takes it for lost, and its answer follows', async () => {
  const gate = Promise.withResolvers<void>()
  const request = new Request('http://localhost/silent', { method: 'POST', headers: { accept: progressMediaType } })
  const run = async () => {
    await gate.promise
    return json(200, { data: [1] })
  }
  const response = await respondWithProgress(request, run, 1_000, 5)
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const { take, answer } = createLineReader(() => {
    throw new Error('There is no progress')
  })
  for (let lines = 0; lines < 2; lines += 1) {
    const { value } = await reader.read()
    expect(Buffer.from(value ?? []).toString()).toBe('{"waiting":true}\n')
    take(Buffer.from(value ?? []))
  }
  gate.resolve()
  for (let read = await reader.read(); !read.done; read = await reader.read()) take(Buffer.from(read.value))
  expect(answer()).toEqual({ data: [1] })
})

test('lines are read wherever they are cut', () => {
  const lines = Buffer.from(
    '{"progress":{"done":1,"total":2}}\n{"progress":{"done":2,"total":2}}\n{"answer":{"data":["ä"]}}\n',
  )
  for (let size = 1; size <= lines.length; size++) {
    const told: Told[] = []
    const { take, answer } = createLineReader((...progress) => void told.push(progress))
    for (let start = 0; start < lines.length; start += size) {
      expect(answer()).toBeUndefined()
      take(lines.subarray(start, start + size))
    }
    expect({ told, answer: answer() }).toEqual({
      told: [
        [1, 2],
        [2, 2],
      ],
      answer: { data: ['ä'] },
    })
  }
})

onFile('local socket').test(
  'a report gives progress on all its rows, and its answer over the socket is the same',
  async () => {
    const { server, config, admin, stop } = await startTestServer()
    const key = await admin('keys.create', { name: 'app' })
    const of = { organization: { id: key.organization_id }, workspace: { id: key.workspace_id }, key }
    const row = usageRow('request', of as OrganizationRows)
    await Promise.all(Array.from({ length: 3_000 }, () => server.context.writer.appendUsage(row)))
    const told: Told[] = []
    const onProgress = (...progress: Told) => void told.push(progress)
    const answer = await server.runOperation('usage.sum', {}, undefined, onProgress)
    expect(answer).toMatchObject({ data: [{ requests: 3_000 }] })
    expect(told.at(-1)).toEqual([3_000, 3_000])
    expect(await askServer(socketPathFor(config), 'usage.sum', {}, { onProgress })).toEqual({ result: answer })
    await stop()
  },
)

describe('on a terminal', () => {
  let time = 0
  const drawing = (isTTY: boolean) => {
    let text = ''
    const write = (more: string) => {
      text += more
    }
    return { ...createProgress({ isTTY, write }, () => time), text: () => text }
  }

  test('a report of more than a second shows its rows, and nothing is left of it', () => {
    const { onProgress, end, text } = drawing(true)
    onProgress(1, 2_000_000)
    expect(text()).toBe('')
    time += 1_000
    onProgress(1_234_567, 2_000_000)
    expect(text()).toBe('\r1,234,567 of 2,000,000 rows (61 %)\x1b[K')
    onProgress(1_300_000, 2_000_000)
    end()
    end()
    expect(text()).toBe('\r1,234,567 of 2,000,000 rows (61 %)\x1b[K\r\x1b[K')
  })

  test('a report that ends soon shows nothing, and none does in a pipe', () => {
    const soon = drawing(true)
    soon.onProgress(1, 2)
    soon.end()
    const piped = drawing(false)
    time += 5_000
    piped.onProgress(1, 2)
    piped.end()
    expect([soon.text(), piped.text()]).toEqual(['', ''])
  })
})
