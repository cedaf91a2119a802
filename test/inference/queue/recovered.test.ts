// A server that recovers takes requests that began to wait at another one while it rested: one as its trial, and then all.
import { afterEach, expect, test } from 'bun:test'
import { createCircuits } from '../../../src/inference/queue/circuit.ts'
import { createDispatch } from '../../../src/inference/queue/dispatch.ts'
import { searchPlaces, type Taken } from '../../../src/inference/queue/places.ts'
import { configuredUpstream, type Upstream } from '../../../src/inference/upstream/targets.ts'

let leaving = new AbortController()
afterEach(() => {
  leaving.abort(new Error('The test is over'))
  leaving = new AbortController()
})

const upstreamNamed = (id: string): Upstream => ({
  ...configuredUpstream(`http://${id}.example/v1`),
  ...{ id, name: id, maxRunning: 2 },
})

function startQueue() {
  const [resting, busy] = [upstreamNamed('resting'), upstreamNamed('busy')]
  const circuits = createCircuits<Upstream>(() => 0)
  const registry = { upstreams: new Map([resting, busy].map((each) => [each.id, each])), keys: new Map() }
  let [now, recheck] = [0, () => {}]
  const monotonic = () => now
  const dispatch = createDispatch({
    ...{ registry, budgets: { limitOf: () => undefined, nameOf: String }, monotonic },
    ...{ liveNodes: () => 1, random: () => 0, hash: () => 0, onWaited: () => {} },
    every: (_, work) => {
      recheck = work
      return () => {}
    },
  })
  /** The server at which each request got a place, in the order of arrival. */
  const places: (string | undefined)[] = []
  const found: Taken[] = []
  const ask = async () => {
    const at = places.push(undefined) - 1
    const next = searchPlaces(
      {
        groups: [{ model: 'm', upstreams: [resting, busy] }],
        ...{ key: { id: 'key', queueClass: 'normal', queueWeight: 1 }, counter: 'key', budgets: [], cost: 1 },
        ...{
          affinityKeyFor: () => undefined,
          signal: leaving.signal,
          waitsUntil: Date.now() + 60_000,
          recheck: () => {},
        },
      },
      { registry, dispatch, circuits, now: Date.now, monotonic },
    )
    const taken = await next(undefined)
    if (taken === undefined) return
    found.push(taken)
    places[at] = taken.attempt.upstream.id
  }
  const pass = async (milliseconds: number) => {
    now += milliseconds
    recheck()
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    return places
  }
  const askMany = (count: number) => {
    for (let at = 0; at < count; at += 1) ask().catch(() => {})
  }
  return { resting, circuits, found, ask: askMany, pass, monotonic }
}

test('a request that waits for one server gets a place at another that has recovered', async () => {
  const { resting, circuits, ask, pass, monotonic } = startQueue()
  for (const _ of [1, 2]) circuits.noteProbe(resting, false, 5_000, monotonic())
  ask(4)
  expect(await pass(1_000)).toEqual(['busy', 'busy', undefined, undefined])
  circuits.noteProbe(resting, true, 5_000, monotonic())
  expect(await pass(1_000)).toEqual(['busy', 'busy', 'resting', 'resting'])
})

test('after a rest, one of those that wait is the trial, and the others follow only once it has succeeded', async () => {
  const { resting, circuits, ask, pass, monotonic } = startQueue()
  for (const _ of [1, 2, 3]) circuits.noteFailure(resting, true, monotonic())
  ask(5)
  expect(await pass(100)).toEqual(['busy', 'busy', undefined, undefined, undefined])
  expect(await pass(500)).toEqual(['busy', 'busy', 'resting', undefined, undefined])
  // It rests for all others until the outcome is known.
  expect(await pass(500)).toEqual(['busy', 'busy', 'resting', undefined, undefined])
  circuits.noteSuccess(resting)
  expect(await pass(0)).toEqual(['busy', 'busy', 'resting', 'resting', undefined])
})

test('one that waits is not lost when its server frees a place before the other recovers', async () => {
  const { resting, circuits, found, ask, pass, monotonic } = startQueue()
  for (const _ of [1, 2]) circuits.noteProbe(resting, false, 5_000, monotonic())
  ask(3)
  await pass(0)
  circuits.noteProbe(resting, true, 5_000, monotonic())
  found[0]?.place.end(1)
  expect(await pass(1_000)).toEqual(['busy', 'busy', 'busy'])
  ask(2)
  expect(await pass(0)).toEqual(['busy', 'busy', 'busy', 'resting', 'resting'])
})
