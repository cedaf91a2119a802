// Lists of models from inference servers that stall, never end or send too much: neither the other lists nor the service wait for them.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { upstreamListMillisecondsMax } from '../../src/limits.ts'
import { type Inference, startInference } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'

let latchkey: Inference
let bad: ScriptedUpstream
beforeAll(async () => {
  latchkey = await startInference()
  bad = await startScriptedUpstream()
  await latchkey.admin('upstreams.add', { name: 'bad', base_url: bad.url, models: ['bad/*'] })
})
beforeEach(() => {
  latchkey.reset()
  latchkey.upstream.answer.current = () => Response.json({ data: [{ id: 'good' }] })
})
afterAll(async () => {
  await latchkey.stop()
  await bad.stop()
})

/** Begins to answer and never ends. With `drips` it sends a space from time to time. */
function stalling({ drips = false } = {}): Response {
  let timer: ReturnType<typeof setInterval> | undefined
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(Buffer.from('{"data":'))
      if (drips) timer = setInterval(() => controller.enqueue(Buffer.from(' ')), 500)
    },
    cancel: () => clearInterval(timer),
  })
  return new Response(body, { headers: { 'content-type': 'application/json' } })
}
const ask = async (path: string) => {
  const startedAt = performance.now()
  const headers = { authorization: `Bearer ${latchkey.key.key}` }
  const response = await fetch(latchkey.server.baseUrl + path, { headers })
  const { data } = (await response.json()) as { data?: Row[] }
  return { status: response.status, ids: data?.map(({ id }) => id), milliseconds: performance.now() - startedAt }
}
const check = async () => {
  const { data } = await latchkey.admin<{ data: (Row & { problem: string })[] }>('upstreams.check', { upstream: 'bad' })
  return data[0]
}

describe('an inference server that stalls after the head of its answer', () => {
  test('is left out of the list, and no answer of its own is waited for longer', async () => {
    bad.answer.current = () => stalling({ drips: true })
    const { current } = latchkey.upstream.answer
    latchkey.upstream.answer.current = (request) => (request.url.endsWith('/models') ? current(request) : stalling())
    const [list, one] = await Promise.all([ask('/models'), ask('/models/x')])
    expect([list.status, list.ids]).toEqual([200, ['good']])
    expect(one.status).toBe(504)
    for (const { milliseconds } of [list, one]) expect(milliseconds).toBeLessThan(upstreamListMillisecondsMax + 2_000)
  })
})

describe('an inference server that sends', () => {
  const endless = () => {
    const chunk = Buffer.alloc(256 * 1024, ' ')
    return new Response(new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(chunk) }))
  }
  const inflating = () =>
    new Response(gzipSync(Buffer.alloc(64 * 1024 * 1024, ' ')), { headers: { 'content-encoding': 'gzip' } })
  for (const [name, answer, problem] of [
    ['without end', endless, 'is larger than 4194304 bytes'],
    ['what inflates', inflating, 'is encoded'],
    ['no list', () => Response.json({ data: {} }), 'no list of models'],
    ['null', () => Response.json(null), 'no list of models'],
  ] as const)
    test(`${name} is left out of the list, and a check says why`, async () => {
      bad.answer.current = answer
      expect((await ask('/models')).ids).toEqual(['good'])
      expect(await check()).toMatchObject({ ok: false, models: null })
      expect((await check())?.problem).toContain(problem)
    })

  test('models without a name has those that have one', async () => {
    bad.answer.current = () => Response.json({ data: [null, 1, { id: 5 }, { id: 'bad/x' }] })
    expect((await ask('/models')).ids).toEqual(['good', 'bad/x'])
    expect(await check()).toMatchObject({ ok: true, models: 1 })
  })
})
