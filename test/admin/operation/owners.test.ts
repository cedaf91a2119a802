// Owners of keys: a name that nobody has makes a user in the very commit of what it owns, with a record, and a refusal makes none.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { users } from '../../../db/schema/schema.ts'
import type { OperationName } from '../../../src/admin/operations.ts'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'

let latchkey: TestServer
beforeAll(async () => {
  latchkey = await startTestServer()
  // No key yet, and so no user.
  await latchkey.admin('organizations.create', { name: 'empty' })
  await latchkey.admin('presets.save', { preset: 'gone', dialect: 'chat', body: body({ model: 'm' }) })
  await latchkey.admin('presets.archive', { preset: 'gone' })
})
afterAll(() => latchkey.stop())

const userNames = async () => (await latchkey.server.context.orm.select().from(users)).map(({ name }) => name)
const changes = async () => (await latchkey.admin<{ data: object[] }>('audit.changes', { limit: 2 })).data
const body = (fields: object) => JSON.stringify({ messages: [{ role: 'user', content: 'x' }], ...fields })
const input = (owner: string) => ({ name: `key of ${owner}`, owner })

describe('a refusal makes no user', () => {
  test.each<[name: string, operation: OperationName, input: object]>([
    ['an end in the past', 'keys.create', { ...input('a'), expires_at: '2001-01-01' }],
    ['a limit for a management key', 'keys.create', { ...input('b'), kind: 'management', limit: 1 }],
    [
      'a preset that is too large',
      'presets.save',
      {
        organization: 'empty',
        preset: 'a',
        dialect: 'chat',
        body: body({ stop: 'x'.repeat(262_145) }),
      },
    ],
  ])('%s', async (_, operation, given) => {
    const before = [await userNames(), await changes()]
    await expect(latchkey.admin(operation, given as Record<string, unknown>)).rejects.toMatchObject({ code: 'invalid' })
    expect([await userNames(), await changes()]).toEqual(before)
  })
})

test('a new owner is recorded with the key, once', async () => {
  const { owner_id: id } = await latchkey.admin('keys.create', input('carol'))
  expect(await changes()).toMatchObject([
    { operation: 'keys.create', kind: 'key', after: { name: 'key of carol' } },
    { operation: 'keys.create', kind: 'user', target_id: id, before: null, after: { name: 'carol' } },
  ])
  await latchkey.admin('keys.create', { name: 'another', owner: 'carol' })
  expect(await changes()).toMatchObject([{ kind: 'key' }, { kind: 'key' }])
  expect((await userNames()).filter((name) => name === 'carol')).toEqual(['carol'])
})

test('a new maker of presets is recorded with the preset, once', async () => {
  const preset = { organization: 'empty', preset: 'first', dialect: 'chat', body: body({ model: 'm' }) }
  const { creator_user_id: id } = await latchkey.admin('presets.save', preset)
  expect(await changes()).toMatchObject([
    { operation: 'presets.save', kind: 'preset', after: { slug: 'first' } },
    { operation: 'presets.save', kind: 'user', target_id: id, before: null, after: { name: 'admin' } },
  ])
  await latchkey.admin('presets.save', preset)
  expect(await changes()).toMatchObject([{ kind: 'preset' }, { kind: 'preset' }])
})
