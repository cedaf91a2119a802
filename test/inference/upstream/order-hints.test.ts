// What upstreams get to know of the order of requests, as they receive it.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { answer } from '../../support/inference.ts'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../../support/scripted-upstream.ts'

let latchkey: TestServer
let upstream: ScriptedUpstream
let keys: Record<'interactive' | 'normal' | 'batch' | 'chat', string>
beforeAll(async () => {
  latchkey = await startTestServer()
  upstream = await startScriptedUpstream()
  const create = async (name: string, more: object) =>
    (await latchkey.admin<{ key: string }>('keys.create', { name, ...more })).key
  keys = {
    interactive: await create('interactive', { queue_class: 'interactive' }),
    normal: await create('normal', {}),
    batch: await create('batch', { queue_class: 'batch' }),
    chat: await create('chat', { attribute_from_header: 'x-user', fair_by: 'attribution' }),
  }
  const add = (name: string, more: object) =>
    latchkey.admin('upstreams.add', { name, base_url: upstream.url, models: [name], ...more })
  await add('plain', {})
  await add('vllm', { send_priority: true })
  await add('pool', { send_fairness_id: true })
})
afterAll(async () => {
  await latchkey.stop()
  await upstream.stop()
})

async function sent(
  key: keyof typeof keys,
  model: string,
  more: { headers?: object; body?: object; path?: string } = {},
) {
  upstream.answer.current = () => Response.json(answer)
  const response = await fetch(`${latchkey.server.baseUrl}${more.path ?? '/chat/completions'}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys[key]}`, 'content-type': 'application/json', ...more.headers },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], ...more.body }),
  })
  expect(response.status).toBe(200)
  const { body, headers } = upstream.requests.at(-1) ?? { body: '{}', headers: new Headers() }
  return { body: JSON.parse(body) as Record<string, unknown>, headers }
}
const idsIn = ({ headers }: { headers: Headers }) =>
  ['x-gateway-inference-fairness-id', 'x-llm-d-inference-fairness-id'].map((name) => headers.get(name))

describe('an upstream that is sent the priority', () => {
  test('gets it by the class of the key: a lower one is earlier', async () => {
    const priorities = []
    for (const key of ['interactive', 'normal', 'batch'] as const)
      priorities.push((await sent(key, 'vllm')).body.priority)
    expect(priorities).toEqual([-1, 0, 1])
  })

  test('gets none that a caller chose', async () => {
    const { body } = await sent('batch', 'vllm', { body: { priority: -1_000 } })
    expect(body).toEqual({ model: 'vllm', messages: [{ role: 'user', content: 'hi' }], priority: 1 })
  })

  test('gets it in no body that does not know it', async () => {
    const { body } = await sent('batch', 'vllm', { path: '/messages', body: { max_tokens: 5 } })
    expect(body).not.toHaveProperty('priority')
  })
})

test('an upstream that is not sent the priority gets the body as it was', async () => {
  expect((await sent('batch', 'plain', { body: { priority: 7 } })).body.priority).toBe(7)
  expect((await sent('batch', 'plain')).body).not.toHaveProperty('priority')
})

describe('an upstream that is sent fairness ids', () => {
  test('gets one for each key in both headers, which shows nothing of the key', async () => {
    const [one, again, other] = [
      await sent('normal', 'pool'),
      await sent('normal', 'pool'),
      await sent('batch', 'pool'),
    ]
    expect(idsIn(one)).toEqual(idsIn(again))
    expect(idsIn(one)).not.toEqual(idsIn(other))
    const [first, second] = idsIn(one)
    expect(first).toMatch(/^[0-9a-f]{32}$/)
    expect(second).toBe(first ?? '')
    expect(JSON.stringify([...latchkey.server.context.registry.keys.keys()])).not.toContain(first)
  })

  test('gets one for each attribution of a key that takes turns by attribution', async () => {
    const of = async (user: string) => idsIn(await sent('chat', 'pool', { headers: { 'x-user': user } }))
    expect(await of('ann')).toEqual(await of('ann'))
    expect(await of('ann')).not.toEqual(await of('bob'))
  })

  test('gets none that a caller chose', async () => {
    const headers = { 'x-gateway-inference-fairness-id': 'mine', 'x-llm-d-inference-fairness-id': 'mine' }
    expect(idsIn(await sent('normal', 'pool', { headers }))).not.toContain('mine')
    expect(idsIn(await sent('normal', 'plain', { headers }))).toEqual([null, null])
  })
})
