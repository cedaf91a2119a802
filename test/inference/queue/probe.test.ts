// Probes against a server that answers as a test says, with a clock that the test moves.
import { describe, expect, test } from 'bun:test'
import { createCircuits } from '../../../src/inference/queue/circuit.ts'
import { createProbes } from '../../../src/inference/queue/probe.ts'
import { createReachability } from '../../../src/inference/upstream/reachability.ts'
import { configuredUpstream, type Upstream } from '../../../src/inference/upstream/targets.ts'
import type { FetchInit } from '../../../src/runtime/outbound.ts'

type Answer = () => Response | Promise<Response>
const up: Answer = () => new Response('ok')
const down: Answer = () => new Response('loading', { status: 503 })
const gone: Answer = () => Promise.reject(Object.assign(new Error('refused'), { code: 'ConnectionRefused' }))

function createScene(fields: Partial<Upstream> = {}, credential?: string) {
  const upstream: Upstream = Object.freeze({
    ...configuredUpstream('http://gpu:8000/team/v1'),
    probePath: '/health',
    ...fields,
  })
  const registry = { upstreamsInOrder: [upstream] }
  const asked: { url: string; init: FetchInit }[] = []
  const clock = { now: 0 }
  const answer = { current: up }
  const circuits = createCircuits<Upstream>(() => 0.5)
  const reachability = createReachability(() => clock.now)
  const probes = createProbes({
    ...{ registry, circuits, reachability, now: () => 1_000 + clock.now, monotonic: () => clock.now },
    credentials: { of: async () => credential, replace: async () => undefined },
    fetch: async (url, init) => {
      asked.push({ url, init })
      return answer.current()
    },
  })
  const probe = (next: Answer, seconds = 5) => {
    answer.current = next
    clock.now += seconds * 1_000
    return probes.run()
  }
  const admits = () => circuits.admits(upstream, 'm', clock.now)
  const fail = (hasResponded: boolean) => {
    for (let each = 0; each < 3; each += 1) circuits.noteFailure(upstream, hasResponded, clock.now)
  }
  return { upstream, registry, probes, probe, asked, circuits, reachability, clock, admits, fail }
}

describe('a probe', () => {
  test('asks for the path beside /v1, with the credential of the upstream and without following redirects', async () => {
    const { probe, asked } = createScene({}, 'secret')
    await probe(up)
    expect(asked.map(({ url }) => url)).toEqual(['http://gpu:8000/team/health'])
    expect(asked[0]?.init).toMatchObject({ headers: { authorization: 'Bearer secret' }, redirect: 'manual' })
  })

  test('is made when it is due, at once for an upstream that was edited, and never without a path', async () => {
    const { probes, probe, asked, registry, upstream } = createScene({ probeSeconds: 7 })
    await probe(up, 0)
    await probe(up, 6)
    expect(asked).toHaveLength(1)
    await probe(up, 1)
    expect(asked).toHaveLength(2)
    registry.upstreamsInOrder = [Object.freeze({ ...upstream, probePath: '/other' })]
    await probes.run()
    expect(asked.at(-1)?.url).toBe('http://gpu:8000/team/other')
    registry.upstreamsInOrder = [Object.freeze({ ...upstream, probePath: null })]
    await probe(up, 60)
    expect(asked).toHaveLength(3)
  })

  test('is not made a second time while one runs', async () => {
    const { probe, asked } = createScene()
    const { promise, resolve } = Promise.withResolvers<Response>()
    const first = probe(() => promise)
    await probe(up, 60)
    expect(asked).toHaveLength(1)
    resolve(new Response('ok'))
    await first
  })

  const problems: [answer: Answer, problem: string | undefined][] = [
    [up, undefined],
    [() => new Response(null, { status: 204 }), undefined],
    [down, 'it responds with 503'],
    [() => new Response(null, { status: 302 }), 'it responds with 302'],
    [() => new Response(null, { status: 401 }), 'it responds with 401'],
    [gone, 'it cannot be reached (ConnectionRefused)'],
    [
      () => Promise.reject(new DOMException('The operation timed out', 'TimeoutError')),
      'it did not respond within 2 s',
    ],
  ]
  for (const [answer, problem] of problems)
    test(`finds ${problem ?? 'no problem'}`, async () => {
      const { probe, probes, upstream } = createScene()
      await probe(answer)
      expect(probes.of(upstream)).toEqual({ at: 6_000, milliseconds: 0, problem })
    })
})

describe('an upstream', () => {
  test('rests after two failed probes in a row until one succeeds, whatever the time of its rest', async () => {
    const { probe, admits, circuits, upstream, clock } = createScene()
    await probe(down)
    expect(admits()).toBe(true)
    await probe(up)
    await probe(gone)
    expect(admits()).toBe(true)
    await probe(gone)
    expect(admits()).toBe(false)
    expect(circuits.rests(upstream, 'm', clock.now)).toBe(true)
    for (let each = 0; each < 20; each += 1) await probe(down)
    expect(admits()).toBe(false)
    expect(circuits.list(upstream, clock.now)).toEqual([{ model: undefined, since: 15_000, until: clock.now + 12_000 }])
    await probe(up)
    expect([admits(), admits(), circuits.list(upstream, clock.now)]).toEqual([true, true, []])
  })

  test('that could not be reached is used again after a probe, without a trial, and counts as reachable', async () => {
    const { probe, admits, fail, reachability, upstream } = createScene()
    await probe(up)
    fail(false)
    reachability.note(upstream, false)
    expect(admits()).toBe(false)
    await probe(up)
    expect([admits(), admits(), reachability.of(upstream)]).toEqual([true, true, true])
  })

  test('that responded with failures rests on, however healthy it says that it is', async () => {
    const { probe, admits, fail, clock, circuits, upstream, reachability } = createScene({ probeSeconds: 1 })
    for (let each = 0; each < 8; each += 1) {
      fail(true)
      clock.now = (circuits.list(upstream, clock.now)[0]?.until ?? 0) - 1_001
      reachability.note(upstream, false)
      await probe(up, 1)
      expect([admits(), reachability.of(upstream)]).toEqual([false, false])
      clock.now += 1
      expect(admits()).toBe(true)
    }
  })

  test('that nobody probes any more is used again', async () => {
    const { probe, admits, clock } = createScene()
    await probe(down)
    await probe(down)
    clock.now += 11_999
    expect(admits()).toBe(false)
    clock.now += 1
    expect(admits()).toBe(true)
  })

  test('that serves a request does not rest, although its probes have failed', async () => {
    const { probe, admits, circuits, upstream } = createScene()
    await probe(down)
    await probe(down)
    circuits.noteSuccess(upstream)
    expect(admits()).toBe(true)
    await probe(down)
    expect(admits()).toBe(true)
  })
})
