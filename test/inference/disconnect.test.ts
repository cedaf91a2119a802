// Who breaks off, and what becomes of the call: a client that goes away ends the upstream call at once and is recorded
// as the side that left; an upstream that falls silent is cut, and is not taken for a client that left.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  deltaOf,
  eventOf,
  finishOf,
  type Inference,
  startInference,
  type UsageRow,
  usage,
} from '../support/inference.ts'
import { letNotice, openRawRequest, type RawRequest } from '../support/raw-request.ts'
import { holdStream, type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'

let latchkey: Inference
let brief: ScriptedUpstream
let headOnly: HeadOnly
let open: RawRequest[] = []
beforeAll(async () => {
  latchkey = await startInference()
  brief = await startScriptedUpstream()
  headOnly = await startHeadOnly()
  // The one of the settings is asked first, for whatever model.
  await latchkey.admin('upstreams.add', { name: 'brief', base_url: brief.url, models: ['silent-*'] })
  await latchkey.admin('upstreams.update', { upstream: 'brief', idle_seconds: 1 })
  await latchkey.admin('upstreams.add', { name: 'head', base_url: headOnly.url, models: ['head*'] })
})
beforeEach(() => {
  latchkey.reset()
  brief.requests.length = 0
})
afterEach(() => {
  for (const { socket } of open) socket.destroy()
  open = []
})
afterAll(async () => {
  await latchkey.stop()
  await brief.stop()
  headOnly.stop()
})

type HeadOnly = { url: string; sent: number; left: number; stop: () => void }

/** An upstream that sends the head of a stream and then nothing, and counts the callers that went away. */
async function startHeadOnly(): Promise<HeadOnly> {
  const server = createServer((_request, reply) => {
    reply.on('close', () => {
      upstream.left += 1
    })
    reply.writeHead(200, { 'content-type': 'text/event-stream' })
    reply.flushHeaders()
    upstream.sent += 1
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const upstream = { url, sent: 0, left: 0, stop: () => void server.close() }
  return upstream
}

/** The rows of a model that no other test asks for, once there is one. */
async function rowsOf(model: string): Promise<UsageRow[]> {
  const read = async () => {
    const { data } = await latchkey.admin<{ data: (UsageRow & { model_asked: string })[] }>('usage.requests')
    return data.filter(({ model_asked }) => model_asked === model)
  }
  await until(`the row of ${model}`, async () => (await read()).length > 0)
  // A second row would be committed no later than that of a request that comes after.
  await (await latchkey.complete({ model: 'after' })).text()
  return read()
}

/** A client on a separate connection, so that leaving ends that connection and nothing else. */
function ask(fields: { model: string } & Record<string, unknown>): RawRequest {
  const body = JSON.stringify({ messages: [], ...fields })
  const headers = { authorization: `Bearer ${latchkey.key.key}`, 'content-length': String(Buffer.byteLength(body)) }
  const request = openRawRequest(`${latchkey.server.baseUrl}/chat/completions`, 'POST', headers)
  request.socket.write(body)
  open.push(request)
  return request
}

/** An answer that never comes, and when its caller has come and gone. */
function neverAnswer() {
  const reached = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const answer = (request: Request) => {
    reached.resolve()
    return new Promise<Response>((resolve) =>
      request.signal.addEventListener('abort', () => {
        left.resolve()
        resolve(new Response())
      }),
    )
  }
  return { answer, reached: reached.promise, left: left.promise }
}

/** Resolves when the client has got this text. */
function sees({ socket }: RawRequest, mark: string): Promise<void> {
  return new Promise((resolve) => {
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (text.includes(mark)) resolve()
    })
  })
}

const failing = () => Response.json({ error: { message: 'no' } }, { status: 503 })
const leftBefore = {
  status: 499,
  completed: false,
  client_left: true,
  usage_source: 'none',
  first_byte_milliseconds: null,
}
const leftWithin = { status: 200, completed: false, client_left: true, usage_source: 'none' }

describe('a client that leaves', () => {
  for (const stream of [false, true]) {
    test(`before the first byte of ${stream ? 'a stream' : 'a JSON answer'} ends the upstream call and is one row of 499`, async () => {
      const upstream = neverAnswer()
      latchkey.upstream.answer.current = upstream.answer
      const model = `early-${stream}`
      const { socket } = ask({ model, stream })
      await upstream.reached
      socket.destroy()
      await upstream.left
      latchkey.reset()
      expect(await rowsOf(model)).toMatchObject([{ ...leftBefore, upstream: 'configured', streamed: stream }])
    })
  }

  test('after the head of an answer and before its first byte ends the upstream call', async () => {
    latchkey.upstream.answer.current = failing
    const { socket } = ask({ model: 'head', stream: true })
    await until('the head of the answer', () => headOnly.sent > 0)
    socket.destroy()
    await until('the upstream call to end', () => headOnly.left > 0)
    latchkey.reset()
    expect(await rowsOf('head')).toMatchObject([
      { completed: false, client_left: true, usage_source: 'none', first_byte_milliseconds: null, upstream: 'head' },
    ])
  })

  test('within a stream ends the upstream call and is one row, not completed', async () => {
    const held = holdStream()
    latchkey.upstream.answer.current = () => held.response
    const request = ask({ model: 'within', stream: true })
    const seen = sees(request, 'one')
    held.send(deltaOf('one'))
    await seen
    request.socket.destroy()
    await held.left
    latchkey.reset()
    expect(await rowsOf('within')).toMatchObject([leftWithin])
  })

  test('within a long JSON answer is charged, since the rest of it is read', async () => {
    const held = holdStream()
    held.response.headers.set('content-type', 'application/json')
    latchkey.upstream.answer.current = () => held.response
    const request = ask({ model: 'within JSON' })
    const seen = sees(request, 'one')
    // The newest chunk of a JSON answer is held back, so it takes more than one.
    held.send(`{"choices":["${'one'.repeat(256 * 1024)}"`)
    await seen
    request.socket.destroy()
    await letNotice(latchkey.server.baseUrl)
    held.send(`],"usage":${JSON.stringify(usage)}}`)
    held.end()
    latchkey.reset()
    expect(await rowsOf('within JSON')).toMatchObject([
      { status: 200, completed: false, client_left: true, usage_source: 'upstream', total_tokens: 7 },
    ])
  })

  test('before a short JSON answer has arrived whole is charged, since the rest of it is read', async () => {
    const { promise: rest, resolve: sendRest } = Promise.withResolvers<void>()
    const text = JSON.stringify({ model: 'm', usage })
    const begun = Promise.withResolvers<void>()
    const upstream = createServer((_request, reply) => {
      reply.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length })
      reply.write(text.slice(0, 10), () => begun.resolve())
      void rest.then(() => reply.end(text.slice(10)))
    })
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
    const base_url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
    await latchkey.admin('upstreams.add', { name: 'short', base_url, models: ['short'] })
    latchkey.upstream.answer.current = failing
    const { socket } = ask({ model: 'short' })
    await begun.promise
    // An upstream counts as reached once the head of its response has arrived.
    const { registry, reachability } = latchkey.server.context
    const isReached = () => registry.upstreamsInOrder.some((each) => each.name === 'short' && reachability.of(each))
    await until('the answer to begin', isReached)
    socket.destroy()
    await letNotice(latchkey.server.baseUrl)
    sendRest()
    latchkey.reset()
    expect(await rowsOf('short')).toMatchObject([
      { status: 200, completed: false, client_left: true, usage_source: 'upstream', total_tokens: 7 },
    ])
    upstream.close()
  })

  test('with most of what came unread ends the upstream call as well', async () => {
    const held = holdStream()
    latchkey.upstream.answer.current = () => held.response
    const request = ask({ model: 'unread', stream: true })
    const seen = sees(request, 'delta')
    for (let count = 0; count < 64; count++) held.send(deltaOf('x'.repeat(256 * 1024)))
    await seen
    request.socket.pause()
    request.socket.destroy()
    await held.left
    latchkey.reset()
    expect(await rowsOf('unread')).toMatchObject([leftWithin])
  })

  for (const include_usage of [true, false])
    test(`after the last content is charged, since its stream is read on for the usage${include_usage ? ' that it asked for' : ''}`, async () => {
      const model = `finished-${include_usage}`
      const held = holdStream()
      latchkey.upstream.answer.current = () => held.response
      const request = ask({ model, stream: true, stream_options: { include_usage } })
      const seen = sees(request, 'stop')
      held.send(deltaOf('one') + finishOf())
      await seen
      request.socket.destroy()
      await letNotice(latchkey.server.baseUrl)
      held.send(eventOf({ choices: [], usage: { ...usage, cost: 0.25 } }))
      await held.left
      latchkey.reset()
      expect(await rowsOf(model)).toMatchObject([
        { status: 200, completed: false, client_left: true, usage_source: 'upstream', total_tokens: 7, cost: 0.25 },
      ])
      expect(latchkey.server.context.spending.of(latchkey.key.id, Date.now()).ever).toBeGreaterThanOrEqual(0.25e9)
    })

  test('after the last content of an upstream that sends no usage still ends the call', async () => {
    const held = holdStream()
    latchkey.upstream.answer.current = () => held.response
    const request = ask({ model: 'finished-silent', stream: true })
    const seen = sees(request, 'stop')
    held.send(deltaOf('one') + finishOf())
    await seen
    request.socket.destroy()
    await held.left
    latchkey.reset()
    expect(await rowsOf('finished-silent')).toMatchObject([leftWithin])
  })

  test('while one upstream is asked is not taken to the next', async () => {
    const upstream = neverAnswer()
    latchkey.upstream.answer.current = upstream.answer
    const { socket } = ask({ model: 'first', models: ['second'] })
    await upstream.reached
    socket.destroy()
    await upstream.left
    latchkey.reset()
    expect(await rowsOf('first')).toMatchObject([{ ...leftBefore, upstream: 'configured', model: 'first' }])
    expect(latchkey.upstream.requests.map(({ body }) => JSON.parse(body).model)).toEqual(['after'])
    expect(brief.requests).toEqual([])
  })

  test('after the end of a stream has left nothing: it is completed, though the upstream keeps it open', async () => {
    const held = holdStream()
    latchkey.upstream.answer.current = () => held.response
    const request = ask({ model: 'late', stream: true })
    const seen = sees(request, '[DONE]')
    held.send(deltaOf('one') + eventOf('[DONE]'))
    await seen
    request.socket.destroy()
    await held.left
    latchkey.reset()
    expect(await rowsOf('late')).toMatchObject([{ status: 200, completed: true, client_left: false }])
  })
})

describe('an upstream that falls silent for longer than its idle_seconds', () => {
  /** Asks for a model, and resolves with all that came when the connection is closed. */
  async function readUntilClosed(model: string): Promise<string> {
    latchkey.upstream.answer.current = failing
    const { socket } = ask({ model, stream: true })
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
    })
    await new Promise((resolve) => socket.on('close', resolve))
    latchkey.reset()
    return text
  }
  const cut = { status: 200, completed: false, client_left: false, streamed: true }

  for (const [name, model, sent] of [
    ['after an event', 'silent-after', deltaOf('one')],
    ['within an event', 'silent-within', `${deltaOf('one')}data: {"choi`],
  ] as const) {
    test(`${name} is cut, and its client has not left`, async () => {
      const held = holdStream()
      brief.answer.current = () => held.response
      held.send(sent)
      const text = await readUntilClosed(model)
      await held.left
      expect(text).toContain('one')
      // The last piece of a chunked body would make the response look complete to the client.
      expect(text).not.toEndWith('0\r\n\r\n')
      expect(await rowsOf(model)).toMatchObject([{ ...cut, upstream: 'brief' }])
    })
  }

  test('after the head of its answer is cut, and its client has not left', async () => {
    await latchkey.admin('upstreams.update', { upstream: 'head', idle_seconds: 1 })
    const leftUntilNow = headOnly.left
    expect(await readUntilClosed('head-silent')).not.toEndWith('0\r\n\r\n')
    await until('the upstream call to end', () => headOnly.left > leftUntilNow)
    expect(await rowsOf('head-silent')).toMatchObject([{ ...cut, upstream: 'head', first_byte_milliseconds: null }])
  })
})
