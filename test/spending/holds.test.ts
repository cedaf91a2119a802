// What running requests hold of budgets: near a limit they take turns, alone they always run, and nothing stays held.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Budget as BudgetRow } from '../../db/schema/budget-schema.ts'
import { compileBudget } from '../../src/spending/budget.ts'
import { createBudgets } from '../../src/spending/budgets.ts'
import { createEstimates } from '../../src/spending/estimates.ts'
import { createHolds, type HeldPart } from '../../src/spending/holds.ts'
import { createBudgetSums } from '../../src/spending/sums.ts'
import {
  answer,
  deltaOf,
  eventOf,
  type Inference,
  question,
  startInference,
  streamReply,
  usageEvent,
} from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'
import { rejectionOf } from '../support/rejection.ts'
import { until } from '../support/until.ts'

type Key = Row & { key: string }

const only = (requests: number) => ({ nanodollars: Infinity, tokens: Infinity, requests })
const partOf = (name: string, own: number, left: number): HeldPart => ({
  ...{ name, own: { nanodollars: 0, tokens: 0, requests: own }, left: only(left) },
})
const never = new AbortController().signal

test('requests hold no more than is left, except one that is alone; and at the end nothing is held', async () => {
  const step = fc.record({
    name: fc.constantFrom('a', 'b'),
    own: fc.integer({ min: 1, max: 9 }),
    release: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const holds = createHolds()
      const releases: { name: string; own: number; release: () => void }[] = []
      for (const { name, own, release } of steps) {
        if (release) {
          const done = releases.shift()
          done?.release()
          // A second release changes nothing.
          done?.release()
        }
        const taken = holds.take([partOf(name, own, 10)], false)
        if (typeof taken !== 'string') releases.push({ name, own, release: taken })
        const held = releases.filter((each) => each.name === name)
        expect(held.length === 1 || held.reduce((sum, each) => sum + each.own, 0) <= 10).toBe(true)
        expect(holds.sizeOf(name).holding).toBe(held.length)
      }
      for (const { release } of releases) release()
      expect([holds.sizeOf('a'), holds.sizeOf('b')]).toEqual([
        { holding: 0, waiting: 0 },
        { holding: 0, waiting: 0 },
      ])
    }),
  )
})

test('a release that is lost is seen: its counter stays held', () => {
  const holds = createHolds()
  holds.take([partOf('a', 1, 10)], false)
  expect(holds.sizeOf('a')).toEqual({ holding: 1, waiting: 0 })
})

test('those who wait get their turns in order, and nobody passes them', async () => {
  const holds = createHolds()
  const first = holds.take([partOf('a', 5, 5)], false) as () => void
  const order: number[] = []
  const waiters = [1, 2, 3].map(async (number) => {
    const place = holds.queue('a')
    for (;;) {
      await place.turn(60_000, never)
      const taken = holds.take([partOf('a', 5, 5)], true)
      if (typeof taken === 'string') continue
      order.push(number)
      place.leave()
      await new Promise((resolve) => setImmediate(resolve))
      return taken()
    }
  })
  expect(holds.take([partOf('a', 0, 5)], false)).toBe('a')
  first()
  await Promise.all(waiters)
  expect(order).toEqual([1, 2, 3])
  expect(holds.sizeOf('a')).toEqual({ holding: 0, waiting: 0 })
})

test('a request that has waited for long is refused with 429, a reason to try again, and keeps no place', async () => {
  const budgets = createBudgets()
  const row: BudgetRow = {
    ...{ id: 'b', organizationId: 'o', name: 'tight', enabled: true, appliesTo: null, each: null, overrides: null },
    ...{
      windows: [{ per: 'lifetime', requests: 1 }],
      topUps: null,
      mode: 'block',
      unpriced: 'count',
      hold: 'expected',
      concurrentRequests: null,
      alerts: [],
    },
    ...{ createdAt: 1, updatedAt: 1, deletedAt: null, managedBy: null },
  }
  const compiled = [compileBudget(row, null)]
  budgets.install(
    compiled,
    createBudgetSums(compiled, () => 0),
  )
  const key = { id: 'k', organizationId: 'o', workspaceId: 'w', labels: null }
  const waiting = {
    asking: { policyId: null, attribution: null, session: null, models: [] },
    estimate: () => ({ requests: 1, tokens: 1, nanodollars: 0 }),
    ...{ check: () => {}, signal: never, now: () => 0, waitMilliseconds: 5 },
  }
  const release = budgets.hold(key, waiting) as () => void
  expect(await rejectionOf(Promise.resolve(budgets.hold(key, waiting)))).toMatchObject({
    ...{ code: 'rate_limited', reason: 'budget_held', headers: { 'retry-after': '1' }, metadata: { budget: 'tight' } },
  })
  release()
  expect(budgets.hold(key, waiting)).toBeFunction()
})

describe('an estimate', () => {
  const asked = { model: 'm', bytes: 300, outputMax: undefined }
  const price = (prompt: number, completion: number) => prompt + 10 * completion

  test('is a third of the bytes and 1,024 tokens before any response, and then follows the responses of the model', () => {
    const estimates = createEstimates()
    expect(estimates.of('expected', asked, price)).toEqual({ requests: 1, tokens: 1_124, nanodollars: 10_340 })
    for (let count = 0; count < 64; count++) estimates.note('m', 300, { prompt: 75, completion: count, nanodollars: 5 })
    expect(estimates.of('expected', asked, () => undefined)).toEqual({ requests: 1, tokens: 76 + 60, nanodollars: 5 })
    expect(estimates.of('expected', { ...asked, outputMax: 7 }, price).tokens).toBe(76 + 7)
  })

  test('of the worst is the maximum that is asked for', () => {
    const estimates = createEstimates()
    expect(estimates.of('worst', { ...asked, outputMax: 9_000 }, price).tokens).toBe(9_100)
    expect(estimates.of('worst', asked, price).tokens).toBe(100 + 4_096)
  })
})

describe('through the service', () => {
  let latchkey: Inference
  beforeAll(async () => {
    latchkey = await startInference()
  })
  beforeEach(() => latchkey.reset())
  afterAll(() => latchkey.stop())
  let made = 0
  const create = async (windows: object[], more: object = {}) => {
    const name = `h${made++}`
    const key = await latchkey.admin<Key>('keys.create', { name })
    await latchkey.admin('budgets.create', { name, applies_to: { keys: [name] }, windows, ...more })
    return { ...key, name }
  }
  const ask = async ({ key }: { key: string }, signal?: AbortSignal) => {
    const response = await latchkey.complete(question, { authorization: `Bearer ${key}` }, signal)
    await response.arrayBuffer()
    return response.status
  }
  /** Responses that wait until the test lets them go on. */
  const gate = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    latchkey.upstream.answer.current = async () => {
      await promise
      return Response.json(answer)
    }
    return resolve
  }

  test('requests at once do not pass a limit of requests by a single one', async () => {
    const key = await create([{ per: 'day', requests: 10 }])
    const statuses = await Promise.all(Array.from({ length: 40 }, () => ask(key)))
    expect(statuses.filter((status) => status === 200)).toHaveLength(10)
    expect(statuses.filter((status) => status === 402)).toHaveLength(30)
  })

  test('a budget that holds nothing is passed by requests at once, as before', async () => {
    const key = await create([{ per: 'day', requests: 1 }], { hold: 'off' })
    const release = gate()
    const asked = [ask(key), ask(key)]
    await until('both run', () => latchkey.upstream.requests.length === 2)
    release()
    expect(await Promise.all(asked)).toEqual([200, 200])
  })

  test('an estimate beyond the whole budget refuses nobody: requests run one after the other', async () => {
    const key = await create([{ per: 'day', tokens: 14 }])
    const release = gate()
    const asked = [ask(key), ask(key), ask(key)]
    await until('one runs', () => latchkey.upstream.requests.length === 1)
    release()
    // Two of 7 tokens fit.
    expect((await Promise.all(asked)).toSorted()).toEqual([200, 200, 402])
  })

  test('a top-up lets a request go on that waits, and one whose client leaves waits no longer', async () => {
    const key = await create([{ per: 'day', requests: 1 }])
    const release = gate()
    const first = ask(key)
    await until('one runs', () => latchkey.upstream.requests.length === 1)
    const leaving = new AbortController()
    const left = ask(key, leaving.signal).catch(() => 'left' as const)
    const second = ask(key)
    await latchkey.admin('keys.show', { key: key.name })
    leaving.abort()
    expect(await left).toBe('left')
    const until1 = new Date(Date.now() + 3_600_000).toISOString()
    await latchkey.admin('budgets.top_up', { budget: key.name, requests: 1, until: until1, because: 'a test' })
    await until('the second runs', () => latchkey.upstream.requests.length === 2)
    release()
    expect(await Promise.all([first, second])).toEqual([200, 200])
  })

  const streamed = { ...question, stream: true }
  const halfStream = () => {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(deltaOf('half'))),
      pull: () => Promise.reject(new Error('cut')),
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  }
  const leaving = async (body: object, { key }: Key) => {
    const left = new AbortController()
    const asked = latchkey.complete(body, { authorization: `Bearer ${key}` }, left.signal)
    await until('it runs', () => latchkey.upstream.requests.length === 1)
    left.abort()
    await asked.then((response) => response.text()).catch(() => {})
  }
  const whole = async (body: object, { key }: Key): Promise<void> =>
    void (await (await latchkey.complete(body, { authorization: `Bearer ${key}` })).text().catch(() => {}))
  const ends: [end: string, body: object, reply: () => Response | Promise<Response>, act: typeof whole][] = [
    ['its response', question, () => Response.json(answer), whole],
    ['its stream', streamed, () => streamReply(deltaOf('hi') + usageEvent + eventOf('[DONE]')), whole],
    ['a stream that is cut', streamed, halfStream, whole],
    ['an error of the upstream', question, () => new Response('broken', { status: 500 }), whole],
    ['a refused credential', question, () => new Response('no', { status: 401 }), whole],
    ['a response without a body', question, () => new Response(null, { status: 204 }), whole],
    ['a body of another type', question, () => new Response('text'), whole],
    ['its client, before the response', question, () => new Promise<Response>(() => {}), leaving],
  ]

  test.each(ends)('a request gives back what it held, ended by %s', async (_, body, reply, act) => {
    const key = await create([{ per: 'day', requests: 2 }])
    await latchkey.admin('keys.update', { key: key.name, queue_seconds: 0 })
    latchkey.upstream.answer.current = reply
    await act(body, key)
    latchkey.upstream.answer.current = () => Response.json(answer)
    await until(
      'its row',
      async () => (await latchkey.admin<{ data: Row[] }>('usage.requests', { key: key.name })).data[0],
    )
    // Two of them would not fit beside one that is still held.
    expect([await ask(key), await ask(key)]).toEqual([200, 402])
  })
})
