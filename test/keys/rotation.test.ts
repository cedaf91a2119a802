// Rotation of a key: a new text for the same key; the one before works until its grace ends, and no longer.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { loadRegistry } from '../../src/registry/registry.ts'
import { type Row, startTestServer, type TestServer } from '../support/latchkey.ts'

type Key = Row & { key: string; hash: string; label: string; previous_until: string | null }

const clock = { now: Date.now() }
let latchkey: TestServer
let made: Key
let number = 0
beforeAll(async () => {
  latchkey = await startTestServer({ dependencies: { now: () => clock.now } })
})
beforeEach(async () => {
  number += 1
  made = await latchkey.admin<Key>('keys.create', { name: `key ${number}` })
})
afterAll(() => latchkey.stop())

const rotate = (grace_seconds?: number) =>
  latchkey.admin<Key>('keys.rotate', { key: made.id, ...(grace_seconds === undefined ? {} : { grace_seconds }) })
const show = () => latchkey.admin<Key & { previous_last_used_at?: string | null }>('keys.show', { key: made.id })
async function call(method: string, path: string, key: string, body?: object) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
  const response = await fetch(latchkey.server.baseUrl + path, init)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}
const statusOf = async (key: string) => (await call('GET', '/key', key)).status

test('both texts work during the grace, and only the new one after it', async () => {
  const rotated = await rotate(60)
  expect(rotated).toMatchObject({ id: made.id, name: made.name })
  expect([rotated.hash === made.hash, rotated.label === made.label, rotated.key === made.key]).toEqual([
    false,
    false,
    false,
  ])
  expect([await statusOf(made.key), await statusOf(rotated.key)]).toEqual([200, 200])
  clock.now += 60_000
  expect([await statusOf(made.key), await statusOf(rotated.key)]).toEqual([401, 200])
  expect((await show()).previous_until).toBeNull()
})

test('without a grace of its own it is a day; with none, the text before ends at once', async () => {
  const { previous_until } = await rotate()
  expect(Date.parse(previous_until ?? '')).toBe(clock.now + 86_400_000)
  await rotate(0)
  expect(await statusOf(made.key)).toBe(401)
})

test('a second rotation ends the text of the first grace at once', async () => {
  const second = await rotate(600)
  const third = await rotate(600)
  expect([await statusOf(made.key), await statusOf(second.key), await statusOf(third.key)]).toEqual([401, 200, 200])
})

test('the use of each of the two texts is known', async () => {
  const { key } = await rotate(600)
  expect(await show()).toMatchObject({ current_last_used_at: null, previous_last_used_at: null })
  await statusOf(made.key)
  const previous_last_used_at = new Date(clock.now).toISOString()
  expect(await show()).toMatchObject({ current_last_used_at: null, previous_last_used_at })
  clock.now += 1_000
  await statusOf(key)
  const current_last_used_at = new Date(clock.now).toISOString()
  expect(await show()).toMatchObject({ current_last_used_at, previous_last_used_at })
  await rotate(0)
  expect(await show()).not.toHaveProperty('current_last_used_at')
})

test('a rotated key is the same after a restart, with both texts', async () => {
  const rotated = await rotate(600)
  const { registry, orm } = latchkey.server.context
  const loaded = await loadRegistry(orm)
  for (const each of [registry, loaded])
    expect([made, rotated].map(({ hash }) => each.keysByHash.get(hash)?.id)).toEqual([made.id, made.id])
})

test('the hash that a key had leads nowhere after the next rotation', async () => {
  await rotate(600)
  await rotate(600)
  expect(latchkey.server.context.registry.keysByHash.get(made.hash)).toBeUndefined()
})

test.each([[-1], [30 * 86_400 + 1], [0.5]])('a grace of %p seconds is refused, and changes nothing', async (grace) => {
  await expect(rotate(grace)).rejects.toMatchObject({ code: 'invalid' })
  expect(await show()).toMatchObject({ hash: made.hash })
})

test('a key of which only the hash was given is rotated where it was made', async () => {
  const hash = 'ab'.repeat(32)
  await latchkey.admin('config.apply', { document: { latchkey: 1, keys: [{ name: 'pinned', hash }] } })
  await expect(latchkey.admin('keys.rotate', { key: 'pinned' })).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('was made elsewhere'),
  })
})

test('over HTTP the answer has the new text, and a text before with its grace over says nothing of it', async () => {
  const boss = await latchkey.admin<Key>('keys.create', { name: `boss ${number}`, kind: 'management' })
  const { status, body } = await call('POST', `/keys/${made.hash}/rotate`, boss.key, { grace_seconds: 0 })
  expect({ status, body }).toMatchObject({ status: 200, body: { key: expect.stringMatching(/^sk-lk-v1-/) } })
  const refused = await call('GET', '/key', made.key)
  const unknown = await call(
    'GET',
    '/key',
    made.key.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
  )
  expect([refused.status, refused.body]).toEqual([401, unknown.body])
})
