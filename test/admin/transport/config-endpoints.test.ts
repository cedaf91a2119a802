// Configuration documents over HTTP: who may plan and apply, and that a key reaches only its organization.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Row } from '../../support/latchkey.ts'
import { type Managed, startManaged } from '../../support/management-keys.ts'

let federation: Managed['federation']
let admin: string
let reader: string
let stranger: string
let call: Managed['call']
beforeAll(async () => {
  ;({ federation, admin, reader, stranger, call } = await startManaged())
})
afterAll(() => federation.stop())

const document = {
  latchkey: 1,
  owner: 'us',
  keys: [{ name: 'new', limit: 5 }],
  policies: [{ name: 'new', issuer: 'idp', key: 'new', audience: 'a', subject: 's' }],
  presets: [{ slug: 'new', config: { model: 'm' } }],
}

test('a read-only key may plan, a management key may also apply, and the plan is then empty', async () => {
  const planned = await call('POST', '/config/plan', reader, { document })
  expect(planned).toMatchObject({ status: 200, data: { counts: { create: 3 }, blocked: [] } })
  expect((await call('POST', '/config/apply', reader, { document })).status).toBe(403)
  const { fingerprint } = planned.data as { fingerprint: string }
  const applied = await call('POST', '/config/apply', admin, { document, fingerprint, revision: 'v1' })
  expect(applied).toMatchObject({
    status: 200,
    data: { counts: { create: 3 }, secrets: [{ name: 'new', key: expect.stringMatching(/^sk-lk-v1-/) }] },
  })
  const { group_id } = applied.data as { group_id: string }
  const { data } = await call('GET', `/workload-identity/audit/changes?group=${group_id}`, reader)
  expect(data).toMatchObject([{ kind: 'preset' }, { kind: 'policy' }, { kind: 'key' }, { after: { revision: 'v1' } }])
  expect((await call('POST', '/config/plan', reader, { document })).data).toMatchObject({ changes: [] })
  expect((await call('POST', '/config/apply', admin, { document, fingerprint })).status).toBe(409)
})

test('a key of another organization neither sees nor takes what this one has', async () => {
  const keys = [{ name: 'new', limit: 9 }]
  const own = { latchkey: 1, owner: 'us', keys }
  expect((await call('POST', '/config/plan', stranger, { document: own })).data).toMatchObject({
    counts: { create: 1 },
  })
  const named = { ...own, organization: 'default' }
  expect((await call('POST', '/config/apply', stranger, { document: named, prune: true })).status).toBe(400)
  expect((await call('POST', '/config/plan', stranger, { document })).status).toBe(404)
  expect(await federation.admin('keys.show', { key: 'new', organization: 'default' })).toMatchObject({ limit: 5 })
})

test.each(['upstreams', 'prices'])('%s belong to the installation, so no key plans or applies them', async (kind) => {
  for (const path of ['/config/plan', '/config/apply'])
    expect((await call('POST', path, admin, { document: { latchkey: 1, owner: 'us', [kind]: [] } })).status).toBe(403)
})

test('neither a credential of inference nor an access token may plan', async () => {
  const { key } = await federation.admin<Row & { key: string }>('keys.create', {
    name: 'inference',
    organization: 'default',
  })
  expect((await call('POST', '/config/plan', key, { document })).status).toBe(403)
})
