// An owner that locks its objects: edits by hand are refused without force, and an edit of an unlocked object warns.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Managed, startManaged } from '../../support/management-keys.ts'

let managed: Managed
beforeAll(async () => {
  managed = await startManaged()
  for (const owner of ['locked', 'open'])
    await managed.federation.admin('config.apply', { organization: 'default', document: documentOf(owner) })
})
afterAll(() => managed.federation.stop())

const documentOf = (owner: string) => ({
  latchkey: 1,
  owner,
  owner_locks: owner === 'locked',
  issuers: [{ name: `${owner}-idp`, issuer_url: `https://${owner}.example.com` }],
  keys: [{ name: `${owner}-key` }],
  policies: [{ name: `${owner}-policy`, issuer: `${owner}-idp`, key: `${owner}-key`, audience: 'a', subject: 's' }],
  presets: [{ slug: `${owner}-preset`, config: { model: 'm' } }],
  upstreams: [{ name: `${owner}-gpu`, base_url: 'http://10.0.0.5/v1' }],
  prices: [{ model: `${owner}/*`, prompt: 1, completion: 2 }],
})
const organization = 'default'
const body = JSON.stringify({ model: 'n', messages: [{ role: 'user', content: 'x' }] })
const presets = (owner: string) => [{ slug: `${owner}-preset`, config: { model: 'o' } }]
type Edit = Parameters<Managed['federation']['admin']>
const editsOf = (owner: string): Edit[] => [
  ['issuers.update', { organization, issuer: `${owner}-idp`, clock_skew_seconds: 5 }],
  ['keys.update', { organization, key: `${owner}-key`, limit: 5 }],
  ['keys.disable', { organization, keys: [`${owner}-key`] }],
  ['policies.pause', { organization, policy: `${owner}-policy` }],
  ['policies.update', { organization, policy: `${owner}-policy`, max_lifetime_seconds: 60 }],
  ['presets.update', { organization, preset: `${owner}-preset`, name: 'other' }],
  ['presets.save', { organization, preset: `${owner}-preset`, dialect: 'chat', body }],
  ['config.apply', { organization, document: { latchkey: 1, presets: presets(owner) } }],
  ['upstreams.update', { upstream: `${owner}-gpu`, priority: 3 }],
  ['prices.set', { prices: [{ model: `${owner}/*`, prompt: 3, completion: 2 }] }],
  ['prices.remove', { model: `${owner}/*` }],
  ['upstreams.remove', { upstream: `${owner}-gpu` }],
  ['policies.delete', { organization, policy: `${owner}-policy` }],
  ['keys.delete', { organization, key: `${owner}-key` }],
  ['issuers.delete', { organization, issuer: `${owner}-idp` }],
  ['presets.archive', { organization, preset: `${owner}-preset` }],
]
const changesOf = async () =>
  (
    await managed.federation.admin<{ changes: object[] }>('config.plan', {
      organization,
      document: documentOf('locked'),
    })
  ).changes

test.each(editsOf('locked'))('%s of a locked object is refused', async (operation, input) => {
  await expect(managed.federation.admin(operation, input)).rejects.toThrow(
    'The configuration document of "locked" locks',
  )
  expect(await changesOf()).toEqual([])
})

test.each(editsOf('open'))('%s of an object that is not locked warns', async (operation, input) => {
  const { warnings } = await managed.federation.admin<{ warnings: string[] }>(operation, input)
  expect(warnings).toEqual([expect.stringContaining('belongs to the configuration document of "open"')])
})

test('a document without an owner is an edit by hand: refused for a locked object, and with a warning for another', async () => {
  const edit = (name: string) => ({ latchkey: 1, keys: [{ name, limit: 3 }], prices: [] })
  const apply = (name: string) =>
    managed.federation.admin<{ warnings: string[] }>('config.apply', { organization, document: edit(name) })
  await expect(apply('locked-key')).rejects.toThrow('locks the key "locked-key"')
  const price = { latchkey: 1, prices: [{ model: 'locked/*', prompt: 9, completion: 9 }] }
  const priced = managed.federation.admin('config.apply', { organization, document: price })
  await expect(priced).rejects.toThrow('locks the price "locked/*"')
  await managed.federation.admin('config.apply', { organization, document: documentOf('noted') })
  expect((await apply('noted-key')).warnings).toEqual([expect.stringContaining('document of "noted"')])
})

test('an object made by hand is edited without a warning', async () => {
  await managed.federation.admin('keys.create', { organization, name: 'manual' })
  expect(await managed.federation.admin('keys.update', { organization, key: 'manual', limit: 1 })).not.toHaveProperty(
    'warnings',
  )
})

test('over HTTP a locked object answers 409, to posts of its preset too, and a header forces the edit', async () => {
  const { federation, admin } = managed
  const send = async (method: string, path: string, force: string, fields?: object) => {
    const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json', 'x-latchkey-force': force }
    const sent = fields === undefined ? {} : { body: JSON.stringify(fields) }
    const response = await fetch(`${federation.server.baseUrl}${path}`, { method, headers, ...sent })
    return { status: response.status, body: (await response.json()) as object }
  }
  const { hash } = await federation.admin<{ hash: string }>('keys.show', { organization, key: 'locked-key' })
  const edits: [method: string, path: string, fields?: object][] = [
    ['PATCH', '/workload-identity/issuers/locked-idp', { clock_skew_seconds: 5 }],
    ['POST', '/workload-identity/policies/locked-policy/pause'],
    ['PATCH', `/keys/${hash}`, { limit: 3 }],
    ['PATCH', '/presets/locked-preset', { name: 'other' }],
    ['POST', '/presets/locked-preset/chat/completions', JSON.parse(body) as object],
    ['DELETE', '/workload-identity/policies/locked-policy'],
  ]
  for (const [method, path, fields] of edits) {
    expect((await send(method, path, 'false', fields)).status).toBe(409)
    expect(await send(method, path, 'yes', fields)).toMatchObject({ status: 400 })
    expect((await send(method, path, 'true', fields)).status).toBe(200)
  }
})

test('a document without owner_locks unlocks what its owner has, and a lock needs an owner', async () => {
  const { owner_locks: _locks, ...document } = documentOf('locked')
  const { owner_locks } = await managed.federation.admin<{ owner_locks: object }>('config.plan', {
    organization,
    document,
  })
  expect(owner_locks).toEqual({ before: true, after: false })
  await managed.federation.admin('config.apply', { organization, document })
  await managed.federation.admin('keys.update', { organization, key: 'locked-key', limit: 9 })
  expect(await managed.federation.admin('keys.show', { organization, key: 'locked-key' })).toMatchObject({
    managed_by: 'locked',
  })
  const unowned = { latchkey: 1, owner_locks: true }
  await expect(managed.federation.admin('config.plan', { organization, document: unowned })).rejects.toThrow('owner')
})

test('a lock in one organization leaves the objects of the same owner in another free', async () => {
  const { admin } = managed.federation
  await admin('organizations.create', { name: 'elsewhere' })
  const document = (owner_locks: boolean) => ({ latchkey: 1, owner: 'both', owner_locks, keys: [{ name: 'both-key' }] })
  await admin('config.apply', { organization, document: document(false) })
  await admin('config.apply', { organization: 'elsewhere', document: document(true) })
  const edit = { key: 'both-key', limit: 5 }
  expect(await admin('keys.update', { organization, ...edit })).toMatchObject({ limit: 5 })
  await expect(admin('keys.update', { organization: 'elsewhere', ...edit })).rejects.toThrow('locks the key')
})
