// A change and the record of it are one commit; and neither a removed upstream nor any record holds a credential.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type { OperationName } from '../../../src/admin/operations.ts'
import { readDatabaseFile, rowsInFile } from '../../support/database-file.ts'
import { type Row, startTestServer, type TestServer } from '../../support/latchkey.ts'

let served: TestServer
beforeAll(async () => {
  served = await startTestServer()
  await served.admin('keys.create', { name: 'target' })
  await served.admin('issuers.add', { name: 'idp', issuer_url: 'https://idp.example.com' })
  await served.admin('policies.create', policy('policy'))
  await served.admin('presets.save', preset('there', 'one'))
})
afterAll(() => served.stop())

const policy = (name: string) => ({ name, issuer: 'idp', key: 'target', audience: 'a', subject: 's' })
const preset = (slug: string, model: string) => {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'x' }] })
  return { preset: slug, dialect: 'chat', body }
}
const tables = ['organizations', 'workspaces', 'api_keys', 'issuers', 'policies', 'upstreams', 'prices', 'signing_keys']
const everything = () =>
  readDatabaseFile(
    served.config.databasePath,
    ...[...tables, 'presets', 'preset_versions', 'admin_changes'].map((name) => `select * from ${name} order by 1`),
  )
const execute = (sql: string) => served.server.context.database.client.batch([sql], 'write')

describe('where its record cannot be written, nothing is left of', () => {
  afterEach(() => execute('drop trigger if exists no_records'))

  const rows: [name: OperationName, input: Record<string, unknown>][] = [
    ['organizations.create', { name: 'new' }],
    ['workspaces.create', { name: 'new' }],
    ['keys.create', { name: 'new' }],
    ['keys.disable', { key: 'target' }],
    ['issuers.update', { issuer: 'idp', clock_skew_seconds: 5 }],
    ['policies.create', policy('new')],
    ['policies.pause', { policy: 'policy' }],
    ['upstreams.add', { name: 'new', base_url: 'http://127.0.0.1:1/v1' }],
    ['prices.set', { prices: [{ model: 'new', prompt: 1, completion: 1 }] }],
    ['presets.save', preset('new', 'one')],
    ['presets.save', preset('there', 'two')],
    ['presets.update', { preset: 'there', status: 'disabled' }],
    ['signing_keys.rotate', { at_once: true }],
  ]
  for (const [name, input] of rows) {
    test(`${name} of ${JSON.stringify(input).slice(0, 40)}`, async () => {
      await execute(
        "create trigger no_records before insert on admin_changes begin select raise(abort, 'no record'); end",
      )
      const before = everything()
      await expect(served.admin(name, input)).rejects.toThrow('no record')
      expect(everything()).toEqual(before)
      const { registry, signingKeys } = served.server.context
      expect([...registry.policies.values()].every(({ enabled }) => enabled)).toBe(true)
      expect([...registry.keys.values()].every(({ disabled }) => !disabled)).toBe(true)
      expect([...registry.presets.values()].map(({ slug, latestVersion }) => [slug, latestVersion])).toEqual([
        ['there', 1],
      ])
      expect(JSON.parse(signingKeys.jwks(Date.now()))).toMatchObject({ keys: [{}] })
    })
  }
})

describe('no credential is kept', () => {
  const secret = 'a-credential-of-an-upstream'
  /** As it rests in the database. */
  const sealed = (id: string) =>
    rowsInFile(served.config.databasePath, `select credential_encrypted from upstreams where id = '${id}'`)

  test('in the row of an upstream that was removed, or whose credential was taken away', async () => {
    const upstream = { base_url: 'http://127.0.0.1:1/v1', credential: secret }
    for (const [name, end] of [
      ['removed', (id: string) => served.admin('upstreams.remove', { upstream: id })],
      ['without', (id: string) => served.admin('upstreams.update', { upstream: id, credential: null })],
    ] as const) {
      const { id } = await served.admin('upstreams.add', { ...upstream, name })
      expect(sealed(id)).toEqual([{ credential_encrypted: expect.stringContaining('.') }])
      await end(id)
      expect(sealed(id)).toEqual([{ credential_encrypted: null }])
    }
  })

  test('in any record of a change', async () => {
    const { id } = await served.admin('upstreams.add', {
      name: 'u',
      base_url: 'http://127.0.0.1:1',
      credential: secret,
    })
    await served.admin('upstreams.update', { upstream: id, credential: `${secret}-2` })
    await served.admin('upstreams.update', { upstream: id, priority: 7 })
    await served.admin('upstreams.remove', { upstream: id })
    await served.admin('signing_keys.rotate', { at_once: true })
    const { key } = await served.admin<Row & { key: string }>('keys.create', { name: 'shown once' })
    const [records = [], keys = []] = readDatabaseFile(
      served.config.databasePath,
      'select kind, before, after from admin_changes',
      'select private_key_encrypted from signing_keys',
    )
    expect(records.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['upstream', 'signing_key', 'key']))
    const text = JSON.stringify(records)
    for (const kept of [
      secret,
      key,
      'credential_encrypted',
      'private_key',
      ...keys.map((row) => String(row.private_key_encrypted)),
    ])
      expect(text).not.toContain(kept)
    const shown = await served.admin<{ data: object[] }>('audit.changes', { limit: 1_000 })
    expect(JSON.stringify(shown)).not.toContain(secret)
    expect(JSON.stringify(shown.data)).not.toMatch(/"(hash|credential_encrypted|private_key_encrypted)"/)
  })
})

test('changes can leave out one kind of thing, and keep all others', async () => {
  const kinds = async (asked: object) => {
    const { data } = await served.admin<{ data: { kind: string }[] }>('audit.changes', { limit: 1_000, ...asked })
    return data.map(({ kind }) => kind)
  }
  const all = await kinds({})
  expect(all).toContain('preset')
  expect(await kinds({ without_kind: 'preset' })).toEqual(all.filter((kind) => kind !== 'preset'))
})
