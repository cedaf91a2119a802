// Which upstreams a body prefers, and what of it goes on to them.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readPreferences } from '../../../src/inference/upstream/preferences.ts'
import { type Inference, startInference } from '../../support/inference.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../../support/scripted-upstream.ts'

let inference: Inference
const servers: Record<string, ScriptedUpstream> = {}
beforeAll(async () => {
  inference = await startInference()
  for (const [name, priority] of [
    ['first', 1],
    ['second', 2],
    ['third', 2],
  ] as const) {
    const server = await startScriptedUpstream()
    servers[name] = server
    await inference.admin('upstreams.add', { name, base_url: server.url, models: ['m'], priority })
  }
})
beforeEach(() => {
  inference.reset()
  for (const { requests, answer } of Object.values(servers)) {
    requests.length = 0
    answer.current = () => Response.json({ model: 'm', choices: [] })
  }
})
afterAll(async () => {
  await inference.stop()
  await Promise.all(Object.values(servers).map(({ stop }) => stop()))
})

const ask = (provider: unknown) =>
  inference.complete({ model: 'm', messages: [{ role: 'user', content: 'hi' }], provider })
const asked = () =>
  Object.entries({ configured: inference.upstream, ...servers }).flatMap(([name, { requests }]) =>
    requests.map(() => name),
  )
const providerAt = (name: string) => JSON.parse(servers[name]?.requests[0]?.body ?? '{}').provider
const fail = (...names: string[]) => {
  for (const name of names) {
    const { answer } = name === 'configured' ? inference.upstream : (servers[name] ?? inference.upstream)
    answer.current = () => new Response('broken', { status: 500 })
  }
}

describe('a body', () => {
  test('with `only` reaches no other upstream, also when that one fails', async () => {
    fail('second')
    expect((await ask({ only: ['second'] })).status).toBe(500)
    expect(asked()).toEqual(['second'])
  })

  test('with `order` tries these first, in this order, then the others', async () => {
    fail('third', 'first', 'configured')
    expect((await ask({ order: ['third', 'first'] })).status).toBe(200)
    expect(asked().toSorted()).toEqual(['configured', 'first', 'second', 'third'])
    fail('second')
    inference.reset()
    expect((await ask({ order: ['third', 'first'], allow_fallbacks: false })).status).toBe(500)
    expect(inference.upstream.requests).toEqual([])
  })

  test('with `ignore` does not reach these', async () => {
    expect((await ask({ ignore: ['configured', 'first', 'third'] })).status).toBe(200)
    expect(asked()).toEqual(['second'])
  })

  test('fails with 404 when no upstream is left', async () => {
    const response = await ask({ only: ['first'], ignore: ['first'] })
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining('provider') } })
    expect(asked()).toEqual([])
  })

  test('passes on what is for others, without the names of upstreams', async () => {
    await ask({ only: ['first', 'mistral'], order: ['first'], ignore: ['x'], allow_fallbacks: false, sort: 'price' })
    expect(providerAt('first')).toEqual({ only: ['mistral'], ignore: ['x'], allow_fallbacks: false, sort: 'price' })
  })

  test('passes on nothing when all of it is for Latchkey', async () => {
    await ask({ only: ['first'], allow_fallbacks: false })
    expect(asked()).toEqual(['first'])
    expect(providerAt('first')).toBeUndefined()
  })

  for (const provider of [
    { only: ['mistral'], allow_fallbacks: false },
    { order: 'first' },
    ['first'],
    'first',
    { only: [] },
  ])
    test(`is unchanged when it names no upstream in a list: ${JSON.stringify(provider)}`, async () => {
      expect((await ask(provider)).status).toBe(200)
      expect(asked()).toEqual(['configured'])
      expect(JSON.parse(inference.upstream.requests[0]?.body ?? '{}').provider).toEqual(provider)
    })
})

test('any value is read without an error, and names of upstreams never pass on', () => {
  const names = ['gpu', 'cpu']
  const registry = { upstreamsInOrder: names.map((name) => ({ name })) } as unknown as Parameters<
    typeof readPreferences
  >[1]
  const list = fc.oneof(fc.array(fc.oneof(fc.constantFrom('gpu', 'cpu', 'other'), fc.jsonValue())), fc.jsonValue())
  const provider = fc.oneof(fc.record({ only: list, order: list, ignore: list }, { requiredKeys: [] }), fc.jsonValue())
  fc.assert(
    fc.property(provider, (value) => {
      const found = readPreferences(value, registry)
      const lists = [found?.rest?.only, found?.rest?.order, found?.rest?.ignore].filter(Array.isArray).flat()
      expect(lists.filter((entry) => names.includes(entry as string))).toEqual([])
    }),
  )
})

test('a response has the upstream and the attempt, if the organization wants that', async () => {
  fail('configured')
  expect((await ask(undefined)).headers.has('x-latchkey-upstream')).toBe(false)
  await inference.admin('organizations.update', { organization: 'default', upstream_headers: true })
  const { headers } = await ask(undefined)
  expect([headers.get('x-latchkey-upstream'), headers.get('x-latchkey-attempt')]).toEqual(['first', '2'])
  await inference.admin('upstreams.update', { upstream: 'first', name: 'große 100 %' })
  const renamed = await ask({ only: ['große 100 %'] })
  expect(renamed.headers.get('x-latchkey-upstream')).toBe('gro%C3%9Fe 100 %25')
})
