// Rows that are read packed are the rows that drizzle reads, whatever their texts contain.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mayHave, packedValue, packing } from '../../../db/read/packed-rows.ts'
import { apiKeys, policies } from '../../../db/schema/schema.ts'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'

const packedKeys = packing(apiKeys, { first: ['id', 'hash'], shortened: ['label'] })
const packedPolicies = packing(policies, { often: ['subject', 'condition', 'conditionEnvironment'] })
const oddNames = ['plain', 'quote " and \\ backslash', 'ellipsis … and accent é', '界 and 😀', "it's, [a] {b}"]
let served: TestServer

beforeAll(async () => {
  served = await startTestServer()
  await served.admin('issuers.add', { name: 'idp', issuer_url: 'https://idp.example.com' })
  for (const [index, name] of oddNames.entries()) {
    const limits = index % 2 === 0 ? { limit: 5, limit_reset: 'daily', allowed_models: ['m "1"', 'n-*'] } : {}
    await served.admin('keys.create', { name, ...limits })
    const condition = index % 2 === 0 ? { condition: 'subject == "a\\n…"' } : { subject: 'line\nbreak\u2028\t…' }
    const more = index === 1 ? { description: 'rare "text"', allowed_models: ['only'] } : {}
    await served.admin('policies.create', { name, issuer: 'idp', key: name, audience: name, ...condition, ...more })
  }
  await served.admin('keys.disable', { key: 'plain' })
})
afterAll(() => served.stop())

async function readAll(slices: AsyncGenerator<string>): Promise<string[]> {
  return (await Array.fromAsync(slices)).flatMap((rows) => rows.split('\n'))
}

test('they are the same rows in the same order', async () => {
  const { orm } = served.server.context
  const keys = await readAll(packedKeys.read(orm))
  expect(keys.map(packedKeys.unpack)).toEqual(await orm.select().from(apiKeys))
  const read = await readAll(packedPolicies.read(orm))
  expect(read.map(packedPolicies.unpack)).toEqual(await orm.select().from(policies))
  expect(read).toHaveLength(oddNames.length)
})

test('the id and the hash of a packed key are found without unpacking it', async () => {
  const keys = await readAll(packedKeys.read(served.server.context.orm))
  for (const text of keys) {
    const { id, hash } = packedKeys.unpack(text)
    expect([packedValue(text), packedValue(text, 1)]).toEqual([id, hash])
  }
})

test('the label of a packed key makes no text of two bytes for each character', async () => {
  const keys = await readAll(packedKeys.read(served.server.context.orm))
  const plain = keys.filter((text) => text.includes('"plain"'))
  expect(plain.map((text) => /[^\0-\u00ff]/.test(text))).toEqual([false])
})

test('a packed row contains the text of each of its values', async () => {
  const read = await readAll(packedPolicies.read(served.server.context.orm))
  for (const text of read) {
    const { name, subject, keyId, description } = packedPolicies.unpack(text)
    for (const value of [name, keyId, subject ?? name, description ?? name])
      expect([mayHave(value)(text), mayHave(`${value}.`)(text)]).toEqual([true, false])
  }
})

test('values that are null in most rows are one null in the text, and lists in them stay texts', async () => {
  const read = await readAll(packedPolicies.read(served.server.context.orm))
  expect(read.map((text) => text.endsWith(',null]'))).toEqual(oddNames.map((_, index) => index !== 1))
  expect(read[1]).toContain('"[\\"only\\"]"')
})
