// Who is taken for gone when an answer stands still: the upstream that says nothing, or the client that takes nothing.
import { describe, expect, test } from 'bun:test'
import { inspectEvents } from '../../src/inference/event-inspector.ts'
import { type PassageEnd, passThrough } from '../../src/inference/pass-through.ts'

const chunk = new TextEncoder().encode('data: {"choices":[{"delta":{"content":"x"}}]}\n\n')

const finish = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
const usage = 'data: {"choices":[],"usage":{"total_tokens":7}}\n\n'

function start({
  upstreamMilliseconds = 60_000,
  clientMilliseconds = 60_000,
  usageMilliseconds = 60_000,
  isCut = false,
  refusal = (): Uint8Array | undefined => undefined,
}) {
  let upstream: ReadableStreamDefaultController<Uint8Array> | undefined
  const aborted = Promise.withResolvers<void>()
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      upstream = controller
    },
  })
  const inspector = inspectEvents({ withholdsUsage: false })
  const settled = Promise.withResolvers<Omit<PassageEnd, 'callEnd'> & { tokens: number | null | undefined }>()
  let isCallOver = false
  const outliving: Promise<unknown>[] = []
  let leave = () => {}
  const passed = passThrough({
    body,
    inspector,
    abort: () => {
      aborted.resolve()
      upstream?.error(new Error('aborted'))
    },
    whenClientLeaves: (act) => {
      leave = act
    },
    peer: { isCut: () => isCut, outlives: (work) => outliving.push(work) },
    idleMilliseconds: upstreamMilliseconds,
    clientIdleMilliseconds: clientMilliseconds,
    usageMilliseconds,
    onFirstByte: () => {},
    refusal,
    settle: async ({ callEnd = Promise.resolve(), ...how }) => {
      void callEnd.then(() => {
        isCallOver = true
      })
      settled.resolve({ ...how, tokens: inspector.result().counts?.totalTokens })
    },
  })
  const state = { isAborted: false, isSettled: false }
  aborted.promise.then(() => {
    state.isAborted = true
  })
  settled.promise.then(() => {
    state.isSettled = true
  })
  return {
    reader: passed.getReader(),
    send: (text: string | Uint8Array = chunk) => upstream?.enqueue(Buffer.from(text)),
    close: () => upstream?.close(),
    fail: () => upstream?.error(new Error('broken')),
    /** As a runtime signals it: by the signal of the request. */
    leave: () => leave(),
    settled: settled.promise,
    aborted: aborted.promise,
    state,
    isCallOver: () => isCallOver,
    outliving,
  }
}
/** Everything that was scheduled has run. */
const turns = async () => {
  for (let count = 0; count < 10; count++) await new Promise((resolve) => setImmediate(resolve))
}

test('an upstream that says nothing is given up, and it is not the client who left', async () => {
  const { reader, send, settled } = start({ upstreamMilliseconds: 40 })
  send()
  expect((await reader.read()).value).toEqual(chunk)
  await expect(reader.read()).rejects.toThrow()
  expect(await settled).toMatchObject({ completed: false, clientLeft: false })
})

test('an upstream is not silent while it is the client that takes its time', async () => {
  const { reader, send, settled } = start({ upstreamMilliseconds: 20, clientMilliseconds: 200 })
  for (let count = 0; count < 5; count++) send()
  expect((await reader.read()).value).toEqual(chunk)
  // Only the limit of the client ends this, long after that of the upstream.
  expect(await settled).toMatchObject({ completed: false, clientLeft: true })
  await expect(reader.read().then(() => reader.read())).rejects.toThrow('stopped reading')
})

describe('a client that leaves', () => {
  const left = { completed: false, clientLeft: true }
  /** In each way that a runtime signals it, and both. */
  const ways: [string, (started: ReturnType<typeof start>) => void][] = [
    ['by its stream', ({ reader }) => void reader.cancel()],
    ['by its signal', ({ leave }) => leave()],
    ['by both', ({ reader, leave }) => [leave(), reader.cancel()]],
    ['by both, the other way round', ({ reader, leave }) => [reader.cancel(), leave()]],
  ]

  for (const [way, go] of ways) {
    test(`before its answer is complete ends the upstream call at once (${way})`, async () => {
      const started = start({})
      started.send()
      await started.reader.read()
      go(started)
      await started.aborted
      expect(await started.settled).toEqual({ ...left, tokens: undefined })
      expect(started.outliving).toEqual([])
    })

    for (const unread of [0, 1, 3])
      test(`after it is complete, with ${unread} chunks unread, waits for the usage and ends the call then (${way})`, async () => {
        const started = start({})
        started.send(finish)
        for (let count = 0; count < unread; count++) started.send()
        await started.reader.read()
        go(started)
        await turns()
        expect(started.state).toEqual({ isAborted: false, isSettled: false })
        started.send()
        await turns()
        expect(started.state).toEqual({ isAborted: false, isSettled: false })
        started.send(usage)
        expect(await started.settled).toEqual({ ...left, tokens: 7 })
        await started.aborted
        // A stop waits for this and no longer.
        expect(started.outliving).toHaveLength(1)
        await started.outliving[0]
      })
  }

  const endings: [string, (started: ReturnType<typeof start>) => void][] = [
    ['ends', ({ close }) => close()],
    ['says [DONE]', ({ send }) => send('data: [DONE]\n\n')],
    ['breaks off', ({ fail }) => fail()],
  ]
  for (const [name, end] of endings)
    test(`is waited for no longer when the upstream ${name}`, async () => {
      const started = start({})
      started.send(finish)
      await started.reader.read()
      started.reader.cancel()
      await turns()
      end(started)
      expect(await started.settled).toEqual({ ...left, tokens: undefined })
      await started.aborted
    })

  test('is waited for no longer than the time for usage', async () => {
    const started = start({ usageMilliseconds: 20 })
    started.send(finish)
    await started.reader.read()
    started.reader.cancel()
    // Set as late and for longer, so it fires after the limit, however slow the machine.
    const late = new Promise((resolve) => setTimeout(resolve, 100, 'late'))
    expect(await Promise.race([started.aborted, late])).not.toBe('late')
    expect(await started.settled).toEqual({ ...left, tokens: undefined })
  })

  test('after the usage came is not waited for', async () => {
    const started = start({})
    started.send(finish + usage)
    await started.reader.read()
    started.reader.cancel()
    await started.aborted
    expect(await started.settled).toEqual({ ...left, tokens: 7 })
    expect(started.outliving).toEqual([])
  })

  test('since the service cut it is not waited for', async () => {
    const started = start({ isCut: true })
    started.send(finish)
    await started.reader.read()
    started.reader.cancel()
    await started.aborted
    await started.settled
    expect(started.outliving).toEqual([])
  })

  test('when all is over changes nothing', async () => {
    const started = start({})
    started.send(`${finish + usage}data: [DONE]\n\n`)
    started.close()
    for (let read = await started.reader.read(); !read.done; read = await started.reader.read());
    started.leave()
    await turns()
    expect(await started.settled).toEqual({ completed: true, clientLeft: false, tokens: 7 })
    expect(started.state.isAborted).toBe(false)
  })
})

describe('the call of an upstream', () => {
  test('is over when the upstream ends it, and not when its last event has come', async () => {
    const { reader, send, close, settled, isCallOver } = start({})
    send(`${finish + usage}data: [DONE]\n\n`)
    await reader.read()
    await settled
    await turns()
    expect(isCallOver()).toBe(false)
    close()
    await turns()
    expect(isCallOver()).toBe(true)
  })

  test('is over when a stream ends without a last event', async () => {
    const { reader, send, close, settled, isCallOver } = start({})
    send()
    close()
    for (let read = await reader.read(); !read.done; read = await reader.read());
    await settled
    await turns()
    expect(isCallOver()).toBe(true)
  })

  test('is not known to be over after it was aborted', async () => {
    const { reader, send, settled, isCallOver } = start({})
    send()
    await reader.read()
    void reader.cancel()
    await settled
    await turns()
    expect(isCallOver()).toBe(false)
  })
})

test('a response that is ended for its client waits for the usage that is due', async () => {
  const last = new TextEncoder().encode('data: {"error":{}}\n\n')
  let isRefused = false
  const { reader, send, settled, aborted, state } = start({ refusal: () => (isRefused ? last : undefined) })
  send()
  expect((await reader.read()).value).toEqual(chunk)
  isRefused = true
  const read = reader.read()
  send(finish)
  await turns()
  expect(state).toEqual({ isAborted: false, isSettled: false })
  send(usage)
  expect((await read).value).toEqual(last)
  await aborted
  expect(await settled).toEqual({ completed: false, clientLeft: false, tokens: 7 })
})
