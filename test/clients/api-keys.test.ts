// The official client's apiKeys against the key endpoints: every call decodes, and its error classes are raised as they should be.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { OpenRouter } from '@openrouter/sdk'
import {
  BadRequestResponseError,
  ForbiddenResponseError,
  NotFoundResponseError,
  UnauthorizedResponseError,
} from '@openrouter/sdk/models/errors'
import { type Inference, startInference } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'

// The client would send it where a test means to send no credential.
delete process.env.OPENROUTER_API_KEY

let latchkey: Inference
let managementKey: string
let readerKey: string
let strangerKey: string
beforeAll(async () => {
  latchkey = await startInference()
  const create = async (input: object) =>
    (await latchkey.admin<Row & { key: string }>('keys.create', input as Record<string, unknown>)).key
  managementKey = await create({ name: 'boss', kind: 'management' })
  readerKey = await create({ name: 'reader', kind: 'management_read_only' })
  await latchkey.admin('organizations.create', { name: 'other' })
  strangerKey = await create({ name: 'stranger', kind: 'management', organization: 'other' })
})
afterAll(() => latchkey.stop())

const keysWith = (apiKey: string) =>
  new OpenRouter({ serverURL: latchkey.server.baseUrl, apiKey, retryConfig: { strategy: 'none' } }).apiKeys
const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('a management key', () => {
  test('creates, lists, shows, changes and deletes a key, which works as long as it is there', async () => {
    const keys = keysWith(managementKey)
    const expiresAt = new Date('2999-01-01T00:00:00.000Z')
    const created = await keys.create({
      requestBody: { name: 'from the client', limit: 12.5, limitReset: 'monthly', expiresAt },
    })
    expect(created.key).toMatch(/^sk-lk-v1-[0-9a-f]{64}$/)
    expect(created.data).toMatchObject({
      name: 'from the client',
      limit: 12.5,
      limitRemaining: 12.5,
      limitReset: 'monthly',
      expiresAt,
      usage: 0,
      disabled: false,
    })
    const { hash } = created.data
    expect((await keys.list()).data.map((key) => key.hash)).toContain(hash)
    expect((await keys.get({ hash })).data).toEqual({ ...created.data, updatedAt: expect.any(String) })

    const use = async () => (await latchkey.complete(undefined, { authorization: `Bearer ${created.key}` })).status
    expect(await use()).toBe(200)
    const disabled = await keys.update({ hash, requestBody: { disabled: true, name: 'renamed', limit: null } })
    expect(disabled.data).toMatchObject({ disabled: true, name: 'renamed', limit: null, limitRemaining: null })
    expect(await use()).toBe(401)
    await keys.update({ hash, requestBody: { disabled: false } })
    expect(await use()).toBe(200)
    expect(await keys.delete({ hash })).toMatchObject({ deleted: true })
    expect(await use()).toBe(401)
    expect(await failureOf(keys.get({ hash }))).toBeInstanceOf(NotFoundResponseError)

    const { data } = await latchkey.admin<{ data: Row[] }>('audit.changes', { limit: 5 })
    expect(data.map(({ operation }) => operation)).toEqual([
      'keys.delete',
      'keys.update',
      'keys.update',
      'keys.create',
      'keys.create',
    ])
    expect(JSON.stringify(data)).not.toContain(created.key.slice(20))
  })

  test('sees only the keys of its organization', async () => {
    const { data } = await keysWith(managementKey).list()
    const hash = data[0]?.hash ?? ''
    const stranger = keysWith(strangerKey)
    expect((await stranger.list()).data.map((key) => key.name)).toEqual(['stranger'])
    for (const call of [
      () => stranger.get({ hash }),
      () => stranger.update({ hash, requestBody: { disabled: true } }),
      () => stranger.delete({ hash }),
    ])
      expect(await failureOf(call())).toBeInstanceOf(NotFoundResponseError)
  })

  test('that is read-only lists and shows, and changes nothing', async () => {
    const reader = keysWith(readerKey)
    const hash = (await reader.list()).data[0]?.hash ?? ''
    expect((await reader.get({ hash })).data.hash).toBe(hash)
    for (const call of [
      () => reader.create({ requestBody: { name: 'x' } }),
      () => reader.update({ hash, requestBody: { disabled: true } }),
      () => reader.delete({ hash }),
    ])
      expect(await failureOf(call())).toMatchObject({ statusCode: 403 })
  })

  test('receives what is wrong with a request', async () => {
    const keys = keysWith(managementKey)
    for (const requestBody of [{ name: '' }, { name: 'x', limit: -1 }, { name: 'x', expiresAt: new Date(0) }])
      expect(await failureOf(keys.create({ requestBody }))).toBeInstanceOf(BadRequestResponseError)
    expect(await failureOf(keys.get({ hash: 'f'.repeat(64) }))).toBeInstanceOf(NotFoundResponseError)
  })
})

test('anyone who infers sees its own key, and may not see the others', async () => {
  for (const credential of [latchkey.key.key, latchkey.accessToken]) {
    const { data } = await keysWith(credential).getCurrentKeyMetadata()
    expect(data).toMatchObject({ label: latchkey.key.label as string, isManagementKey: false, limit: null })
    const refused = await failureOf(keysWith(credential).list())
    expect(refused).toMatchObject({ statusCode: 403 })
    expect(await failureOf(keysWith(credential).create({ requestBody: { name: 'x' } }))).toBeInstanceOf(
      ForbiddenResponseError,
    )
  }
  expect((await keysWith(managementKey).getCurrentKeyMetadata()).data.isManagementKey).toBe(true)
  expect(await failureOf(keysWith('nonsense').getCurrentKeyMetadata())).toBeInstanceOf(UnauthorizedResponseError)
})
