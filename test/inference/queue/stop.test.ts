// What a stop of the server does to requests that wait for a place.
import { afterEach, expect, test } from 'bun:test'
import { answer } from '../../support/inference.ts'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

let gpu: ScriptedUpstream
afterEach(() => gpu.stop())

/** A server with one request that runs until `release`, and one that waits. */
async function startWithWaiting(settings: Record<string, string> = {}) {
  gpu = await startScriptedUpstream()
  const gate = Promise.withResolvers<Response>()
  gpu.answer.current = () => (gpu.requests.length === 1 ? gate.promise : Response.json(answer))
  const latchkey = await startTestServer({ settings })
  const { key } = await latchkey.admin<{ key: string }>('keys.create', { name: 'caller' })
  const { id } = await latchkey.admin('upstreams.add', { name: 'gpu', base_url: gpu.url, max_running: 1 })
  const post = () =>
    fetch(`${latchkey.server.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
    }).then(
      ({ status }) => status,
      () => 'cut',
    )
  const requests = [post()]
  await until('one to run', () => gpu.requests.length === 1)
  requests.push(post())
  await until('one to wait', () => at(latchkey, id).waiting === 1)
  return { latchkey, requests, release: () => gate.resolve(Response.json(answer)), counts: () => at(latchkey, id) }
}

function at({ server }: TestServer, id: string) {
  const { running, waiting } = server.context.dispatch.at(id)
  return { running, waiting }
}

test('a server that stops serves what waits, too', async () => {
  const { latchkey, requests, release, counts } = await startWithWaiting()
  const stopped = latchkey.stop()
  release()
  expect(await Promise.all(requests)).toEqual([200, 200])
  await stopped
  expect(counts()).toEqual({ running: 0, waiting: 0 })
})

test('a server whose time to stop is over ends what waits, and nothing of it reaches the upstream', async () => {
  const { latchkey, requests, release, counts } = await startWithWaiting({ LATCHKEY_DRAIN_SECONDS: '1' })
  await latchkey.stop()
  expect(await Promise.all(requests)).toEqual(['cut', 'cut'])
  await until('no request', () => counts().running === 0)
  expect(counts().waiting).toBe(0)
  expect(gpu.requests).toHaveLength(1)
  release()
})
