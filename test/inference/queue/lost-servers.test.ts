// Inference servers that die and come back, clients that leave and limits that change, all at the same time and by chance.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { listen } from '../../../src/runtime/listen.ts'
import type { Handler } from '../../../src/runtime/listener.ts'
import { readSettingTexts } from '../../../src/settings/config.ts'
import { createChance } from '../../support/chance.ts'
import { freePort } from '../../support/free-port.ts'
import { answer } from '../../support/inference.ts'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'
import { until } from '../../support/until.ts'

type Replica = {
  url: string
  /** `most` is the most that ran at once. */
  counts: { most: number; ended: number }
  running: () => number
  respond: { current: () => Promise<Response> }
  start: () => Promise<void>
  kill: () => Promise<void>
}

async function createReplica(): Promise<Replica> {
  const port = await freePort()
  const counts = { most: 0, ended: 0 }
  const respond = { current: async () => Response.json(answer) }
  /** Those of a server that was killed do not run. */
  let running = new Set<Request>()
  const handler: Handler = async (request) => {
    const ofThis = running
    ofThis.add(request)
    request.signal.addEventListener('abort', () => ofThis.delete(request))
    counts.most = Math.max(counts.most, ofThis.size)
    try {
      return await respond.current()
    } finally {
      ofThis.delete(request)
      counts.ended += 1
    }
  }
  let listener: Awaited<ReturnType<typeof listen>> | undefined
  return {
    ...{ url: `http://127.0.0.1:${port}/v1`, counts, respond, running: () => running.size },
    start: async () => {
      running = new Set()
      listener = await listen({ hostname: '127.0.0.1', port }, handler)
    },
    kill: async () => {
      await listener?.drain(0)
    },
  }
}

let latchkey: TestServer
let replicas: [Replica, Replica]
let keys: string[]
beforeAll(async () => {
  const texts = readSettingTexts({ flags: {}, environment: {} })
  latchkey = await startTestServer({ start: { settings: { texts, reread: () => texts } } })
  replicas = [await createReplica(), await createReplica()]
  const limits = [{}, { queue_weight: 4 }, { queue_class: 'batch' }, { concurrent_requests: 2 }]
  const create = (more: object, at: number) =>
    latchkey.admin<{ key: string }>('keys.create', { name: `key ${at}`, queue_seconds: 60, ...more })
  keys = await Promise.all(limits.map(async (more, at) => (await create(more, at)).key))
  for (const [at, { url, start }] of replicas.entries()) {
    await start()
    await latchkey.admin('upstreams.add', { name: `gpu ${at}`, base_url: url, max_running: 3 })
  }
})
afterAll(async () => {
  await latchkey.stop()
  await Promise.all(replicas.map(({ kill }) => kill()))
})

const post = (key: string | undefined, signal?: AbortSignal) =>
  fetch(`${latchkey.server.baseUrl}/chat/completions`, {
    method: 'POST',
    signal,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  })
/** What runs and waits, at every upstream and of every key. */
const inLatchkey = () => {
  const { dispatch, registry } = latchkey.server.context
  const all = [
    ...[...registry.upstreams.keys()].map((id) => dispatch.at(id)),
    ...[...registry.keys.keys()].map((id) => dispatch.ofKey(id)),
  ]
  return all.reduce((total, { running, waiting }) => total + running + waiting, 0)
}

test('no request fails while one of two servers is killed, in turn', async () => {
  let isOver = false
  const statuses: number[] = []
  const client = async (_: unknown, at: number) => {
    while (!isOver) statuses.push((await post(keys[at % 3])).status)
  }
  for (const { respond } of replicas)
    respond.current = () => new Promise((resolve) => setTimeout(() => resolve(Response.json(answer)), 2))
  const clients = Array.from({ length: 8 }, client)
  for (let kill = 0; kill < 6; kill += 1) {
    const [killed, other] = kill % 2 === 0 ? replicas : [replicas[1], replicas[0]]
    await until('requests at both', () => replicas.every(({ running }) => running() > 0))
    await killed.kill()
    const before = other.counts.ended
    await until('requests at the other', () => other.counts.ended >= before + 20)
    await killed.start()
  }
  isOver = true
  await Promise.all(clients)
  expect(statuses.filter((status) => status !== 200)).toEqual([])
  await until('the end', () => inLatchkey() === 0, inLatchkey)
})

test('servers never get more than they can run, and nothing is left, whatever ends how', async () => {
  expect(latchkey.server.reload).toBeDefined()
  const chance = createChance('queue')
  const pick = <Value>(values: readonly Value[]) => values[Math.floor(chance() * values.length)] as Value
  const endings = [
    ...Array.from({ length: 6 }, () => () => Response.json(answer)),
    () => new Response('busy', { status: 429, headers: { 'retry-after': '1' } }),
    () => new Response('broken', { status: 500 }),
    () =>
      new Response('data: {"choices":[]}\n\ndata: [DONE]\n\n', { headers: { 'content-type': 'text/event-stream' } }),
  ]
  for (const { respond, counts } of replicas) {
    counts.most = 0
    respond.current = async () => {
      const [ending, milliseconds] = [pick(endings), chance() * 4]
      await new Promise((resolve) => setTimeout(resolve, milliseconds))
      return ending()
    }
  }
  let requests = 0
  const client = async (_: unknown, at: number) => {
    while (requests < 600) {
      requests += 1
      const leaving = new AbortController()
      if (chance() < 0.2) setTimeout(() => leaving.abort(), chance() * 10)
      const response = await post(keys[at % keys.length], leaving.signal).catch(() => undefined)
      await response?.arrayBuffer().catch(() => undefined)
    }
  }
  const clients = Promise.all(Array.from({ length: 24 }, client))
  const disturb = async () => {
    while (requests < 600) {
      const at = Math.floor(chance() * 2)
      const replica = replicas[at]
      const before = requests
      const what = pick(['kill', 'edit', 'reload'])
      if (what === 'kill') await replica?.kill().then(replica.start)
      else if (what === 'edit') {
        await latchkey.admin('upstreams.update', { upstream: `gpu ${at}`, max_running: 1 + Math.floor(chance() * 3) })
        await latchkey.admin('keys.update', { key: `key ${at}`, queue_weight: 1 + Math.floor(chance() * 9) })
      } else latchkey.server.reload?.()
      await until('more requests', () => requests >= Math.min(600, before + 40))
    }
  }
  await Promise.all([clients, disturb()])
  await until('the end', () => inLatchkey() === 0, inLatchkey)
  expect(Math.max(...replicas.map(({ counts }) => counts.most))).toBeLessThanOrEqual(3)
  expect(replicas.map(({ running }) => running())).toEqual([0, 0])
  for (const { respond } of replicas) respond.current = async () => Response.json(answer)
  expect((await post(keys[0])).status).toBe(200)
})

const upstreamsByName = () =>
  [...latchkey.server.context.registry.upstreams.values()].toSorted((one, other) => one.name.localeCompare(other.name))

test('requests that failed at full servers do not wait for the places of each other', async () => {
  for (const at of [0, 1]) await latchkey.admin('upstreams.update', { upstream: `gpu ${at}`, max_running: 1 })
  const gates = replicas.map(({ respond }) => {
    const { promise, resolve } = Promise.withResolvers<Response>()
    respond.current = () => {
      respond.current = async () => Response.json(answer)
      return promise
    }
    return resolve
  })
  const both = [post(keys[0]), post(keys[1])]
  await until('both', () => replicas.every(({ running }) => running() === 1))
  for (const resolve of gates) resolve(new Response('broken', { status: 500 }))
  expect((await Promise.all(both)).map(({ status }) => status)).toEqual([200, 200])
  expect(inLatchkey()).toBe(0)
})

test('a request whose server is killed goes to one that rests, where no other is left', async () => {
  const { circuits, monotonic } = latchkey.server.context
  const [resting] = upstreamsByName()
  for (const _ of [1, 2, 3]) if (resting !== undefined) circuits.noteFailure(resting, false, monotonic())
  const { promise, resolve } = Promise.withResolvers<Response>()
  replicas[1].respond.current = () => promise
  const request = post(keys[0])
  await until('the request', () => replicas[1].running() === 1)
  const killed = replicas[1].kill()
  expect((await request).status).toBe(200)
  resolve(Response.json(answer))
  await killed
  await replicas[1].start()
})
