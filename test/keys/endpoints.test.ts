// The key endpoints (reference: Key endpoints): whose keys are listed, and what a caller cannot set.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Field } from '../../src/admin/kinds/fields.ts'
import { keyFields } from '../../src/admin/kinds/key.ts'
import { inputEntriesMax } from '../../src/limits.ts'
import { walks } from '../admin/kinds/samples.ts'
import type { Row } from '../support/latchkey.ts'
import { type PresetServer, startPresets } from '../support/presets.ts'

type KeyRow = Row & { key: string; hash: string; workspace_id: string }

let latchkey: PresetServer
/** A management key of each workspace, and one of another organization. */
let own: KeyRow
let beside: KeyRow
let reader: KeyRow
let stranger: KeyRow
beforeAll(async () => {
  latchkey = await startPresets()
  await latchkey.admin('workspaces.create', { name: 'beside' })
  await latchkey.admin('organizations.create', { name: 'other' })
  const create = (name: string, input: object = {}) =>
    latchkey.admin<KeyRow>('keys.create', { name, kind: 'management', ...input })
  own = await create('own')
  beside = await create('beside', { workspace: 'beside' })
  reader = await create('reader', { workspace: 'beside', kind: 'management_read_only' })
  stranger = await create('stranger', { organization: 'other' })
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

const namesFor = async ({ key }: KeyRow, query = '') => {
  const { data } = await latchkey.call('GET', `/keys${query}`, { key })
  return (data as Row[]).map(({ name }) => name).toSorted()
}

describe('a list of keys', () => {
  test("is of the key's own workspace", async () => {
    expect(await namesFor(beside)).toEqual(['beside', 'reader'])
    expect(await namesFor(reader)).toEqual(['beside', 'reader'])
    expect(await namesFor(own)).toEqual(['admin', 'first management key', 'own', 'target'])
    expect(await namesFor(stranger)).toEqual(['stranger'])
  })

  test('may be of another workspace of the organization, and never of another organization', async () => {
    expect(await namesFor(own, `?workspace_id=${beside.workspace_id}`)).toEqual(['beside', 'reader'])
    expect(await namesFor(stranger, `?workspace_id=${beside.workspace_id}`)).toEqual([])
    expect(await namesFor(own, `?workspace_id=${stranger.workspace_id}`)).toEqual([])
  })

  test('has disabled keys unless they are left out, and no deleted ones', async () => {
    const workspace = 'listed'
    const { id } = await latchkey.admin('workspaces.create', { name: workspace })
    const query = `?workspace_id=${id}`
    for (const name of ['on', 'off', 'gone']) await latchkey.admin('keys.create', { name, workspace })
    await latchkey.admin('keys.disable', { key: 'off' })
    await latchkey.admin('keys.delete', { key: 'gone' })
    expect(await namesFor(own, query)).toEqual(['off', 'on'])
    expect(await namesFor(own, `${query}&include_disabled=false`)).toEqual(['on'])
  })

  test('is narrowed by owner and state', async () => {
    const workspace = 'filtered'
    const { id } = await latchkey.admin('workspaces.create', { name: workspace })
    const query = `?workspace_id=${id}`
    await latchkey.admin('keys.create', { name: 'of-ada', workspace, owner: 'ada' })
    const { owner_id } = await latchkey.admin('keys.create', { name: 'ada-off', workspace, owner: 'ada' })
    await latchkey.admin('keys.create', { name: 'of-admin', workspace })
    await latchkey.admin('keys.disable', { key: 'ada-off' })
    expect(await namesFor(own, `${query}&owner=ada`)).toEqual(['ada-off', 'of-ada'])
    expect(await namesFor(own, `${query}&owner=${owner_id}&state=disabled`)).toEqual(['ada-off'])
    expect(await namesFor(own, `${query}&state=enabled`)).toEqual(['of-ada', 'of-admin'])
    expect((await latchkey.call('GET', `/keys${query}&owner=nobody`, { key: own.key })).status).toBe(404)
    expect((await latchkey.call('GET', `/keys${query}&state=odd`, { key: own.key })).status).toBe(400)
    expect((await latchkey.call('GET', '/keys?owner=ada', { key: stranger.key })).status).toBe(404)
  })
})

describe('a new key', () => {
  const post = (body: object, key = own) => latchkey.call('POST', '/keys', { body, key: key.key })

  for (const kind of ['management', 'management_read_only', 'inference'])
    test(`cannot be made as ${kind}: over HTTP every key is for inference`, async () => {
      const before = await namesFor(own)
      expect(await post({ name: 'raised', kind })).toMatchObject({ status: 400, error: { code: 400 } })
      expect(await namesFor(own)).toEqual(before)
    })

  test('is for inference, of the workspace and the user of the key that made it', async () => {
    const { status, data, key } = await post({ name: 'made' }, beside)
    expect({ status, data }).toMatchObject({
      status: 201,
      data: { workspace_id: beside.workspace_id, creator_user_id: beside.owner_id },
    })
    const shown = await latchkey.call('GET', '/key', { key })
    expect(shown.data).toMatchObject({ name: 'made', is_management_key: false, is_provisioning_key: false })
    expect((await latchkey.call('GET', '/keys', { key })).status).toBe(403)
    await latchkey.admin('keys.delete', { key: 'made' })
  })

  test('has the user of the key that made it, also when that is another one', async () => {
    const owned = await latchkey.admin<KeyRow>('keys.create', { name: 'owned', kind: 'management', owner: 'somebody' })
    expect(owned.owner_id).not.toBe(own.owner_id)
    const { data } = await post({ name: 'made for somebody' }, owned)
    expect(data).toMatchObject({ creator_user_id: owned.owner_id })
    for (const key of ['made for somebody', 'owned']) await latchkey.admin('keys.delete', { key })
  })

  test('cannot be put into another organization', async () => {
    expect(await post({ name: 'x', workspace_id: stranger.workspace_id })).toMatchObject({ status: 404 })
    for (const field of ['organization', 'owner', 'hash', 'id'])
      expect(await post({ name: 'x', [field]: 'other' })).toMatchObject({ status: 400 })
  })

  test('is not made with lists that are too long to be judged', async () => {
    const body = { name: 'long', allowed_models: Array(inputEntriesMax + 1).fill(1) }
    expect(await latchkey.call('POST', '/keys', { key: own.key, body })).toMatchObject({
      status: 400,
      error: { message: expect.stringContaining(`at most ${inputEntriesMax} entries`) },
    })
  })

  test('is not made by a key that only reads or infers', async () => {
    for (const key of [reader, latchkey.key as unknown as KeyRow])
      expect(await post({ name: 'x' }, key)).toMatchObject({ status: 403 })
  })
})

describe('a key of another organization', () => {
  for (const [method, body] of [
    ['GET', undefined],
    ['PATCH', { name: 'taken' }],
    ['PATCH', { disabled: true }],
    ['DELETE', undefined],
  ] as const)
    test(`is not found by ${method} ${JSON.stringify(body ?? '')}`, async () => {
      const found = await latchkey.call(method, `/keys/${own.hash}`, { key: stranger.key, body })
      expect(found).toMatchObject({ status: 404, error: { message: 'Resource not found' } })
      expect((await latchkey.call('GET', `/keys/${own.hash}`, { key: own.key })).data).toMatchObject({
        name: 'own',
        disabled: false,
      })
    })

  test('cannot be raised by a change', async () => {
    const { hash } = await latchkey.admin<KeyRow>('keys.create', { name: 'plain' })
    for (const body of [{ kind: 'management' }, { workspace_id: beside.workspace_id }, { owner: 'somebody' }])
      expect(await latchkey.call('PATCH', `/keys/${hash}`, { key: own.key, body })).toMatchObject({ status: 400 })
    expect((await latchkey.admin('keys.show', { key: hash })).kind).toBe('inference')
  })
})

test('a key is found by its hash or id, not by its name', async () => {
  const { id, hash } = await latchkey.admin<KeyRow>('keys.create', { name: 'by-hash' })
  for (const reference of ['by-hash', id.slice(1), hash.toUpperCase(), hash.slice(1), `${hash}0`])
    for (const [method, body] of [['GET'], ['PATCH', { name: 'taken' }], ['DELETE']] as const)
      expect(await latchkey.call(method, `/keys/${reference}`, { key: own.key, body })).toMatchObject({ status: 404 })
  for (const reference of [hash, id]) {
    const shown = await latchkey.call('GET', `/keys/${reference}`, { key: own.key })
    expect(shown).toMatchObject({ status: 200, data: { name: 'by-hash', hash } })
  }
})

test('every field that a change may set is set over HTTP, and read back', async () => {
  const { samples } = walks.find(({ kind }) => kind === 'keys') ?? {}
  const table: Readonly<Record<string, Field>> = keyFields
  const settable = Object.keys(table).filter((name) => table[name]?.shape !== undefined && table[name].change !== false)
  const { hash } = await latchkey.admin<KeyRow>('keys.create', { name: 'changed' })
  const values = Object.fromEntries(settable.map((name) => [name, samples?.[name]?.[1] ?? 'renamed']))
  const changed = await latchkey.call('PATCH', `/keys/${hash}`, { key: own.key, body: values })
  expect(changed).toMatchObject({ status: 200, data: values })
  expect(await latchkey.call('GET', `/keys/${hash}`, { key: own.key })).toMatchObject({ data: values })
  expect(settable).toContain('labels')
})
