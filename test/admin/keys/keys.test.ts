// Admin operations on keys: which names are free, which bounds a key may have, and what ends with it.
import { afterAll, beforeAll, describe, expect, setSystemTime, test } from 'bun:test'
import type { OperationName } from '../../../src/admin/operations.ts'
import { type Row, startTestServer, type TestServer } from '../../support/latchkey.ts'

let served: TestServer
beforeAll(async () => {
  served = await startTestServer()
})
afterAll(() => served.stop())

let made = 0
const create = (input: object = {}) => served.admin('keys.create', { name: `k${made++}`, ...input })
const expectRefused = (name: OperationName, input: object, code: string) =>
  expect(served.admin(name, input as Record<string, unknown>)).rejects.toMatchObject({ code })

describe('a name', () => {
  test('is one key of its organization until that is deleted', async () => {
    await served.admin('organizations.create', { name: 'names' })
    const { id } = await create({ name: 'same' })
    await expectRefused('keys.create', { name: 'same' }, 'conflict')
    const other = await create()
    await expectRefused('keys.update', { key: other.id, name: 'same' }, 'conflict')
    expect(await served.admin('keys.update', { key: id, name: 'same' })).toMatchObject({ id, name: 'same' })
    expect(await create({ name: 'same', organization: 'names' })).toMatchObject({ name: 'same' })
    await served.admin('keys.delete', { key: id })
    const again = await create({ name: 'same' })
    expect(again.id).not.toBe(id)
    expect(await served.admin('keys.show', { key: 'same' })).toMatchObject({ id: again.id })
  })
})

test('the hash of a key in another organization is not found, and the error repeats it without naming the key', async () => {
  await served.admin('organizations.create', { name: 'foreign' })
  const { id, hash } = await served.admin<Row & { hash: string }>('keys.create', { organization: 'foreign', name: 'f' })
  const shown = served.admin('keys.show', { organization: 'default', key: hash })
  const message = await shown.then(String, (error: Error) => error.message)
  expect(message).toContain(`There is no key "${hash}"`)
  expect(message).not.toContain(id)
})

describe('a key cannot', () => {
  const inOneSecond = () => new Date(Date.now() + 1_000).toISOString()

  test('expire now or before, and may from the next millisecond on', async () => {
    const now = Date.parse('2030-01-01T00:00:00.500Z')
    setSystemTime(now)
    try {
      for (const expires_at of ['2030-01-01T00:00:00.499Z', '2030-01-01T00:00:00.500Z']) {
        await expectRefused('keys.create', { name: 'late', expires_at }, 'invalid')
        const { id } = await create()
        await expectRefused('keys.update', { key: id, expires_at }, 'invalid')
      }
      expect(await create({ expires_at: '2030-01-01T00:00:00.501Z' })).toMatchObject({ disabled: false })
    } finally {
      setSystemTime()
    }
  })

  const bounds: [name: string, value: unknown][] = [
    ['limit', 1],
    ['requests_per_minute', 1],
    ['tokens_per_minute', 1],
    ['allowed_models', ['m']],
    ['allowed_presets', ['p']],
  ]
  for (const kind of ['management', 'management_read_only'])
    for (const [name, value] of bounds)
      test(`have ${name} where it is for ${kind}`, async () => {
        await expectRefused('keys.create', { name: 'bounded', kind, [name]: value }, 'invalid')
        const { id } = await create({ kind })
        await expectRefused('keys.update', { key: id, [name]: value }, 'invalid')
        expect(await served.admin('keys.update', { key: id, [name]: null, expires_at: inOneSecond() })).toMatchObject({
          [name]: null,
        })
      })

  const beyond: [name: string, most: number, more: unknown[]][] = [
    ['limit', 1_000_000, [1_000_001, -1, 1e-10]],
    ['requests_per_minute', 1_000_000_000, [1_000_000_001, 0, 1.5]],
    ['tokens_per_minute', 1_000_000_000, [1_000_000_001, 0, 1.5]],
  ]
  for (const [name, most, more] of beyond)
    test(`have ${name} beyond its bounds`, async () => {
      expect(await create({ [name]: most })).toMatchObject({ [name]: most })
      for (const value of more) await expectRefused('keys.create', { name: 'beyond', [name]: value }, 'invalid')
    })
})

describe('the usage of a key', () => {
  test('is not shown to another organization, by whatever name', async () => {
    await served.admin('organizations.create', { name: 'strangers' })
    const { id, hash, name } = await create()
    for (const operation of ['usage.sum', 'usage.requests'] as const) {
      for (const key of [id, hash, name]) {
        expect(await served.admin<object>(operation, { key })).toMatchObject({ data: [] })
        await expectRefused(operation, { key, organization: 'strangers' }, 'not_found')
      }
    }
  })
})

describe('the policies that end with a key are named,', () => {
  test('and only those that exchange now', async () => {
    const key = `target-${made++}`
    await served.admin('keys.create', { name: key })
    const { id } = await served.admin('issuers.add', { name: `i${made}`, issuer_url: `https://i${made}.example` })
    const policy = (name: string) =>
      served.admin('policies.create', { name, issuer: id, key, audience: 'a', subject: 's' })
    for (const name of ['in force', 'paused', 'deleted']) await policy(name)
    await served.admin('policies.pause', { policy: 'paused' })
    await served.admin('policies.delete', { policy: 'deleted' })
    type Affected = Row & { policies_affected?: string[] }
    expect((await served.admin<Affected>('keys.disable', { key })).policies_affected).toEqual(['in force'])
    expect((await served.admin<Affected>('keys.disable', { key })).policies_affected).toBeUndefined()
    await served.admin('keys.enable', { key })
    expect((await served.admin<Affected>('issuers.delete', { issuer: id })).policies_affected).toEqual(['in force'])
    expect((await served.admin<Affected>('keys.delete', { key })).policies_affected).toBeUndefined()
  })
})
