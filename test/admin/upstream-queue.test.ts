// What runs, waits and rests, as `upstreams list`, `top`, the doctor and HTTP show it.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { OperationResponse } from '../../src/admin/operations.ts'
import { answer } from '../support/inference.ts'
import { startTestServer, type TestServer } from '../support/latchkey.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'

let latchkey: TestServer
let gpu: ScriptedUpstream
let keys: Record<'flood' | 'management', string>
beforeAll(async () => {
  latchkey = await startTestServer()
  gpu = await startScriptedUpstream()
  const create = async (name: string, more: object = {}) =>
    (await latchkey.admin<{ key: string }>('keys.create', { name, ...more })).key
  keys = { flood: await create('flood'), management: await create('admin', { kind: 'management' }) }
  await latchkey.admin('upstreams.add', { name: 'gpu', base_url: gpu.url, max_running: 1 })
})
afterAll(async () => {
  await latchkey.stop()
  await gpu.stop()
})

const top = () => latchkey.admin<OperationResponse<'upstreams.top'>>('upstreams.top')
const post = () =>
  fetch(`${latchkey.server.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys.flood}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  })

test('shows what runs and waits, by upstream and by key, and how many tokens a second it takes', async () => {
  const gate = Promise.withResolvers<void>()
  gpu.answer.current = async () => {
    await gate.promise
    return Response.json(answer)
  }
  const requests = [post(), post(), post()]
  await until('two to wait', async () => (await top()).upstreams[0]?.waiting === 2)
  const both = { running: 1, waiting: 2 }
  expect(await top()).toMatchObject({
    upstreams: [{ ...both, name: 'gpu', max_running: 1, rests: [], tokens_per_second: 0 }],
    keys: [{ ...both, name: 'flood', organization: 'default' }],
  })
  const { data } = await latchkey.admin<{ data: object[] }>('upstreams.list')
  expect(data).toMatchObject([both])
  const response = await fetch(`${latchkey.server.baseUrl}/installation/queue`, {
    headers: { authorization: `Bearer ${keys.management}` },
  })
  expect(await response.json()).toMatchObject({ data: { upstreams: [both] } })
  gate.resolve()
  await Promise.all(requests)
  const { upstreams, keys: left } = await top()
  expect([upstreams, left]).toMatchObject([[{ running: 0, waiting: 0 }], []])
  expect(upstreams[0]?.tokens_per_second).toBeGreaterThan(0)
})

test('shows since and until when an upstream rests, and the doctor finds it', async () => {
  gpu.answer.current = () => new Response('broken', { status: 500 })
  for (const _ of [1, 2, 3]) await post()
  const { upstreams } = await top()
  const [rest] = upstreams[0]?.rests ?? []
  expect(rest?.model).toBeNull()
  expect(Date.parse(rest?.until ?? '')).toBeGreaterThan(Date.parse(rest?.since ?? ''))
  expect(upstreams[0]?.failing).toMatchObject({ failures: 3, problem: 'it responded with 500' })
  const found = async () => {
    const { findings } = await latchkey.admin<OperationResponse<'doctor.examine'>>('doctor.examine')
    return findings.filter(({ code }) => code.startsWith('upstream_')).map(({ level, code }) => `${level} ${code}`)
  }
  expect(await found()).toEqual(['error upstream_failing'])
  // It has other models, so that requests still have nowhere else to go.
  await latchkey.admin('upstreams.add', { name: 'spare', base_url: gpu.url, models: ['n'] })
  expect(await found()).toEqual(['error upstream_failing'])
  await latchkey.admin('upstreams.update', { upstream: 'spare', models: ['*'] })
  expect(await found()).toEqual(['warning upstream_resting'])
})
