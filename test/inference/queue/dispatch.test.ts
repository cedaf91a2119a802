// The bounds of the queue and its division among nodes, as the manual states them, without a network.
import { afterEach, describe, expect, test } from 'bun:test'
import type { Fault } from '../../../src/fault.ts'
import { createDispatch, type Place } from '../../../src/inference/queue/dispatch.ts'
import { configuredUpstream } from '../../../src/inference/upstream/targets.ts'
import { until } from '../../support/until.ts'

let leaving = new AbortController()
const waits: Promise<unknown>[] = []
afterEach(async () => {
  leaving.abort(new Error('The test is over'))
  await Promise.all(waits.splice(0))
  leaving = new AbortController()
})

function createQueue(maxRunning: number, nodes = 1, budgetLimits: Record<string, number> = {}) {
  const upstream = Object.freeze({ ...configuredUpstream('http://127.0.0.1:1/v1'), maxRunning })
  const dispatch = createDispatch({
    registry: { upstreams: new Map([[upstream.id, upstream]]), keys: new Map() },
    budgets: { limitOf: (counter) => budgetLimits[counter], nameOf: (counter) => `budget ${counter}` },
    ...{ liveNodes: () => nodes, random: () => 0, hash: () => 0, monotonic: () => 0 },
    ...{ every: () => () => {}, onWaited: () => {} },
  })
  /** A place, `waiting`, or the reason of the refusal. */
  const ask = (id: string, budgets: string[] = []): Place | string | undefined => {
    const key = { id, queueClass: 'normal', queueWeight: 1 } as const
    const request = {
      upstreams: [upstream],
      key,
      counter: id,
      budgets,
      cost: 1,
      affinityKey: undefined,
      isRetry: false,
    }
    try {
      const place = dispatch.take({ ...request, waitMillisecondsMax: 60_000, signal: leaving.signal })
      if (!(place instanceof Promise)) return place
      waits.push(place.catch(() => {}))
      return 'waiting'
    } catch (error) {
      return (error as Fault).reason
    }
  }
  const many = (count: number, id: (at: number) => string) => Array.from({ length: count }, (_, at) => ask(id(at)))
  return { ask, many, waiting: () => dispatch.at(upstream.id).waiting }
}

describe('at a full server', () => {
  test('256 requests of a key wait, the next one is refused, and another key still waits', () => {
    const { ask, many } = createQueue(1)
    ask('first')
    expect(new Set(many(256, () => 'a'))).toEqual(new Set(['waiting']))
    expect([ask('a'), ask('b')]).toEqual(['queue_full', 'waiting'])
  })

  test('4,096 requests wait in all', () => {
    const { ask, many } = createQueue(1)
    ask('first')
    expect(new Set(many(4_096, (at) => String(at % 16)))).toEqual(new Set(['waiting']))
    expect(ask('another')).toBe('queue_full')
  })
})

describe('the place of a call that may still run at its server', () => {
  const fill = () => {
    const { ask, waiting } = createQueue(1)
    const place = ask('first')
    if (typeof place !== 'object') throw new Error('The server is full')
    expect(ask('second')).toBe('waiting')
    return { place, waiting }
  }

  test('is given on when the server ends the call', async () => {
    const { place, waiting } = fill()
    const call = Promise.withResolvers<void>()
    place.endAfterCall(1, call.promise)
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    expect(waiting()).toBe(1)
    call.resolve()
    await call.promise
    await new Promise((resolve) => setImmediate(resolve))
    expect(waiting()).toBe(0)
  })

  test('is given on after a while where nothing says when the call is over, and once', async () => {
    const { place, waiting } = fill()
    place.endAfterCall(undefined)
    place.end()
    expect(waiting()).toBe(1)
    await until('the second', () => waiting() === 0)
  })
})

test('three nodes divide a limit, and each admits at least one request', () => {
  const admitted = (limit: number) =>
    createQueue(limit, 3)
      .many(limit, String)
      .filter((each) => typeof each === 'object')
  expect([admitted(8).length, admitted(2).length]).toEqual([2, 1])
})
