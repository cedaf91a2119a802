// Rows that are read packed are the rows that drizzle reads, whatever their texts contain.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { type PackedRow, packing } from '../../../db/read/packed-rows.ts'
import { apiKeys, policies } from '../../../db/schema/schema.ts'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'

const packedKeys = packing(apiKeys, { first: ['id', 'hash'], own: ['name', 'label'], shortened: ['label'] })
const packedPolicies = packing(policies, {
  own: ['name', 'audience', 'keyId', 'subject', 'condition', 'conditionEnvironment', 'createdAt', 'updatedAt'],
})
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

async function readAll<Row>(parts: AsyncGenerator<PackedRow<Row>>): Promise<PackedRow<Row>[]> {
  const rows = await Array.fromAsync(parts)
  return rows.flatMap(({ text, common }) => text.split('\n').map((row) => ({ text: row, common })))
}

test('they are the same rows in the same order', async () => {
  const { orm } = served.server.context
  const keys = await readAll(packedKeys.read(orm))
  expect(keys.map(packedKeys.unpack)).toEqual(await orm.select().from(apiKeys))
  const read = await readAll(packedPolicies.read(orm))
  expect(read.map(packedPolicies.unpack)).toEqual(await orm.select().from(policies))
  expect(read).toHaveLength(oddNames.length)
})

test('each value of a packed row is that of the row', async () => {
  for (const row of await readAll(packedKeys.read(served.server.context.orm))) {
    const unpacked = packedKeys.unpack(row)
    for (const [field, value] of Object.entries(unpacked))
      expect(packedKeys.valueOf(row, field as keyof typeof unpacked)).toEqual(value as never)
  }
})

test('a row that shares its other values has a null in their place, and says them nowhere', async () => {
  const { orm } = served.server.context
  const read = await readAll(packedPolicies.read(orm))
  expect(read.map(({ text }) => text.endsWith(',null]'))).toEqual(oddNames.map((_, index) => index !== 1))
  const { organizationId, issuerId } = packedPolicies.unpack(read[0] as (typeof read)[number])
  for (const { text, common } of read) {
    const isShared = text.endsWith(',null]')
    for (const value of [organizationId, issuerId])
      expect([text.includes(value), common.text.includes(value)]).toEqual([!isShared, true])
  }
  expect(read[1]?.text).toContain('"[\\"only\\"]"')
})

test('the label of a packed key makes no text of two bytes for each character', async () => {
  const keys = await readAll(packedKeys.read(served.server.context.orm))
  const plain = keys.filter(({ text }) => text.includes('"plain"'))
  expect(plain.map(({ text }) => /[^\0-\u00ff]/.test(text))).toEqual([false])
})

test('rows have in common what the first of those that are read has', async () => {
  const { orm } = served.server.context
  const only = await readAll(packedPolicies.read(orm, eq(policies.name, oddNames[1] ?? '')))
  expect(only.map(packedPolicies.unpack)).toEqual(
    await orm
      .select()
      .from(policies)
      .where(eq(policies.name, oddNames[1] ?? '')),
  )
  expect(only.map(({ text, common }) => [text.endsWith(',null]'), common.values.description])).toEqual([
    [true, 'rare "text"'],
  ])
  expect(await readAll(packedPolicies.read(orm, eq(policies.name, 'nobody')))).toEqual([])
})

test('rows that another node deletes while they are read are left out', async () => {
  const { orm } = served.server.context
  let asked = 0
  // The last row of a part is there when its values in common are read, and no longer after that.
  const changing = new Proxy(orm, {
    get: (target, name) =>
      name === 'all'
        ? async (query: Parameters<typeof orm.all>[0]) => (++asked === 3 ? [{ rows: null }] : target.all(query))
        : Reflect.get(target, name),
  })
  expect(await readAll(packedPolicies.read(changing))).toEqual([])
  expect(asked).toBe(3)
})
