// Who is taken for gone when an answer stands still: the upstream that says nothing, or the client that takes nothing.
import { expect, test } from 'bun:test'
import { type PassedThrough, passThrough } from '../../src/inference/pass-through.ts'
import { inspectEvents } from '../../src/inference/usage.ts'

const chunk = new TextEncoder().encode('data: {"choices":[{"delta":{"content":"x"}}]}\n\n')

function start(upstreamMilliseconds: number, clientMilliseconds: number) {
  let upstream: ReadableStreamDefaultController<Uint8Array> | undefined
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      upstream = controller
    },
  })
  const settled = Promise.withResolvers<PassedThrough>()
  const passed = passThrough({
    body,
    inspector: inspectEvents(false),
    abort: () => upstream?.error(new Error('aborted')),
    idleMilliseconds: upstreamMilliseconds,
    clientIdleMilliseconds: clientMilliseconds,
    onFirstByte: () => {},
    settle: async (how) => settled.resolve(how),
  })
  return { reader: passed.getReader(), send: () => upstream?.enqueue(chunk), settled: settled.promise }
}

test('an upstream that says nothing is given up, and it is not the client who left', async () => {
  const { reader, send, settled } = start(40, 60_000)
  send()
  expect((await reader.read()).value).toEqual(chunk)
  await expect(reader.read()).rejects.toThrow()
  expect(await settled).toEqual({ completed: false, clientLeft: false })
})

test('an upstream is not silent while it is the client that takes its time', async () => {
  const { reader, send, settled } = start(20, 200)
  for (let count = 0; count < 5; count++) send()
  expect((await reader.read()).value).toEqual(chunk)
  // Only the limit of the client ends this, long after that of the upstream.
  expect(await settled).toEqual({ completed: false, clientLeft: true })
  await expect(reader.read().then(() => reader.read())).rejects.toThrow('takes nothing')
})
