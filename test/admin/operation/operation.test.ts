// The door to the admin operations: what no operation takes, whatever its shape says.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { inputEntriesMax } from '../../../src/limits.ts'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'

let served: TestServer
beforeAll(async () => {
  served = await startTestServer()
  await served.admin('keys.create', { name: 'key' })
  await served.admin('issuers.add', { name: 'idp', issuer_url: 'https://idp.example.com' })
})
afterAll(() => served.stop())

const policy = { name: 'policy', issuer: 'idp', key: 'key', audience: 'a', subject: 's' }

/** libSQL would give back `root` for `root\0only`, and the policy would be another one. */
for (const field of ['name', 'audience', 'subject', 'required_scope', 'required_token_type']) {
  test(`a NUL in ${field} of a policy is refused`, async () => {
    const input = { ...policy, [field]: 'root\0only' }
    await expect(served.admin('policies.create', input)).rejects.toThrow('U+0000')
    expect(await served.admin<{ data: unknown[] }>('policies.list')).toEqual({ data: [] })
  })
}

test('a NUL in an issuer URL is refused', async () => {
  const input = { name: 'other', issuer_url: 'https://trusted.example/\0tenant' }
  await expect(served.admin('issuers.add', input)).rejects.toThrow('U+0000')
})

test('input nested without end is refused as such', async () => {
  let jwks: unknown = {}
  for (let depth = 0; depth < 100_000; depth++) jwks = { keys: jwks }
  await expect(served.admin('issuers.update', { issuer: 'idp', jwks })).rejects.toThrow('must be nested at most')
})

const entries = (count: number) => Array.from({ length: count }, (_, index) => index)
for (const [what, make] of [
  ['a list', entries],
  ['an object', (count: number) => Object.fromEntries(entries(count).map((index) => [`k${index}`, 1]))],
  ['a list within', (count: number) => ({ keys: [{ key_ops: entries(count) }] })],
] as const)
  test(`input with too many entries in ${what} is refused before anything looks at them`, async () => {
    const update = (count: number) => served.admin('issuers.update', { issuer: 'idp', jwks: make(count) })
    await expect(update(inputEntriesMax + 1)).rejects.toThrow(`at most ${inputEntriesMax} entries`)
    await expect(update(inputEntriesMax)).rejects.toThrow('JWKS')
  })

test('input may be 16 levels deep, and no deeper', async () => {
  const update = (levels: number) => {
    let jwks: unknown = {}
    // The input itself is one level, and so is the set.
    for (let depth = 2; depth < levels; depth++) jwks = { keys: jwks }
    return served.admin('issuers.update', { issuer: 'idp', jwks })
  }
  await expect(update(16)).rejects.toThrow('Not a JWKS')
  await expect(update(17)).rejects.toThrow('must be nested at most')
})

test("a key's name cannot be the hash of another, and usage is found under the id of a deleted key", async () => {
  const { id, hash } = await served.admin<{ id: string; hash: string }>('keys.create', { name: 'gone' })
  await expect(served.admin('keys.create', { name: hash })).rejects.toThrow('look like an id')
  await served.admin('keys.delete', { key: 'gone' })
  for (const key of [id, hash]) expect(await served.admin<unknown>('usage.sum', { key })).toEqual({ data: [] })
  await expect(served.admin('usage.sum', { key: 'gone' })).rejects.toThrow('There is no key')
})
