// The lists behind the page's requests: filters of the ledger, what is newer than a row, why a request failed, and what was refused before any
// server got it.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { listUsage } from '../../../db/tables/usage.ts'
import { answer, type Inference, question, startInference } from '../../support/inference.ts'
import type { Row } from '../../support/latchkey.ts'
import { createApiCaller } from '../../support/openapi.ts'
import { until } from '../../support/until.ts'

type Key = Row & { key: string }
type Request = Row & { request_id: string; upstream: string }
type Refused = { data: (Row & { samples: Row[] })[] }

let latchkey: Inference
let reader: string
let call: Awaited<ReturnType<typeof createApiCaller>>
beforeAll(async () => {
  latchkey = await startInference()
  call = await createApiCaller(latchkey.server.baseUrl)
  reader = (await latchkey.admin<Key>('keys.create', { name: 'reader', kind: 'management_read_only' })).key
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

const ask = async (model = 'm', headers = {}) => {
  const response = await latchkey.complete({ ...question, model }, headers)
  await response.text()
  return response
}
const idOf = ({ headers }: Response) => headers.get('x-request-id') ?? ''
const requests = async (query = '') => (await call('GET', `/usage/requests?${query}`, reader)).data as Request[]
const refused = async (query = '', key = reader) =>
  (await call('GET', `/usage/refused?${query}`, key)).body as unknown as Refused

describe('forwarded requests', () => {
  test('are found by model, server, status and result, and by nothing else', async () => {
    latchkey.upstream.answer.current = () => Response.json({ ...answer, model: 'served' })
    const good = await ask('asked')
    latchkey.upstream.answer.current = () => Response.json({ error: { message: 'no' } }, { status: 400 })
    const bad = await ask('other')
    const ids = async (query: string) => (await requests(query)).map(({ request_id }) => request_id)
    const [goodId, badId] = [idOf(good), idOf(bad)]
    const upstream = (await requests('limit=1'))[0]?.upstream
    for (const [query, found] of [
      ['model=asked', [goodId]],
      ['model=served', [goodId]],
      ['model=aske', []],
      ['status=400', [badId]],
      ['result=failed', [badId]],
      ['result=succeeded', [goodId]],
      ['result=client_left', []],
      [`upstream=${upstream}`, [badId, goodId]],
      ['upstream=nowhere', []],
    ] as const)
      expect({ query, found: await ids(query) }).toEqual({ query, found: [...found] })
    for (const query of ['status=42', 'result=maybe', 'model=', 'after_id=-1'])
      expect((await call('GET', `/usage/requests?${query}`, reader)).status).toBe(400)
  })

  test('have how many servers were tried, and the reason where none responded', async () => {
    await ask()
    expect((await requests('limit=1'))[0]).toMatchObject({ status: 200, attempts: 1, error: null, issuer_name: null })
    latchkey.upstream.answer.current = () => new Response('no', { status: 401 })
    await ask()
    expect((await requests('limit=1'))[0]).toMatchObject({ attempts: 1, error: 'upstream_refused' })
  })

  test('have the word of the server that responded with an error, and none of its texts', async () => {
    for (const [body, word] of [
      [
        { error: { message: 'hello', type: 'invalid_request_error', code: 'context_length_exceeded' } },
        'context_length_exceeded',
      ],
      [{ error: { message: 'hello', type: 'invalid_request_error', code: null } }, 'invalid_request_error'],
      [{ type: 'error', error: { type: 'overloaded_error', message: 'hello' } }, 'overloaded_error'],
      [{ object: 'error', message: 'hello', type: 'BadRequestError', code: 400 }, 'BadRequestError'],
      [{ error: { code: 400, message: 'hello', metadata: { error_type: 'invalid_request' } } }, 'invalid_request'],
      [{ error: { message: 'hello', type: 'a prompt with spaces', code: '400' } }, null],
      [{ error: 'hello' }, null],
    ] as const) {
      latchkey.upstream.answer.current = () => Response.json(body, { status: 400 })
      await ask()
      const [row] = await requests('limit=1')
      expect({ body, error: row?.error }).toEqual({ body, error: word })
      expect(JSON.stringify(row)).not.toContain('hello')
    }
    latchkey.upstream.answer.current = () => Response.json({ ...answer, error: { type: 'nothing' } })
    await ask()
    expect((await requests('limit=1'))[0]).toMatchObject({ status: 200, error: null })
  })

  test('are found by what they are attributed to', async () => {
    await latchkey.admin('policies.update', { policy: 'policy', attribute_to: 'claims.repository_id' })
    for (const repository of ['1001', '1002']) {
      const reply = await latchkey.exchange(await latchkey.mint({ repository_id: repository }))
      const { access_token: token } = (await reply.json()) as { access_token: string }
      await ask('m', { authorization: `Bearer ${token}` })
    }
    await latchkey.admin('policies.update', { policy: 'policy', attribute_to: null })
    const found = await requests('attribution=1001')
    expect(found.map(({ attribution }) => attribution)).toEqual(['1001'])
    expect(await requests('attribution=100')).toEqual([])
    expect((await call('GET', `/usage/requests?attribution=${'x'.repeat(129)}`, reader)).status).toBe(400)
  })

  test('that are refused after they waited are in the ledger, and are not counted as refused before', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    latchkey.upstream.answer.current = () => promise.then(() => Response.json(answer))
    const { url: base_url } = latchkey.upstream
    await latchkey.admin('upstreams.add', { name: 'narrow', base_url, models: ['held'], max_running: 1 })
    const { key } = await latchkey.admin<Key>('keys.create', { name: 'late' })
    const sent = { provider: { only: ['narrow'] } }
    const send = () => latchkey.complete({ ...question, model: 'held', ...sent }, { authorization: `Bearer ${key}` })
    const first = send()
    await until('the first request', () => latchkey.upstream.requests.length === 1)
    const second = send()
    const keys = async () => (await latchkey.admin<{ keys: Row[] }>('upstreams.top')).keys
    await until('the second in the queue', async () => (await keys()).some(({ waiting }) => waiting === 1))
    await latchkey.admin('keys.disable', { key: 'late' })
    resolve()
    expect([(await first).status, (await second).status]).toEqual([200, 401])
    const own = (await requests('limit=5')).filter(({ key_name: name }) => name === 'late')
    expect(own.map(({ status }) => status)).toEqual([401, 200])
    expect((await refused('key=late')).data).toEqual([])
    await latchkey.admin('upstreams.remove', { upstream: 'narrow' })
  })

  test('that are newer than a row come alone, and nothing newer is an empty list', async () => {
    await ask()
    const [newest] = await requests('limit=1')
    expect(await requests(`after_id=${newest?.id}`)).toEqual([])
    const one = await ask('next')
    const found = await requests(`after_id=${newest?.id}`)
    expect(found.map(({ request_id }) => request_id)).toEqual([idOf(one)])
    expect(await requests(`after_id=${newest?.id}&before_id=${found[0]?.id}`)).toEqual([])
  })

  test('are read up to a bound, from which the next page goes on', async () => {
    const { orm } = latchkey.server.context
    const all = await listUsage(orm, { limit: 100 }, ({ id }) => id)
    const first = await listUsage(orm, { limit: 100, model: 'never' }, ({ id }) => id, { rowsReadMax: 2 })
    expect(first).toEqual({ rows: [], moreBeforeId: (all.rows[0] ?? 0) - 1 })
    const rest = await listUsage(orm, { limit: 100, beforeId: first.moreBeforeId ?? 0 }, ({ id }) => id)
    expect(rest).toEqual({ rows: all.rows.slice(2), moreBeforeId: undefined })
  })
})

describe('requests that no server got', () => {
  test('are counted by key and reason, with the latest, and are not in the ledger', async () => {
    const poor = await latchkey.admin<Key>('keys.create', { name: 'poor', limit: 0 })
    const bound = await latchkey.admin<Key>('keys.create', { name: 'bound', allowed_models: ['mine'] })
    const before = (await requests('limit=100')).length
    const over = await ask('dear', { authorization: `Bearer ${poor.key}` })
    await ask('dear', { authorization: `Bearer ${poor.key}` })
    await ask('theirs', { authorization: `Bearer ${bound.key}` })
    await ask('theirs', { authorization: 'Bearer sk-lk-v1-unknown' })
    expect(await requests('limit=100')).toHaveLength(before)
    const { data } = await refused()
    expect(data).toMatchObject([
      { key_name: 'bound', status: 403, requests: 1, samples: [{ model: 'theirs', policy_id: null }] },
      { key_name: 'poor', status: 402, requests: 2, samples: [{ request_id: idOf(over) }] },
    ])
    expect((await refused('key=poor')).data).toHaveLength(1)
    expect(JSON.stringify(data)).not.toContain('hello')
  })

  test('of another organization are seen by nobody else, nor with an inference key', async () => {
    await latchkey.admin('organizations.create', { name: 'other' })
    const stranger = await latchkey.admin<Key>('keys.create', {
      ...{ name: 'boss', kind: 'management', organization: 'other' },
    })
    expect((await refused('', stranger.key)).data).toEqual([])
    expect((await call('GET', '/usage/refused', latchkey.key.key)).status).toBe(403)
  })

  test('do not include those that a server got and refused', async () => {
    const before = await refused()
    latchkey.upstream.answer.current = () => Response.json({ error: { message: 'no' } }, { status: 429 })
    expect((await ask()).status).toBe(429)
    expect((await refused()).data.map(({ requests }) => requests)).toEqual(before.data.map(({ requests }) => requests))
  })
})

describe('exchanges and changes', () => {
  test('that are newer than a row come alone, with the names of issuer and key', async () => {
    const list = async (path: string) => (await call('GET', path, reader)).data as Request[]
    const [exchange] = await list('/workload-identity/audit?limit=1')
    expect(exchange).toMatchObject({ issuer_name: 'idp', key_name: 'target' })
    expect(await list(`/workload-identity/audit?after_id=${exchange?.id}`)).toEqual([])
    await latchkey.exchange(await latchkey.mint())
    expect(await list(`/workload-identity/audit?after_id=${exchange?.id}&outcome=issued`)).toHaveLength(1)
    const [change] = await list('/workload-identity/audit/changes?limit=1')
    await latchkey.admin('keys.create', { name: 'newer' })
    expect(await list(`/workload-identity/audit/changes?after_id=${change?.id}`)).toMatchObject([{ kind: 'key' }])
  })

  test('by a key or a person are only theirs', async () => {
    const manager = await latchkey.admin<Key>('keys.create', { name: 'manager', kind: 'management' })
    const made = await call('POST', '/keys', manager.key, { name: 'made over http' })
    expect(made.status).toBe(201)
    const by = async (who: string) =>
      (await call('GET', `/workload-identity/audit/changes?by=${who}`, reader)).data as Row[]
    expect(await by('manager')).toMatchObject([{ actor_key_id: manager.id }])
    expect(await by(manager.id)).toHaveLength(1)
    expect(await by('somebody@example.com')).toEqual([])
    expect(await by('manage')).toEqual([])
    const byPart = async (who: string) =>
      (await call('GET', `/workload-identity/audit/changes?by_contains=${who}`, reader)).data as Row[]
    expect(await byPart('MANAGE')).toMatchObject([{ actor_key_id: manager.id }])
    for (const nobody of ['managed', '%25', '_']) expect(await byPart(nobody)).toEqual([])
  })
})
