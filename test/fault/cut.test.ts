// A stopping server cuts requests that run too long. Each of them leaves a usage row, and no row says that its client
// left.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { listen } from '../../src/runtime/listen.ts'
import { createApp } from '../../src/server/app.ts'
import { deltaOf, type Inference, question, startInference, type UsageRow } from '../support/inference.ts'
import { holdStream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
afterAll(() => latchkey.stop())

test('a stream that is cut, and a request without an answer, are distinguished from requests whose clients left', async () => {
  const { context, runByName } = latchkey.server
  const bounds = { idleSeconds: 60, drainMilliseconds: 1 }
  const { port, drain } = await listen({ hostname: '127.0.0.1', port: 0 }, createApp(context, runByName), bounds)
  const ask = (body: object, signal?: AbortSignal) =>
    fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      signal,
      headers: { authorization: `Bearer ${latchkey.key.key}` },
      body: JSON.stringify({ ...question, ...body }),
    })
  const held = holdStream()
  const reached = Promise.withResolvers<void>()
  latchkey.upstream.answer.current = () => held.response
  held.send(deltaOf('one'))
  const streamed = await ask({ model: 'stream', stream: true })
  await streamed.body?.getReader().read()
  latchkey.upstream.answer.current = (request) => {
    reached.resolve()
    return new Promise((resolve) => request.signal.addEventListener('abort', () => resolve(new Response())))
  }
  const unanswered = ask({ model: 'mute' }).catch(() => 'cut')
  await reached.promise
  const leaving = new AbortController()
  const left = ask({ model: 'leaver' }, leaving.signal).catch(() => 'left')
  await until(
    'the third request',
    () => latchkey.upstream.requests.length === 3,
    () => latchkey.upstream.requests.length,
  )
  leaving.abort()
  expect(await left).toBe('left')
  const read = async () => (await latchkey.admin<{ data: UsageRow[] }>('usage.requests')).data
  await until('the row of who left', async () => (await read()).length === 1, read)

  await drain()
  expect(await unanswered).toBe('cut')
  await until('a row of each', async () => (await read()).length === 3, read)
  const rows = new Map((await read()).map((row) => [String(row.model_asked), row]))
  expect(rows.get('stream')).toMatchObject({ status: 200, completed: false, client_left: false })
  expect(rows.get('mute')).toMatchObject({ status: 503, completed: false, client_left: false })
  expect(rows.get('leaver')).toMatchObject({ status: 499, completed: false, client_left: true })
})
