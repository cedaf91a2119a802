// Lists over HTTP in pages: names that contain a text, offset and limit, and the counts of exchanges beside them.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createExchangeCounts } from '../../../src/admin/operation/exchange-counts.ts'
import { type Federation, type Row, startFederation } from '../../support/latchkey.ts'
import { createApiCaller } from '../../support/openapi.ts'

let federation: Federation
let reader: string
let stranger: string
let call: Awaited<ReturnType<typeof createApiCaller>>
beforeAll(async () => {
  federation = await startFederation()
  call = await createApiCaller(federation.server.baseUrl)
  const create = async (name: string, kind: string, organization = 'default') =>
    (await federation.admin<Row & { key: string }>('keys.create', { name, kind, organization })).key
  reader = await create('reader', 'management_read_only')
  await federation.admin('organizations.create', { name: 'other' })
  stranger = await create('stranger', 'management', 'other')
  for (const name of ['Deploy "blue"', 'deploy green', 'DEPLOY red', 'nightly']) {
    await federation.admin('keys.create', { name })
    await federation.admin('policies.create', { name, issuer: 'idp', key: 'target', audience: 'a', subject: name })
    await federation.admin('issuers.add', { name, issuer_url: `https://${name.replaceAll(/\W/g, '')}.example` })
  }
})
afterAll(() => federation.stop())

const policies = '/workload-identity/policies'
const namesOf = ({ data }: { data: unknown }) => (data as Row[]).map(({ name }) => name)

for (const path of [policies, '/workload-identity/issuers', '/keys'])
  test(`${path} finds names by a part of them in any case, page by page, with the number of all`, async () => {
    const first = await call('GET', `${path}?contains=dePLOY&limit=2`, reader)
    const second = await call('GET', `${path}?contains=dePLOY&limit=2&offset=2`, reader)
    expect([...namesOf(first), ...namesOf(second)]).toEqual(['Deploy "blue"', 'deploy green', 'DEPLOY red'])
    expect(first.body).toMatchObject({ total_count: 3 })
    expect(namesOf(await call('GET', `${path}?contains=${encodeURIComponent('"BLUE"')}`, reader))).toEqual([
      'Deploy "blue"',
    ])
    expect(namesOf(await call('GET', `${path}?contains=deploy`, stranger))).toEqual([])
    expect((await call('GET', `${path}?contains=`, reader)).status).toBe(400)
  })

test('a list without a page is whole, and has no count', async () => {
  const { body, data } = await call('GET', policies, reader)
  expect(data).toHaveLength(5)
  expect(body).not.toHaveProperty('total_count')
})

test('a page of policies in one state skips the others', async () => {
  await federation.admin('policies.pause', { policy: 'nightly' })
  const paused = await call('GET', `${policies}?state=paused&limit=1`, reader)
  expect({ names: namesOf(paused), body: paused.body }).toMatchObject({ names: ['nightly'], body: { total_count: 1 } })
  await federation.admin('policies.resume', { policy: 'nightly' })
})

test('keys show what they are for, and are selected by kind', async () => {
  const { data } = await call('GET', '/keys?kind=management_read_only', reader)
  expect(data).toMatchObject([{ name: 'reader', kind: 'management_read_only', state: 'enabled', owner: 'admin' }])
})

test('the linter looks at the policies of a page, and refuses two selections', async () => {
  const named = { policies: ['nightly', 'deploy green'] }
  const { data } = await call('POST', `${policies}/lint`, reader, named)
  expect((data as Row[]).map(({ policy_name }) => policy_name)).toEqual(named.policies)
  expect((await call('POST', `${policies}/lint`, reader, { ...named, policy: 'nightly' })).status).toBe(400)
  expect((await call('POST', `${policies}/lint`, stranger, named)).status).toBe(404)
})

test('exchanges are counted per hour and day, by reason and policy, with those that come later', async () => {
  const { id } = federation.policy
  const counted = async (query: string, key = reader) => {
    const { data } = await call('GET', `/workload-identity/audit/counts?${query}`, key)
    const rows = data as { issued: number; refused: number; reasons: Record<string, number> }[]
    const sum = (pick: (row: (typeof rows)[number]) => number) => rows.reduce((total, row) => total + pick(row), 0)
    return { rows: rows.length, issued: sum(({ issued }) => issued), last: rows.at(-1)?.reasons ?? {} }
  }
  expect(await counted('per=hour')).toEqual({ rows: 24, issued: 0, last: {} })
  expect((await federation.exchange(await federation.mint())).status).toBe(200)
  expect((await federation.exchange(await federation.mint({ sub: 'nobody' }))).status).toBe(400)
  expect(await counted('per=hour')).toEqual({ rows: 24, issued: 1, last: { subject_mismatch: 1 } })
  expect(await counted('per=day')).toEqual({ rows: 30, issued: 1, last: { subject_mismatch: 1 } })
  expect(await counted(`policy=${id}`)).toEqual({ rows: 24, issued: 1, last: { subject_mismatch: 1 } })
  expect(await counted('policy=nightly')).toEqual({ rows: 24, issued: 0, last: {} })
  expect(await counted('per=hour', stranger)).toEqual({ rows: 24, issued: 0, last: {} })
  expect((await call('GET', `/workload-identity/audit/counts?policy=${id}`, stranger)).status).toBe(404)
  const { data } = await call('GET', `${policies}?counts=true&limit=1`, reader)
  expect(data).toMatchObject([{ id, exchanges_24h: { issued: 1, refused: 1 } }])
})

test('counting stops at a number of rows, and names the time from which it counted', async () => {
  const { orm, now } = federation.server.context
  for (let made = 0; made < 3; made++) await federation.exchange('x')
  const some = createExchangeCounts(orm, now, { rowsMax: 2 })
  const since = await some.countSince(0)
  expect(since).toBeGreaterThan(0)
  expect(since).toBeLessThanOrEqual(now())
  expect(await createExchangeCounts(orm, now).countSince(0)).toBe(0)
})
