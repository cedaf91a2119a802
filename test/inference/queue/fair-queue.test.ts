import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createFairQueue, type FairQueue } from '../../../src/inference/queue/fair-queue.ts'
import {
  correct,
  createServerQueue,
  dequeue,
  enqueue,
  type QueueClass,
  type Ticket,
  takeNext,
} from '../../../src/inference/queue/server-queue.ts'

const bounds = { waitingMax: 4_096, waitingPerCounterMax: 256 }
const ticket = (fields: Partial<Ticket> = {}): Ticket => ({
  servers: ['gpu'],
  counter: 'a',
  weight: 1,
  class: 'normal',
  cost: 1,
  key: fields.counter ?? 'a',
  budgets: [],
  isRetry: false,
  ...fields,
})
const many = (count: number, fields: Partial<Ticket>) => Array.from({ length: count }, () => ticket(fields))

/** A queue with these limits, and what it has started after waiting, in order. */
function queueWith(limits: Record<string, number>, bounded = bounds, keyLimits: Record<string, number> = {}) {
  const started: Ticket[] = []
  const queue = createFairQueue(bounded, {
    limitOf: (server) => limits[server] ?? Number.POSITIVE_INFINITY,
    limitOfKey: (key) => keyLimits[key] ?? Number.POSITIVE_INFINITY,
    limitOfBudget: (counter) => keyLimits[counter] ?? Number.POSITIVE_INFINITY,
    choose: (_, [first = '']) => first,
    onStart: (each) => void started.push(each),
  })
  return { queue, started, limits }
}

/** Ends what runs, one after the other, as long as something that waited starts. Returns the counters in the order of their starts. */
function drain(queue: FairQueue, running: Ticket[], started: Ticket[], starts = Number.POSITIVE_INFINITY): string[] {
  const order: string[] = []
  let current: Ticket | undefined = running[0]
  while (current !== undefined && order.length < starts) {
    queue.end(current)
    current = started.shift()
    if (current !== undefined) order.push(current.counter)
  }
  return order
}
const countOf = (order: string[]) =>
  Object.fromEntries(Object.entries(Object.groupBy(order, (each) => each)).map(([key, all]) => [key, all?.length]))

describe('a request', () => {
  test('starts at once where there is room', () => {
    const { queue, started } = queueWith({ gpu: 2 })
    expect([queue.arrive(ticket()), queue.arrive(ticket())]).toEqual([{ server: 'gpu' }, { server: 'gpu' }])
    expect(started).toEqual([])
    expect(queue.at('gpu').running).toBe(2)
  })

  test('waits at a full server, and starts when another request ends', () => {
    const { queue, started } = queueWith({ gpu: 1 })
    const [first, second] = [ticket(), ticket()]
    queue.arrive(first)
    expect(queue.arrive(second)).toBe('waiting')
    expect(queue.waiting()).toBe(1)
    queue.end(first)
    expect(started).toEqual([second])
    expect(queue.waiting()).toBe(0)
  })

  test('starts at any of its servers that has room, and waits at none of the others then', () => {
    const { queue, started } = queueWith({ gpu: 1, cpu: 1 })
    const [first, second, both] = [ticket(), ticket({ servers: ['cpu'] }), ticket({ servers: ['gpu', 'cpu'] })]
    for (const each of [first, second, both]) queue.arrive(each)
    expect([queue.at('gpu').waiting, queue.at('cpu').waiting]).toEqual([1, 1])
    queue.end(second)
    expect(started).toEqual([both])
    expect([queue.at('gpu').waiting, queue.at('cpu').waiting]).toEqual([0, 0])
    queue.end(first)
    expect(started).toEqual([both])
  })

  test('that leaves does not start', () => {
    const { queue, started } = queueWith({ gpu: 1 })
    const [first, second, third] = [ticket(), ticket(), ticket()]
    for (const each of [first, second, third]) queue.arrive(each)
    queue.leave(second)
    queue.end(first)
    expect(started).toEqual([third])
  })

  test('that ends twice frees one place', () => {
    const { queue } = queueWith({ gpu: 1 })
    const first = ticket()
    for (const each of [first, ticket(), ticket()]) queue.arrive(each)
    queue.end(first)
    queue.end(first)
    expect([queue.at('gpu').running, queue.waiting()]).toEqual([1, 1])
  })

  test('may not wait beyond the bound of its counter, while another counter may', () => {
    const { queue } = queueWith({ gpu: 1 }, { waitingMax: 10, waitingPerCounterMax: 2 })
    for (const each of many(3, {})) queue.arrive(each)
    expect(queue.arrive(ticket())).toBe('full')
    expect(queue.arrive(ticket({ counter: 'b' }))).toBe('waiting')
  })

  test('may not wait beyond the bound of all', () => {
    const { queue } = queueWith({ gpu: 1 }, { waitingMax: 2, waitingPerCounterMax: 2 })
    for (const counter of ['a', 'b', 'c']) queue.arrive(ticket({ counter }))
    expect(queue.arrive(ticket({ counter: 'd' }))).toBe('full')
  })

  test('that was tried elsewhere starts before all that wait, also beyond the bounds', () => {
    const { queue, started } = queueWith({ gpu: 1 }, { waitingMax: 1, waitingPerCounterMax: 1 })
    const [first, retry] = [ticket(), ticket({ counter: 'b', isRetry: true })]
    for (const each of [first, ticket()]) queue.arrive(each)
    expect(queue.arrive(retry)).toBe('waiting')
    queue.end(first)
    expect(started).toEqual([retry])
  })

  test('starts when the limit of its server is raised', () => {
    const { queue, started, limits } = queueWith({ gpu: 1 })
    const second = ticket()
    queue.arrive(ticket())
    queue.arrive(second)
    limits.gpu = 2
    queue.startAll()
    expect(started).toEqual([second])
  })

  test('waits for another of its key when the key may run only so many, and lets others pass', () => {
    const { queue, started } = queueWith({ gpu: 2 }, bounds, { a: 1 })
    const [first, second, other] = [ticket(), ticket(), ticket({ counter: 'b' })]
    queue.arrive(first)
    expect(queue.arrive(second)).toBe('waiting')
    expect(queue.arrive(other)).toEqual({ server: 'gpu' })
    expect(queue.ofKey('a')).toMatchObject({ running: 1, waiting: 1 })
    queue.end(first)
    expect(started).toEqual([second])
  })
})

test('a request that a budget holds lets a later one of its key pass', () => {
  const { queue, started } = queueWith({ gpu: 2 }, bounds, { seat: 1 })
  const [seated, other] = [ticket({ budgets: ['seat'] }), ticket({ counter: 'b' })]
  const [held, free] = [ticket({ budgets: ['seat'] }), ticket()]
  for (const each of [seated, other, held, free]) queue.arrive(each)
  queue.end(other)
  expect(started).toEqual([free])
  queue.end(seated)
  expect(started).toEqual([free, held])
})

describe('a busy server', () => {
  test('is shared by weight', () => {
    const { queue, started } = queueWith({ gpu: 1 })
    const first = ticket({ counter: 'd' })
    queue.arrive(first)
    for (const [counter, weight] of [
      ['a', 1],
      ['b', 2],
      ['c', 4],
    ] as const)
      for (const each of many(200, { counter, weight })) queue.arrive(each)
    expect(countOf(drain(queue, [first], started, 140))).toEqual({ a: 20, b: 40, c: 80 })
  })

  test('is shared by work, not by requests', () => {
    const { queue, started } = queueWith({ gpu: 1 })
    const first = ticket({ counter: 'd' })
    queue.arrive(first)
    for (const each of many(100, { counter: 'a', cost: 300 })) queue.arrive(each)
    for (const each of many(100, { counter: 'b', cost: 100 })) queue.arrive(each)
    expect(countOf(drain(queue, [first], started, 80))).toEqual({ a: 20, b: 60 })
  })

  test('starts the first request of a late comer next, whatever waits of another', () => {
    const { queue, started } = queueWith({ gpu: 1 })
    const [first, ...flood] = many(250, {})
    for (const each of [first, ...flood]) if (each !== undefined) queue.arrive(each)
    let current = first
    for (let ended = 0; ended < 20 && current !== undefined; ended += 1) {
      queue.end(current)
      current = started.shift()
    }
    queue.arrive(ticket({ counter: 'b' }))
    expect(drain(queue, current === undefined ? [] : [current], started, 2)).toContain('b')
  })

  test('counts what a request was in the end', () => {
    const { queue, started } = queueWith({ gpu: 1 })
    const first = ticket({ counter: 'd' })
    queue.arrive(first)
    for (const counter of ['a', 'b']) for (const each of many(100, { counter })) queue.arrive(each)
    queue.end(first)
    const order: string[] = []
    for (let current = started.shift(); current !== undefined && order.length < 80; current = started.shift()) {
      order.push(current.counter)
      queue.end(current, current.counter === 'a' ? 3 : 1)
    }
    expect(countOf(order)).toEqual({ a: 20, b: 60 })
  })

  test('gives no credit for a request that started at once', () => {
    const { queue, started } = queueWith({ gpu: 2 })
    const [first, other] = [ticket({ cost: 1_000 }), ticket({ counter: 'd' })]
    for (const each of [first, other]) queue.arrive(each)
    for (const counter of ['a', 'b']) for (const each of many(100, { counter })) queue.arrive(each)
    for (let each = 0; each < 10; each += 1) queue.end(started.shift() ?? other)
    queue.end(first, 1)
    expect(countOf(drain(queue, [...started.splice(0)], started, 40))).toEqual({ a: 20, b: 20 })
  })

  test.each([1, 2, 4, 16])(
    'is shared by weight at %p places, although all responses are shorter than expected',
    (places) => {
      const { queue, started } = queueWith({ gpu: places })
      const running = many(places, { counter: 'first' })
      for (const each of running) queue.arrive(each)
      const waiting = 200
      for (let each = 0; each < waiting; each += 1)
        for (const [counter, weight] of [
          ['a', 4],
          ['b', 1],
        ] as const)
          queue.arrive(ticket({ counter, weight, cost: 1_034 }))
      const order: string[] = []
      for (let ended = running.shift(); ended !== undefined && order.length < waiting; ended = running.shift()) {
        queue.end(ended, 10)
        running.push(...started)
        order.push(...started.splice(0).map(({ counter }) => counter))
      }
      const { a = 0, b = 0 } = countOf(order)
      expect(a / b).toBeWithin(3.5, 4.5)
    },
  )

  test('applies a weight that was changed to what waits', () => {
    const { queue, started } = queueWith({ gpu: 1 })
    const first = ticket({ counter: 'd' })
    queue.arrive(first)
    for (const counter of ['a', 'b']) for (const each of many(100, { counter })) queue.arrive(each)
    queue.arrive(ticket({ counter: 'b', weight: 3 }))
    expect(countOf(drain(queue, [first], started, 80))).toEqual({ a: 20, b: 60 })
  })

  test('forgets counters that neither wait nor have a debt, and keeps the debt of others', () => {
    const server = createServerQueue()
    const startNext = () => {
      const next = takeNext(server, () => false)
      if (next !== undefined) dequeue(server, next)
      return next
    }
    for (const each of many(300, { counter: 'flood' })) enqueue(server, each)
    const debtor = ticket({ counter: 'debtor' })
    enqueue(server, debtor)
    const started = new Set<Ticket | undefined>()
    while (!started.has(debtor)) started.add(startNext())
    for (let each = 0; each < 100; each += 1) {
      enqueue(server, ticket({ counter: `once ${each}` }))
      startNext()
      startNext()
    }
    expect(server.flows.size).toBeLessThan(10)
    correct(server, debtor, 1_000)
    enqueue(server, ticket({ counter: 'debtor' }))
    expect(Array.from({ length: 50 }, () => startNext()?.counter)).toEqual(Array.from({ length: 50 }, () => 'flood'))
  })

  test('starts higher classes first, and one in twenty of a lower one', () => {
    const { queue, started } = queueWith({ gpu: 1 })
    const first = ticket({ counter: 'd' })
    queue.arrive(first)
    for (const each of ['batch', 'normal', 'interactive'] satisfies QueueClass[])
      for (const waiting of many(200, { counter: each, class: each })) queue.arrive(waiting)
    expect(countOf(drain(queue, [first], started, 201))).toEqual({ interactive: 181, normal: 10, batch: 10 })
  })

  test('starts a lower class at once when no higher one waits', () => {
    const { queue, started } = queueWith({ gpu: 1 })
    const [first, batch] = [ticket(), ticket({ class: 'batch', counter: 'b' })]
    queue.arrive(first)
    queue.arrive(batch)
    queue.end(first)
    expect(started).toEqual([batch])
  })
})

/** Arrivals, ends and leaves in any order; ids of tickets are positions. */
const counters = ['a', 'b', 'c', 'd'] as const
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('arrive' as const),
      counter: fc.constantFrom(...counters),
      weight: fc.constantFrom(1, 2, 4),
      class: fc.constantFrom<QueueClass>('interactive', 'normal', 'batch'),
      cost: fc.integer({ min: 1, max: 50 }),
      servers: fc.constantFrom(['gpu'], ['cpu'], ['gpu', 'cpu']),
      budgets: fc.constantFrom([], [], ['x'], ['y'], ['x', 'y']),
      isRetry: fc.constantFrom(false, false, false, true),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      at: fc.nat(),
      cost: fc.option(fc.integer({ min: 0, max: 99 }), { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), at: fc.nat() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('limit' as const),
      of: fc.constantFrom('gpu', 'cpu', 'b', 'x'),
      limit: fc.integer({ min: 0, max: 4 }),
    }),
  },
)

describe('after any arrivals, ends, leaves and changes of limits', () => {
  test('nothing starts beyond a limit, nothing waits that could run, and nothing is left in the end', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const limits: Record<string, number> = { gpu: 2, cpu: 1 }
        const keyLimits: Record<string, number> = { b: 1, c: 2 }
        const budgetLimits: Record<string, number> = { x: 2, y: 1 }
        const running = new Map<Ticket, string>()
        const waiting = new Set<Ticket>()
        const runs = (server: string) => [...running.values()].filter((each) => each === server).length
        const ofKey = (key: string) => [...running.keys()].filter((each) => each.key === key).length
        const ofBudget = (counter: string) =>
          [...running.keys()].filter(({ budgets }) => budgets.includes(counter)).length
        const isWithin = (counter: string) => ofBudget(counter) < (budgetLimits[counter] ?? Number.POSITIVE_INFINITY)
        const begin = (each: Ticket, server: string) => {
          expect(each.servers).toContain(server)
          expect(runs(server)).toBeLessThan(limits[server] ?? 0)
          expect(ofKey(each.key)).toBeLessThan(keyLimits[each.key] ?? Number.POSITIVE_INFINITY)
          expect(each.budgets.every(isWithin)).toBe(true)
          waiting.delete(each)
          running.set(each, server)
        }
        const queue = createFairQueue(bounds, {
          limitOf: (id) => limits[id] ?? 0,
          limitOfKey: (key) => keyLimits[key] ?? Number.POSITIVE_INFINITY,
          limitOfBudget: (counter) => budgetLimits[counter] ?? Number.POSITIVE_INFINITY,
          choose: (_, [first = '']) => first,
          onStart: begin,
        })
        const canRun = (each: Ticket) =>
          ofKey(each.key) < (keyLimits[each.key] ?? Number.POSITIVE_INFINITY) &&
          each.budgets.every(isWithin) &&
          each.servers.some((server) => runs(server) < (limits[server] ?? 0))
        const end = (each: Ticket | undefined, cost?: number) => {
          if (each === undefined || !running.delete(each)) return
          queue.end(each, cost)
        }
        for (const each of steps) {
          if (each.do === 'arrive') {
            const arrived = ticket({ ...each, key: each.counter })
            const outcome = queue.arrive(arrived)
            if (outcome === 'waiting') waiting.add(arrived)
            else if (outcome !== 'full') begin(arrived, outcome.server)
          } else if (each.do === 'end') end([...running.keys()][each.at % Math.max(1, running.size)], each.cost)
          else if (each.do === 'leave') {
            const left = [...waiting][each.at % Math.max(1, waiting.size)]
            if (left === undefined) continue
            waiting.delete(left)
            queue.leave(left)
          } else {
            const changed = each.of === 'b' ? keyLimits : each.of === 'x' ? budgetLimits : limits
            changed[each.of] = each.limit
            queue.startAll()
          }
          expect([...waiting].filter(canRun)).toEqual([])
          expect(queue.waiting()).toBe(waiting.size)
          for (const server of ['gpu', 'cpu']) {
            expect(queue.at(server).running).toBe(runs(server))
            expect(queue.at(server).waiting).toBe([...waiting].filter(({ servers }) => servers.includes(server)).length)
          }
        }
        Object.assign(limits, { gpu: 3, cpu: 3 })
        Object.assign(keyLimits, { b: 1 })
        Object.assign(budgetLimits, { x: 1 })
        queue.startAll()
        for (let guard = 0; running.size > 0 && guard < 1_000; guard += 1) end([...running.keys()][0])
        expect([running.size, waiting.size, queue.waiting(), queue.at('gpu').running, queue.at('cpu').running]).toEqual(
          [0, 0, 0, 0, 0],
        )
        for (const key of counters) expect(queue.ofKey(key)).toEqual({ running: 0, waiting: 0 })
        for (const counter of ['x', 'y']) expect(queue.runningOfBudget(counter)).toBe(0)
      }),
      { numRuns: 300 },
    )
  })

  test('no counter that always has requests waiting falls behind its share by more than one request of each', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ weight: fc.constantFrom(1, 2, 3, 5), cost: fc.integer({ min: 1, max: 20 }) }), {
          minLength: 2,
          maxLength: 5,
        }),
        (flows) => {
          const { queue, started } = queueWith({ gpu: 1 }, { waitingMax: 10_000, waitingPerCounterMax: 10_000 })
          const first = ticket({ counter: 'first' })
          queue.arrive(first)
          flows.forEach((flow, at) => {
            for (const each of many(300, { ...flow, counter: String(at) })) queue.arrive(each)
          })
          const served = flows.map(() => 0)
          for (const counter of drain(queue, [first], started, 250)) {
            const at = Number(counter)
            served[at] = (served[at] ?? 0) + (flows[at]?.cost ?? 0)
            if (served.some((work, each) => work >= (flows[each]?.cost ?? 0) * 299)) break
            const normal = flows.map(({ weight }, each) => (served[each] ?? 0) / weight)
            const slack = Math.max(...flows.map(({ cost, weight }) => cost / weight))
            expect(Math.max(...normal) - Math.min(...normal)).toBeLessThanOrEqual(2 * slack + 1e-9)
          }
        },
      ),
      { numRuns: 200 },
    )
  })
})
