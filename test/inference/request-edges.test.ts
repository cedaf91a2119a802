// What a forwarded request costs and how long it lasts, at the edges: no price of the model that responded, a row that
// is late or lost, an upstream that is slow, a rate that is reached.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { Fault } from '../../src/fault.ts'
import { forward } from '../../src/inference/upstream/forward.ts'
import { createApp } from '../../src/server/app.ts'
import {
  answer,
  deltaOf,
  eventOf,
  finishOf,
  type Inference,
  question,
  startInference,
  streamReply,
} from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'
import { openRawRequest } from '../support/raw-request.ts'

let latchkey: Inference
let add: Inference['server']['context']['spending']['add']
beforeAll(async () => {
  latchkey = await startInference()
  add = latchkey.server.context.spending.add
})
beforeEach(() => latchkey.reset())
afterEach(() => {
  latchkey.server.context.spending.add = add
})
afterAll(() => latchkey.stop())

describe('the cost', () => {
  for (const [name, model] of [
    ['a model without a price', 'unpriced'],
    ['no model', undefined],
  ])
    test(`is that of the model that was asked for, where the response names ${name}`, async () => {
      await latchkey.admin('prices.set', { prices: [{ model: question.model, prompt: 1, completion: 1 }] })
      latchkey.upstream.answer.current = () => Response.json({ ...answer, model })
      const response = await latchkey.complete()
      await response.text()
      expect(await latchkey.usageOf(response)).toMatchObject([{ cost: 0.000_007, total_tokens: 7 }])
    })

  // On a server database, what is committed is counted when the node reads it.
  for (const isCommitted of [true, false])
    test(`is added as ${isCommitted ? 'committed' : 'not committed, where the row is lost'}`, async () => {
      const { spending, writer } = latchkey.server.context
      const added: unknown[] = []
      spending.add = (...all) => {
        added.push(all)
        add(...all)
      }
      if (!isCommitted) writer.appendUsage = () => Promise.reject(new Error('disk full'))
      latchkey.upstream.answer.current = () => Response.json({ ...answer, usage: { ...answer.usage, cost: 0.5 } })
      await (await latchkey.complete()).text()
      expect(added).toEqual([[latchkey.key.id, expect.any(Number), 0.5e9, isCommitted]])
    })
})

test('a failure is sent only after its row is committed', async () => {
  const { writer } = latchkey.server.context
  const { appendUsage } = writer
  const asked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  writer.appendUsage = async (row) => {
    asked.resolve()
    await released.promise
    await appendUsage(row)
  }
  latchkey.upstream.answer.current = () =>
    new Response(null, { status: 302, headers: { location: 'http://other.example' } })
  let hasEnded = false
  const ended = latchkey.complete().then((response) => {
    hasEnded = true
    return response
  })
  await asked.promise
  // A whole request: time enough for a response that does not wait.
  await fetch(`${latchkey.server.baseUrl}/oauth/jwks`)
  expect(hasEnded).toBe(false)
  released.resolve()
  const response = await ended
  expect(response.status).toBe(502)
  expect(await latchkey.usageOf(response)).toMatchObject([{ status: 502, completed: false }])
})

test('a stream that is cut between its finish reason and [DONE] is not completed', async () => {
  for (const [end, completed] of [
    ['', false],
    [eventOf('[DONE]'), true],
  ] as const) {
    latchkey.upstream.answer.current = () => streamReply(deltaOf('one') + finishOf() + end)
    const response = await latchkey.complete({ ...question, stream: true })
    await response.text()
    expect(await latchkey.usageOf(response)).toMatchObject([{ completed }])
  }
})

describe('the time for the first byte', () => {
  const firstByteMilliseconds = 20
  /** Forwards to an upstream that responds as the function does. */
  function send(fetch: (signal: AbortSignal) => Promise<Response>, more: Partial<Parameters<typeof forward>[1]> = {}) {
    const { context } = latchkey.server
    const [upstream] = context.registry.upstreamsInOrder
    if (upstream === undefined) throw new Error('There is no upstream')
    const request = new Request('http://127.0.0.1/v1/chat/completions', { method: 'POST' })
    const body = { contentType: 'application/json', bytes: new Uint8Array() }
    const outgoing = { method: 'POST', path: '/chat/completions', body, requestId: 'id', firstByteMilliseconds }
    return forward(request, { ...outgoing, ...more }, upstream, {
      ...context,
      fetch: (_url, { signal }) => fetch(signal as AbortSignal),
    })
  }

  test('ends with the head of the response: its body may take longer', async () => {
    let signal: AbortSignal | undefined
    const { response } = await send(async (given) => {
      signal = given
      return streamReply(deltaOf('one'))
    })
    // Set later and for longer, so this fires after the limit would have.
    await new Promise((resolve) => setTimeout(resolve, 2 * firstByteMilliseconds))
    expect(signal?.aborted).toBe(false)
    expect(await response.text()).toBe(deltaOf('one'))
  })

  test('begins again with each chunk of a body that is still arriving', async () => {
    let onChunk = () => {}
    const stream = (onProgress: () => void) => {
      onChunk = onProgress
      return new Blob().stream()
    }
    const body = { contentType: 'multipart/form-data', stream }
    let isAborted = false
    await send(
      async (signal) => {
        for (let chunk = 0; chunk < 3; chunk++) {
          await new Promise((resolve) => setTimeout(resolve, 250))
          onChunk()
        }
        isAborted = signal.aborted
        return streamReply(deltaOf('one'))
      },
      { body, firstByteMilliseconds: 500 },
    )
    expect(isAborted).toBe(false)
  })

  test('is a 504 when it is over, and the call is aborted', async () => {
    let signal: AbortSignal | undefined
    const sent = send((given) => {
      signal = given
      return new Promise((_, reject) => given.addEventListener('abort', () => reject(given.reason)))
    })
    const error = await sent.catch((caught) => caught)
    expect(error).toBeInstanceOf(Fault)
    expect(error.code).toBe('gateway_timeout')
    expect(signal?.aborted).toBe(true)
  })
})

test('a request over the rate is refused before its body has arrived', async () => {
  type Key = Row & { key: string }
  const { key } = await latchkey.admin<Key>('keys.create', { name: 'limited', requests_per_minute: 1 })
  await (await latchkey.complete(question, { authorization: `Bearer ${key}` })).text()
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'content-length': '1000' }
  const { socket, answer } = openRawRequest(`${latchkey.server.baseUrl}/chat/completions`, 'POST', headers)
  socket.write('{')
  expect((await answer).status).toBe(429)
  socket.destroy()
})

test.each([
  [200, () => Response.json({})],
  [200, () => new Response('data: [DONE]\n\n', { headers: { 'content-type': 'text/event-stream' } })],
  [502, () => new Response('', { status: 302 })],
])(
  'a response with the status %p lifts the idle limit of its connection until it has ended',
  async (status, answer) => {
    latchkey.upstream.answer.current = answer
    const { context, runByName, baseUrl } = latchkey.server
    const changes: [string, Request][] = []
    const peer = {
      address: '127.0.0.1',
      liftIdleLimit: (of: Request) => void changes.push(['lifted', of]),
      restoreIdleLimit: (of: Request) => void changes.push(['restored', of]),
      isCut: () => false,
      outlives: () => {},
    }
    const headers = { authorization: `Bearer ${latchkey.accessToken}`, 'content-type': 'application/json' }
    const body = JSON.stringify(question)
    const request = new Request(`${baseUrl}/chat/completions`, { method: 'POST', headers, body })
    const response = await createApp(context, runByName)(request, peer)
    await response.text()
    expect({ status: response.status, changes }).toEqual({
      status,
      changes: [
        ['lifted', request],
        ['restored', request],
      ],
    })
  },
)
