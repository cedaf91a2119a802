// Whose usage a request is, from the exchange or from a trusted front end to the ledger and its reports; and what callers
// say of their requests.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { decodeJwt } from 'jose'
import { type Inference, question, startInference } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'

type Key = Row & { key: string }

let latchkey: Inference
let frontEnd: Key
beforeAll(async () => {
  latchkey = await startInference()
  frontEnd = await latchkey.admin<Key>('keys.create', {
    name: 'chat',
    labels: { team: 'research', 'cost-centre': '12' },
    attribute_from_header: 'x-user',
  })
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

const rowOf = async (response: Response) => (await latchkey.usageOf(response))[0]
const asFrontEnd = (headers: Record<string, string> = {}, more: object = {}) =>
  latchkey.complete({ ...question, ...more }, { authorization: `Bearer ${frontEnd.key}`, ...headers })

describe('a federated request', () => {
  test('has the subject of its token where the policy says nothing', async () => {
    const response = await latchkey.complete(question, { authorization: `Bearer ${latchkey.accessToken}` })
    expect(await rowOf(response)).toMatchObject({ subject: 'workload-1', attribution: 'workload-1' })
    expect(decodeJwt(latchkey.accessToken)).not.toHaveProperty('attribution')
  })

  test('has what its policy made of the verified token, and no header changes that', async () => {
    const policy = latchkey.policy.id
    await latchkey.admin('policies.update', { policy, attribute_to: '"repository " + string(claims.repository_id)' })
    const exchanged = await latchkey.exchange(await latchkey.mint({ repository_id: 456_789 }))
    const { access_token: token } = (await exchanged.json()) as { access_token: string }
    expect(decodeJwt(token).attribution).toBe('repository 456789')
    const headers = { authorization: `Bearer ${token}`, 'x-user': 'mallory', attribution: 'mallory' }
    const response = await latchkey.complete({ ...question, attribution: 'mallory' }, headers)
    expect(await rowOf(response)).toMatchObject({ attribution: 'repository 456789' })
    const { data } = await latchkey.admin<{ data: Row[] }>('audit.list', { limit: 1 })
    expect(data[0]).toMatchObject({ outcome: 'issued', attribution: 'repository 456789' })
    await latchkey.admin('policies.update', { policy, attribute_to: null })
  })
})

describe('a request with a key', () => {
  test('has no attribution, whatever headers it sends', async () => {
    expect(await rowOf(await latchkey.complete(question, { 'x-user': 'ada' }))).toMatchObject({ attribution: null })
  })

  test('of a trusted front end has the value of its header, and none without it', async () => {
    expect(await rowOf(await asFrontEnd({ 'x-user': ' ada ' }))).toMatchObject({ attribution: 'ada' })
    expect(await rowOf(await asFrontEnd({ 'x-user': 'x'.repeat(128) }))).toMatchObject({ attribution: 'x'.repeat(128) })
    expect(await rowOf(await asFrontEnd())).toMatchObject({ attribution: null })
    const refused = await asFrontEnd({ 'x-user': 'x'.repeat(129) })
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('at most 128 characters')
    expect(latchkey.upstream.requests.at(-1)?.headers.has('x-user')).toBe(false)
  })
})

describe('a header that says whose usage a call is', () => {
  test('is refused for the target of a policy, from either side', async () => {
    const update = latchkey.admin('keys.update', { key: latchkey.key.id, attribute_from_header: 'x-user' })
    await expect(update).rejects.toThrow('targets this key')
    const fields = { name: 'second', issuer: latchkey.issuer.id, key: 'chat', audience: 'a', subject: 's' }
    await expect(latchkey.admin('policies.create', fields)).rejects.toThrow('choose a key without')
    const management = { name: 'm', kind: 'management', attribute_from_header: 'x-user' }
    await expect(latchkey.admin('keys.create', management)).rejects.toThrow('cannot call inference')
  })

  test.each([
    'authorization',
    'Cookie',
    'x-api-key',
    'host',
    'x-forwarded-for',
    'content-type',
    'a b',
    '',
    'x'.repeat(65),
  ])('cannot be %p', async (header) => {
    const update = latchkey.admin('keys.update', { key: 'chat', attribute_from_header: header })
    await expect(update).rejects.toThrow('attribute_from_header')
  })
})

describe('what a caller says', () => {
  const said: [name: string, body: object, headers: Record<string, string>, expected: object][] = [
    ['nothing', {}, {}, { user: null, session_id: null, metadata: null }],
    ['a user and a session', { user: 'ada', session_id: 's1' }, {}, { user: 'ada', session_id: 's1' }],
    ['a session in a header', {}, { 'x-session-id': 's2' }, { session_id: 's2' }],
    ['a session in both', { session_id: 's1' }, { 'x-session-id': 's2' }, { session_id: 's1' }],
    ['the user as Anthropic writes it', { metadata: { user_id: 'u' } }, {}, { user: 'u', metadata: { user_id: 'u' } }],
    ['a user of 300 characters', { user: 'u'.repeat(300) }, {}, { user: 'u'.repeat(256) }],
    ['a user that is no text', { user: { a: 1 } }, {}, { user: null }],
    ['metadata of 4 KB', { metadata: { a: 'x'.repeat(4_088) } }, {}, { metadata: { a: 'x'.repeat(4_088) } }],
    ['metadata above 4 KB', { metadata: { a: 'x'.repeat(4_089) } }, {}, { metadata: null }],
    ['a key in the metadata', { metadata: { a: `sk-lk-v1-${'0'.repeat(64)}` } }, {}, { metadata: { a: 'sk-lk-v1-…' } }],
  ]
  test.each(said)('is in the ledger: %s', async (_name, body, headers, expected) => {
    const response = await latchkey.complete({ ...question, ...body }, headers)
    expect(response.status).toBe(200)
    expect(await rowOf(response)).toMatchObject(expected)
  })
})

test('usage is summed up by attribution, user, session and labels of keys', async () => {
  await (await asFrontEnd({ 'x-user': 'grace' }, { user: 'g', session_id: 'one' })).text()
  const sumOf = async (by: string, name: string, value: string | null) => {
    const { data } = await latchkey.admin<{ data: Row[] }>('usage.sum', { by })
    const report = await latchkey.admin<{ data: (Row & { days: Row[] })[] }>('usage.report', { by, per_day: true })
    const [sum, reported] = [data, report.data].map((rows) => rows.find((row) => row[name] === value))
    expect(reported).toMatchObject({ requests: sum?.requests, days: [{ requests: sum?.requests }] })
    return Number(sum?.requests)
  }
  expect(await sumOf('attribution', 'attribution', 'grace')).toBe(1)
  expect(await sumOf('user', 'user', 'g')).toBe(1)
  expect(await sumOf('session', 'session_id', 'one')).toBe(1)
  const { data } = await latchkey.admin<{ data: Row[] }>('usage.sum', { key: 'chat' })
  expect(await sumOf('label:team', 'label', 'research')).toBe(Number(data[0]?.requests))
  expect(await sumOf('label:team', 'label', null)).toBeGreaterThan(1)
  for (const by of ['label:', 'label:a b', 'labels', 'constructor'])
    await expect(latchkey.admin('usage.sum', { by })).rejects.toThrow('label:NAME')
})
