// What is deleted leaves memory, and what it once did is still reported under its name.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { decodeJwt } from 'jose'
import type { SubjectToken } from '../../src/federation/subject-token/claims.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'

const many = 300
/** So many of the keys have an issuer and a policy. */
const bound = 60
let federation: Federation

beforeAll(async () => {
  federation = await startFederation()
})
afterAll(() => federation.stop())

type Page = { data: Row[] }
const admin = <Answer = Row>(...args: Parameters<Federation['admin']>) => federation.admin<Answer>(...args)

function sizes(): Record<string, number> {
  const { keys, keyIdsByHash, issuers, policies } = federation.server.context.registry
  return {
    ...{ keys: keys.size, hashes: keyIdsByHash.size, issuers: issuers.size, policies: policies.size },
    spending: federation.server.context.spending.size(),
    rates: federation.server.context.keyRates.size(),
  }
}

test('hundreds of keys, issuers and policies that were made, used and deleted leave nothing behind', async () => {
  const { context } = federation.server
  const before = sizes()
  const names = Array.from({ length: many }, (_, index) => `many-${index}`)
  for (const name of names) {
    const { id } = await admin('keys.create', { name, requests_per_minute: 5 })
    context.spending.add(id, Date.now(), 1)
    const key = context.registry.keys.get(id)
    if (key !== undefined) context.keyRates.take(key, Date.now())
  }
  for (const name of names.slice(0, bound)) {
    await admin('issuers.add', { name, issuer_url: `https://${name}.example.com` })
    await admin('policies.create', { name, issuer: name, key: name, audience: 'a', subject: 's' })
  }
  const made = { keys: many, hashes: many, issuers: bound, policies: bound, spending: many, rates: many }
  const grown = Object.fromEntries(Object.entries(made).map(([name, count]) => [name, (before[name] ?? 0) + count]))
  expect(sizes()).toEqual(grown)

  for (let start = 0; start < many; start += 100) await admin('keys.delete', { keys: names.slice(start, start + 100) })
  // A policy still shows the name of its deleted key and issuer.
  for (const name of names.slice(0, bound)) await admin('issuers.delete', { issuer: name })
  expect(sizes()).toEqual({
    ...before,
    keys: (before.keys ?? 0) + bound,
    hashes: (before.hashes ?? 0) + bound,
    issuers: (before.issuers ?? 0) + bound,
    policies: (before.policies ?? 0) + bound,
  })
  expect(await admin('policies.show', { policy: 'many-7' })).toMatchObject({
    ...{ key_name: 'many-7', key_deleted: true, issuer_url: 'https://many-7.example.com', issuer_deleted: true },
  })
  for (const name of names.slice(0, bound)) await admin('policies.delete', { policy: name })
  expect(sizes()).toEqual(before)
}, 60_000)

test('a policy that takes another key and issuer lets go of deleted ones', async () => {
  const before = sizes()
  await admin('keys.create', { name: 'leaving' })
  await admin('issuers.add', { name: 'leaving', issuer_url: 'https://leaving.example.com' })
  const more = { audience: 'a', subject: 's' }
  await admin('policies.create', { name: 'staying', issuer: 'leaving', key: 'leaving', ...more })
  await admin('keys.delete', { key: 'leaving' })
  await admin('issuers.delete', { issuer: 'leaving' })
  await admin('policies.update', { policy: 'staying', key: 'target', issuer: 'idp' })
  expect(sizes()).toEqual({ ...before, policies: (before.policies ?? 0) + 1 })
  await admin('policies.delete', { policy: 'staying' })
})

test('requests and reports still know what was deleted', async () => {
  const { exchange, mint, server } = federation
  const key = await admin<Row & { key: string }>('keys.create', { name: 'gone' })
  const issuer = await admin('issuers.add', { name: 'gone', issuer_url: 'https://gone.example.com' })
  const matching = { audience: 'a', subject: 's' }
  const policy = await admin('policies.create', { name: 'gone', issuer: 'gone', key: 'gone', ...matching })
  const { clockDifferences } = server.context
  const payload = decodeJwt(await mint())
  clockDifferences.note(issuer.id, { payload } as SubjectToken, Date.now())
  expect(clockDifferences.of(issuer.id)).toHaveLength(1)
  await admin('policies.delete', { policy: 'gone' })
  await admin('keys.delete', { key: 'gone' })
  await admin('issuers.delete', { issuer: 'gone' })
  expect(server.context.registry.policies.get(policy.id)).toBeUndefined()
  expect(clockDifferences.of(issuer.id)).toEqual([])

  const refused = await exchange(await mint(), { federation_policy_id: policy.id })
  expect(refused.status).toBe(400)
  const facts = {
    policy_name: 'gone',
    issuer_url: 'https://gone.example.com',
    key_id: key.id,
    reason: 'policy_deleted',
  }
  expect((await admin<Page>('audit.list', { policy: policy.id })).data).toMatchObject([facts])
  expect((await admin<Page>('audit.list', { key: key.id, issuer: issuer.id })).data).toMatchObject([facts])

  const models = await fetch(`${server.baseUrl}/models`, { headers: { authorization: `Bearer ${key.key}` } })
  expect(models.status).toBe(401)
  expect(federation.logLines.join('\n')).toContain('key_deleted')
  expect(federation.logLines.join('\n')).not.toContain('key_unknown')
})
