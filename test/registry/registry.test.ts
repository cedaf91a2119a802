// The registry that the hot path reads equals the database after any sequence of admin operations, good and refused, alone and at once.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { OperationName } from '../../src/admin/operations.ts'
import { Fault } from '../../src/fault.ts'
import { keeping, loadRegistry, type Registry } from '../../src/registry/registry.ts'
import { startTestServer, type TestServer } from '../support/latchkey.ts'

let served: TestServer
beforeAll(async () => {
  served = await startTestServer()
})
afterAll(() => served.stop())

/** Names are few, so that operations meet each other; the numbers choose among them. */
const names = ['one', 'two', 'three']
const name = fc.constantFrom(...names)
const organization = fc.constantFrom('default', 'second')

type Step = { operation: OperationName; input: Record<string, unknown> }

function step(operation: OperationName, fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Step> {
  const wanted = operation === 'organizations.plan' ? {} : { organization }
  return fc.record({ operation: fc.constant(operation), input: fc.record({ ...wanted, ...fields }) })
}

const plan = fc.constantFrom('free', 'business', 'enterprise')
const issuerUrl = fc.constantFrom('https://one.example.com', 'https://two.example.com')
const lifetime = fc.integer({ min: 60, max: 900 })
const scope = fc.constantFrom(null, 'inference')
const anyStep = fc.oneof(
  step('organizations.plan', { organization, plan }),
  step('keys.create', { name, kind: fc.constantFrom('inference', 'management') }),
  step('keys.disable', { key: name }),
  step('keys.enable', { key: name }),
  step('keys.rotate', { key: name, grace_seconds: fc.constantFrom(0, 60) }),
  step('keys.delete', { key: name }),
  step('issuers.add', { name, issuer_url: issuerUrl }),
  step('issuers.update', { issuer: name, name, clock_skew_seconds: fc.integer({ min: 0, max: 600 }) }),
  step('issuers.delete', { issuer: name }),
  step('policies.create', { name, issuer: name, key: name, audience: name, subject: name }),
  step('policies.update', { policy: name, issuer: name, key: name, max_lifetime_seconds: lifetime }),
  step('policies.update', { policy: name, name, required_scope: scope }),
  step('policies.pause', { policy: name }),
  step('policies.resume', { policy: name }),
  step('policies.delete', { policy: name }),
)

/** What a sequence begins with, so that most of its steps find something; refused where it exists already. */
const beginning: Step[] = ['default', 'second'].flatMap((organization) => [
  { operation: 'issuers.add', input: { organization, name: 'one', issuer_url: 'https://one.example.com' } },
  { operation: 'keys.create', input: { organization, name: 'one' } },
  ...['one', 'two'].map(
    (name): Step => ({
      operation: 'policies.create',
      input: { organization, name, issuer: 'one', key: 'one', audience: 'any', subject: 'any' },
    }),
  ),
])

/** Maps as entries, so that the order is compared as well: lists are answered in it. */
function entriesOf({ organizations, keys, issuers, policies }: Registry): [string, object][][] {
  return [organizations, keys, issuers, policies].map((map) => [...map])
}

/** Runs a step and reports whether it was done; a refusal must be one of an admin's own making. */
async function run({ operation, input }: Step): Promise<boolean> {
  try {
    await served.admin(operation, input)
    return true
  } catch (error) {
    if (error instanceof Fault && ['not_found', 'conflict', 'invalid'].includes(error.code)) return false
    throw error
  }
}

test('the registry equals the database after any sequence of changes', async () => {
  await served.admin('organizations.create', { name: 'second' })
  const { registry, orm } = served.server.context
  const done: Record<string, number> = {}
  const turns = fc.array(fc.array(anyStep, { minLength: 1, maxLength: 4 }), { minLength: 5, maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(turns, async (sequence) => {
      for (const together of [...beginning.map((first) => [first]), ...sequence]) {
        const outcomes = await Promise.all(together.map(run))
        for (const [index, { operation }] of together.entries())
          done[operation] = (done[operation] ?? 0) + Number(outcomes[index])
        const loaded = await loadRegistry(orm)
        expect(entriesOf(registry)).toEqual(entriesOf(loaded))
        const keys = [...loaded.keys.values()]
        for (const { keysByHash } of [registry, loaded])
          for (const field of ['hash', 'previousHash'] as const) {
            const found = keys.filter((key) => key[field] !== '')
            expect(found.map((key) => keysByHash.get(key[field])?.id)).toEqual(found.map(({ id }) => id))
          }
      }
    }),
    { numRuns: 30 },
  )
  // Every kind of change really happened, so the comparison saw it.
  expect(Object.entries(done).filter(([, count]) => count === 0)).toEqual([])
  expect(Object.keys(done)).toHaveLength(14)
})

test('what a change does not touch stays the same value, so that running exchanges go on', async () => {
  const { registry } = served.server.context
  const organization = 'third'
  await served.admin('organizations.create', { name: organization })
  const { id: key } = await served.admin('keys.create', { organization, name: 'key' })
  const { id: issuer } = await served.admin('issuers.add', {
    organization,
    name: 'idp',
    issuer_url: 'https://a.example',
  })
  const policy = { organization, name: 'policy', issuer, key, audience: 'a', subject: 's' }
  const { id } = await served.admin('policies.create', policy)
  const before = entriesOf(registry).flat()
  await served.admin('keys.create', { organization, name: 'another' })
  const after = new Map(entriesOf(registry).flat())
  expect(before.map(([known]) => known)).toEqual(expect.arrayContaining([key, issuer, id]))
  for (const [id, value] of before) expect(after.get(id)).toBe(value)
})

test('values of the registry cannot be changed in place', () => {
  const values = entriesOf(served.server.context.registry).flatMap((entries) => entries.map(([, value]) => value))
  expect(values.length).toBeGreaterThan(0)
  for (const value of values) expect(Object.isFrozen(value)).toBe(true)
})

test('a key that was loaded packed is not found by a text that a rotation replaced', async () => {
  const { orm, registry: serving } = served.server.context
  const { id } = await served.admin('keys.create', { name: 'loaded' })
  const before = serving.keys.get(id)?.hash ?? ''
  const loaded = await loadRegistry(orm)
  // The text before the last rotation has a grace.
  for (let rotation = 0; rotation < 2; rotation++) await served.admin('keys.rotate', { key: 'loaded' })
  await keeping.key.load(loaded, orm, [id])
  const after = loaded.keys.get(id)?.hash ?? ''
  expect(after).not.toBe(before)
  for (const { keysByHash } of [serving, loaded])
    expect([keysByHash.get(before), keysByHash.get(after)?.id]).toEqual([undefined, id])

  await served.admin('keys.delete', { keys: ['loaded'] })
  await keeping.key.load(loaded, orm, [id])
  expect([loaded.keysByHash.get(after), loaded.keysByHash.get(before), loaded.keys.has(id)]).toEqual([
    undefined,
    undefined,
    false,
  ])
})
