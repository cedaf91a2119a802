// The queue in front of real upstreams: what runs at once, who starts next, and what happens to requests that wait.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readSettingTexts } from '../../../src/settings/config.ts'
import { answer } from '../../support/inference.ts'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

type Held = { body: string; release: (response?: Response) => void }
/** Holds each request until a test releases it, and counts how many run. */
function holdRequests(upstream: ScriptedUpstream) {
  const held: Held[] = []
  const counts = { running: 0, most: 0, started: 0 }
  upstream.answer.current = async () => {
    const { promise, resolve } = Promise.withResolvers<Response>()
    counts.running += 1
    counts.started += 1
    counts.most = Math.max(counts.most, counts.running)
    held.push({
      body: upstream.requests.at(-1)?.body ?? '',
      release: (response = Response.json(answer)) => resolve(response),
    })
    const response = await promise
    counts.running -= 1
    return response
  }
  return { held, counts }
}

let latchkey: TestServer
let other: ScriptedUpstream
type Name = 'flood' | 'calm' | 'single' | 'impatient' | 'batch' | 'chat' | 'doomed'
let keys: Record<Name, { key: string; hash: string }>
beforeAll(async () => {
  const texts = readSettingTexts({ flags: {}, environment: {} })
  latchkey = await startTestServer({ start: { settings: { texts, reread: () => texts } } })
  other = await startScriptedUpstream()
  const create = (name: string, more: object = {}) =>
    latchkey.admin<{ key: string; hash: string }>('keys.create', { name, ...more })
  keys = {
    flood: await create('flood'),
    calm: await create('calm'),
    single: await create('single', { concurrent_requests: 1 }),
    impatient: await create('impatient', { queue_seconds: 0 }),
    batch: await create('batch', { queue_class: 'batch' }),
    doomed: await create('doomed', { concurrent_requests: 1 }),
    chat: await create('chat', { attribute_from_header: 'x-user', fair_by: 'attribution' }),
  }
  await addGpu()
})
const addGpu = () =>
  latchkey.admin('upstreams.add', { name: 'gpu', base_url: other.url, models: ['gpu'], max_running: 1 })
beforeEach(() => {
  other.requests.length = 0
})
afterAll(async () => {
  await latchkey.stop()
  await other.stop()
})

const post = (
  name: keyof typeof keys,
  content: string,
  { signal, model = 'gpu', user }: { signal?: AbortSignal; model?: string; user?: string } = {},
) =>
  fetch(`${latchkey.server.baseUrl}/chat/completions`, {
    method: 'POST',
    signal,
    headers: {
      ...{ authorization: `Bearer ${keys[name].key}`, 'content-type': 'application/json' },
      ...(user === undefined ? {} : { 'x-user': user }),
    },
    body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
  })
const counts = () => {
  const { dispatch, registry } = latchkey.server.context
  const gpu = [...registry.upstreams.values()].find(({ name, deletedAt }) => name === 'gpu' && deletedAt === null)
  return dispatch.at(gpu?.id ?? '')
}
const waits = (count: number) => until(`${count} requests to wait`, () => counts().waiting === count)

describe('a full inference server', () => {
  test('runs no more than it can, and the request that waited gets its answer', async () => {
    const { held, counts: seen } = holdRequests(other)
    const first = post('flood', '1')
    await until('the first request', () => held.length === 1)
    const second = post('flood', '2')
    await waits(1)
    held[0]?.release()
    expect((await first).status).toBe(200)
    await until('the second request', () => held.length === 2)
    held[1]?.release()
    expect([(await second).status, seen.most]).toEqual([200, 1])
    await until('the end', () => counts().running === 0)
  })

  test('starts the one request of a key next to many of another', async () => {
    const { held } = holdRequests(other)
    const flood = [post('flood', 'flood 0')]
    await until('the first request', () => held.length === 1)
    for (let each = 1; each < 6; each += 1) flood.push(post('flood', `flood ${each}`))
    await waits(5)
    const calm = post('calm', 'calm')
    await waits(6)
    for (let each = 0; each < 7; each += 1) {
      await until(`request ${each}`, () => held.length === each + 1)
      held[each]?.release()
    }
    await Promise.all([...flood, calm])
    const order = held.map(({ body }) => /(flood|calm) ?\d?/.exec(body)?.[0])
    expect(order.indexOf('calm')).toBeLessThanOrEqual(2)
  })

  test('starts the one request of a person next to many of another who shares the key', async () => {
    const { held } = holdRequests(other)
    const all = [post('chat', 'ann 0', { user: 'ann' })]
    await until('the first request', () => held.length === 1)
    for (let each = 1; each < 6; each += 1) all.push(post('chat', `ann ${each}`, { user: 'ann' }))
    await waits(5)
    all.push(post('chat', 'bob', { user: 'bob' }))
    await waits(6)
    for (let each = 0; each < 7; each += 1) {
      await until(`request ${each}`, () => held.length === each + 1)
      held[each]?.release()
    }
    await Promise.all(all)
    const order = held.map(({ body }) => /ann|bob/.exec(body)?.[0])
    expect(order.indexOf('bob')).toBeLessThanOrEqual(2)
  })

  test('starts a higher class first', async () => {
    const { held } = holdRequests(other)
    const all = [post('flood', 'first')]
    await until('the first request', () => held.length === 1)
    all.push(post('batch', 'batch'))
    await waits(1)
    all.push(post('calm', 'calm'))
    await waits(2)
    for (let each = 0; each < 3; each += 1) {
      await until(`request ${each}`, () => held.length === each + 1)
      held[each]?.release()
    }
    await Promise.all(all)
    expect(held.map(({ body }) => /first|batch|calm/.exec(body)?.[0])).toEqual(['first', 'calm', 'batch'])
  })

  test('refuses at once what may not wait, says when to retry, and records it', async () => {
    const { held } = holdRequests(other)
    const first = post('flood', '1')
    await until('the first request', () => held.length === 1)
    const refused = await post('impatient', '2')
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining('busy; retry in') } })
    const { data } = await latchkey.admin<{ data: object[] }>('usage.requests', { limit: 1 })
    expect(data).toMatchObject([{ request_id: refused.headers.get('x-request-id'), status: 429, upstream: null }])
    held[0]?.release()
    await first
  })

  test('forgets a request whose client leaves while it waits', async () => {
    const { held, counts: seen } = holdRequests(other)
    const first = post('flood', '1')
    await until('the first request', () => held.length === 1)
    const leaving = new AbortController()
    const second = post('calm', '2', { signal: leaving.signal }).catch(() => 'left')
    await waits(1)
    leaving.abort()
    await waits(0)
    held[0]?.release()
    expect([(await first).status, await second, seen.started]).toEqual([200, 'left', 1])
    await until('the end', () => counts().running === 0)
  })

  test('gives its place to the next when a client leaves that runs', async () => {
    const { held } = holdRequests(other)
    const leaving = new AbortController()
    const first = post('flood', '1', { signal: leaving.signal }).catch(() => 'left')
    await until('the first request', () => held.length === 1)
    const second = post('calm', '2')
    await waits(1)
    leaving.abort()
    await until('the second request', () => held.length === 2)
    for (const each of held) each.release()
    expect([await first, (await second).status]).toEqual(['left', 200])
  })
})

test('a server has noticed that a client left before it gets the next request', async () => {
  const noticed: boolean[] = []
  for (let round = 0; round < 3; round += 1) {
    const calls: AbortSignal[] = []
    other.answer.current = ({ signal }) => {
      calls.push(signal)
      if (calls.length === 1) signal.addEventListener('abort', () => noticed.push(counts().waiting === 1))
      return calls.length > 1 ? Response.json(answer) : new Promise<Response>(() => {})
    }
    const leaving = new AbortController()
    const first = post('flood', '1', { signal: leaving.signal }).catch(() => 'left')
    await until('the first request', () => calls.length === 1)
    const second = post('calm', '2')
    await waits(1)
    leaving.abort()
    expect([await first, (await second).status]).toEqual(['left', 200])
    await until('the end', () => counts().running === 0)
  }
  expect(noticed).toEqual([true, true, true])
})

describe('while a request waits,', () => {
  test('its key is disabled: it is refused when it is its turn, and the next one runs', async () => {
    const { held } = holdRequests(other)
    const first = post('flood', '1')
    await until('the first request', () => held.length === 1)
    const second = post('calm', '2')
    await waits(1)
    await latchkey.admin('keys.disable', { key: keys.calm.hash })
    const third = post('flood', '3')
    await waits(2)
    held[0]?.release()
    await until('the third request', () => held.length === 2)
    held[1]?.release()
    expect([(await first).status, (await second).status, (await third).status]).toEqual([200, 401, 200])
    await latchkey.admin('keys.enable', { key: keys.calm.hash })
  })

  test('its key is deleted: it is refused when it is its turn, and nothing is left of the key', async () => {
    const { held } = holdRequests(other)
    const id = keyId('doomed')
    const first = post('doomed', '1')
    await until('the first request', () => held.length === 1)
    const [second, third] = [post('doomed', '2'), post('flood', '3')]
    await waits(2)
    await latchkey.admin('keys.delete', { key: keys.doomed.hash })
    held[0]?.release()
    await until('the request of another key', () => held.length === 2)
    held[1]?.release()
    expect([(await second).status, (await third).status]).toEqual([401, 200])
    expect((await first).status).toBe(200)
    await until('the end', () => counts().running === 0)
    expect(latchkey.server.context.dispatch.ofKey(id)).toEqual({ running: 0, waiting: 0 })
  })

  test('the settings are read again: it goes on', async () => {
    const { held } = holdRequests(other)
    const first = post('flood', '1')
    await until('the first request', () => held.length === 1)
    const second = post('calm', '2')
    await waits(1)
    expect(latchkey.server.reload).toBeDefined()
    await latchkey.server.reload?.()
    expect(counts()).toMatchObject({ running: 1, waiting: 1 })
    held[0]?.release()
    await until('the second request', () => held.length === 2)
    held[1]?.release()
    expect([(await first).status, (await second).status]).toEqual([200, 200])
  })

  test('its server may run fewer: it starts when so few run', async () => {
    await latchkey.admin('upstreams.update', { upstream: 'gpu', max_running: 3 })
    const { held } = holdRequests(other)
    const all = [post('flood', '1'), post('flood', '2'), post('flood', '3')]
    await until('three requests', () => held.length === 3)
    all.push(post('calm', '4'))
    await waits(1)
    await latchkey.admin('upstreams.update', { upstream: 'gpu', max_running: 1 })
    for (const each of [0, 1]) {
      held[each]?.release()
      await until('the end of one', () => counts().running === 2 - each)
      expect([held.length, counts().waiting]).toEqual([3, 1])
    }
    held[2]?.release()
    await until('the last request', () => held.length === 4)
    held[3]?.release()
    expect(await Promise.all(all.map(async (each) => (await each).status))).toEqual([200, 200, 200, 200])
  })

  test('its server is removed: it fails with 503, and the one that runs there ends well', async () => {
    const { held } = holdRequests(other)
    const first = post('flood', '1')
    await until('the first request', () => held.length === 1)
    const second = post('calm', '2')
    await waits(1)
    const [id] = [...latchkey.server.context.registry.upstreams.values()].flatMap(({ id, name }) =>
      name === 'gpu' ? [id] : [],
    )
    await latchkey.admin('upstreams.remove', { upstream: 'gpu' })
    expect([(await second).status, held.length]).toEqual([503, 1])
    held[0]?.release()
    expect((await first).status).toBe(200)
    await until('the end', () => latchkey.server.context.dispatch.at(id ?? '').running === 0)
    await addGpu()
  })

  test('its server may run more: it starts', async () => {
    const { held } = holdRequests(other)
    const first = post('flood', '1')
    await until('the first request', () => held.length === 1)
    const second = post('calm', '2')
    await waits(1)
    await latchkey.admin('upstreams.update', { upstream: 'gpu', max_running: 2 })
    await until('the second request', () => held.length === 2)
    for (const each of held) each.release()
    expect([(await first).status, (await second).status]).toEqual([200, 200])
    await latchkey.admin('upstreams.update', { upstream: 'gpu', max_running: 1 })
  })
})

test('a key stays within its limit of requests at once, also at a server with room', async () => {
  await latchkey.admin('upstreams.add', { name: 'wide', base_url: other.url, models: ['wide'] })
  const { held, counts: seen } = holdRequests(other)
  const all = [post('single', '1', { model: 'wide' })]
  await until('the first request', () => held.length === 1)
  all.push(post('single', '2', { model: 'wide' }))
  await until('the second to wait', () => latchkey.server.context.dispatch.ofKey(keyId('single')).waiting === 1)
  held[0]?.release()
  await until('the second request', () => held.length === 2)
  held[1]?.release()
  expect([await Promise.all(all.map(async (each) => (await each).status)), seen.most]).toEqual([[200, 200], 1])
})

describe('a budget with a limit of requests at once', () => {
  const limit = { name: 'seats', each: 'attribution', concurrent_requests: 1 }
  const show = async (user: string) => {
    const headers = { authorization: `Bearer ${keys.chat.key}`, 'x-user': user }
    const response = await fetch(`${latchkey.server.baseUrl}/key`, { headers })
    return ((await response.json()) as { data: { queue: object } }).data.queue
  }

  test('lets each of its counters run so many, at servers with room, and shows callers what runs', async () => {
    await latchkey.admin('upstreams.update', { upstream: 'gpu', max_running: 8 })
    await latchkey.admin('budgets.create', limit)
    const { held } = holdRequests(other)
    const all = [post('chat', 'ann 1', { user: 'ann' })]
    await until('the first request', () => held.length === 1)
    all.push(post('chat', 'ann 2', { user: 'ann' }))
    await until('the second to wait', () => latchkey.server.context.dispatch.ofKey(keyId('chat')).waiting === 1)
    all.push(post('chat', 'bob 1', { user: 'bob' }))
    await until('the other person', () => held.length === 2)
    expect(held.map(({ body }) => /ann \d|bob \d/.exec(body)?.[0])).toEqual(['ann 1', 'bob 1'])
    const queue = { running: 2, waiting: 1, budgets: [{ budget: 'seats', running: 1, concurrent_requests: 1 }] }
    expect([await show('ann'), await show('bob')]).toEqual([queue, queue])
    expect(await show('eve')).toMatchObject({ budgets: [{ running: 0 }] })
    held[0]?.release()
    await until('the second request', () => held.length === 3)
    for (const each of held) each.release()
    expect(await Promise.all(all.map(async (each) => (await each).status))).toEqual([200, 200, 200])
    await until('the end', () => counts().running === 0)
  })

  test('is named where a request may not wait for it', async () => {
    await latchkey.admin('keys.update', { key: keys.chat.hash, queue_seconds: 0 })
    const { held } = holdRequests(other)
    const first = post('chat', 'ann 1', { user: 'ann' })
    await until('the first request', () => held.length === 1)
    const refused = await post('chat', 'ann 2', { user: 'ann' })
    expect([refused.status, await refused.json()]).toMatchObject([
      429,
      { error: { message: expect.stringContaining('The budget "seats" is limited to 1 request at once; retry in') } },
    ])
    await latchkey.admin('budgets.update', { budget: 'seats', mode: 'warn' })
    const allowed = post('chat', 'ann 3', { user: 'ann' })
    await until('the second request', () => held.length === 2)
    for (const each of held) each.release()
    expect([(await first).status, (await allowed).status]).toEqual([200, 200])
    await latchkey.admin('budgets.delete', { budget: 'seats' })
  })

  test('needs no window, but limits something', async () => {
    const create = latchkey.admin('budgets.create', { name: 'nothing', each: 'attribution' })
    await expect(create).rejects.toThrow('set windows or concurrent_requests')
  })
})

function keyId(name: keyof typeof keys): string {
  return latchkey.server.context.registry.keysByHash.get(keys[name].hash)?.id ?? ''
}
