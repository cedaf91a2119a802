// Usage over HTTP: totals of whole days by every field, from the daily totals of keys and from the ledger, for one organization.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { reportLedger } from '../../../db/read/usage-report.ts'
import { usageGroupings } from '../../../db/schema/usage-groupings.ts'
import { largestFirst } from '../../../src/admin/reports/usage-groups.ts'
import { answer, type Inference, question, startInference } from '../../support/inference.ts'
import type { Row } from '../../support/latchkey.ts'
import { createApiCaller } from '../../support/openapi.ts'

type Key = Row & { key: string }
type Report = {
  data: (Row & {
    requests: number
    total_tokens: number
    requests_without_cost: number
    days?: { day: string; requests: number; requests_without_cost: number }[]
  })[]
  other_days?: object[]
  total: { requests: number; total_tokens: number; cost: number; requests_without_cost: number }
  total_count: number
  since: string
  until: string
}

let latchkey: Inference
let mine: Key
let reader: string
let stranger: string
let call: Awaited<ReturnType<typeof createApiCaller>>
beforeAll(async () => {
  latchkey = await startInference()
  call = await createApiCaller(latchkey.server.baseUrl)
  latchkey.upstream.answer.current = () => Response.json(answer)
  await latchkey.admin('organizations.create', { name: 'other' })
  mine = await latchkey.admin<Key>('keys.create', { name: 'mine' })
  const second = await latchkey.admin<Key>('keys.create', { name: 'second' })
  const theirs = await latchkey.admin<Key>('keys.create', { name: 'theirs', organization: 'other' })
  const create = async (kind: string, organization: string) =>
    (await latchkey.admin<Key>('keys.create', { name: kind, kind, organization })).key
  reader = await create('management_read_only', 'default')
  stranger = await create('management', 'other')
  for (const { key } of [mine, mine, second, theirs])
    await (await latchkey.complete(question, { authorization: `Bearer ${key}` })).text()
})
afterAll(() => latchkey.stop())

const reportOf = async (query: string, key = reader) =>
  (await call('GET', `/usage?${query}`, key)).body as unknown as Report
const today = () => new Date().toISOString().slice(0, 10)

test.each([...usageGroupings])('by %s, an organization sees its requests and no others', async (by) => {
  const { data, total, total_count } = await reportOf(`by=${by}`)
  expect(total).toMatchObject({ requests: 3, total_tokens: 3 * answer.usage.total_tokens })
  expect(data.reduce((sum, { requests }) => sum + requests, 0)).toBe(3)
  expect(total_count).toBe(by === 'key' ? 2 : 1)
  expect((await reportOf(`by=${by}`, stranger)).total.requests).toBe(1)
})

test.each([...usageGroupings, 'label:team'])(
  'by %s, groups have the columns of the command, with their last use',
  async (by) => {
    const ofCommand = (await latchkey.admin<Report>('usage.sum', { by, organization: 'default' })).data
    const { data } = await reportOf(`by=${by}&last_used=true`)
    expect(data.map((row) => Object.entries(row))).toEqual(ofCommand.map((row) => Object.entries(row)))
    expect(data[0]?.last_used_at).toStartWith(today())
    expect(Object.keys((await reportOf(`by=${by}`)).data[0] ?? {})).not.toContain('last_used_at')
  },
)

test.each([...usageGroupings])('by %s, requests of unknown cost are counted, in all and by day', async (by) => {
  // No server reports a cost, and no price is set.
  const { data, total } = await reportOf(`by=${by}&per_day=true`)
  expect(total).toMatchObject({ cost: 0, requests_without_cost: 3 })
  for (const { requests, requests_without_cost, days = [] } of data) {
    expect(requests_without_cost).toBe(requests)
    expect(days.map((day) => day.requests_without_cost)).toEqual(by === 'day' ? [] : [requests])
  }
})

test('groups come with the most tokens first, in pages, with their names and days', async () => {
  const { data, total } = await reportOf('by=key&limit=1&per_day=true')
  expect(data).toMatchObject([
    { key_id: mine.id, key_name: 'mine', requests: 2, days: [{ day: today(), requests: 2 }] },
  ])
  expect(total.requests).toBe(3)
  expect((await reportOf('by=key&limit=1&offset=1')).data).toMatchObject([{ key_name: 'second', requests: 1 }])
  expect((await reportOf('by=model&per_day=true')).data).toMatchObject([{ days: [{ day: today(), requests: 3 }] }])
})

test.each(['key', 'model', 'upstream'])(
  'by %s, only the largest groups have their days if so many are asked for',
  async (by) => {
    const all = await reportOf(`by=${by}&per_day=true&days_of=1&limit=5`)
    const [first, ...others] = all.data
    expect(all.data.map(({ days }) => days === undefined)).toEqual(all.data.map((_, index) => index > 0))
    const requests = others.reduce((sum, each) => sum + each.requests, 0)
    expect(all.other_days).toEqual([
      expect.objectContaining({ day: today(), requests, requests_without_cost: requests }),
    ])
    expect(first?.days?.[0]?.requests).toBe(all.total.requests - requests)
    expect((await reportOf(`by=${by}&per_day=true`)).other_days).toBeUndefined()
    expect((await reportOf(`by=${by}&days_of=1`)).other_days).toBeUndefined()
  },
)

test.each([
  ['total_tokens', 'tokens'],
  ['requests', 'requests'],
  ['cost', 'cost'],
] as const)('ordered by %s, the group with the most of it comes first', (order, first) => {
  const none = { requests: 1, promptTokens: 0, completionTokens: 0, totalTokens: 1, costNanodollars: 1, unpriced: 0 }
  const group = (name: string, more: object) => ({ values: [name], totals: { ...none, ...more }, days: new Map() })
  const groups = [
    group('requests', { requests: 9 }),
    group('cost', { costNanodollars: 9 }),
    group('tokens', { totalTokens: 9 }),
  ]
  const ordered = largestFirst(new Map(groups.map((each) => [String(each.values[0]), each])), order)
  expect(ordered[0]?.values).toEqual([first])
  expect(ordered).toHaveLength(3)
})

test('one key is selected, and the daily totals agree with the ledger', async () => {
  expect((await reportOf('by=key&key=mine')).total.requests).toBe(2)
  expect((await reportOf('by=upstream&key=mine')).total.requests).toBe(2)
  expect((await call('GET', '/usage?key=theirs', reader)).status).toBe(404)
})

test('days are whole, the last 30 unless the request says otherwise, and at most 92', async () => {
  const { since, until } = await reportOf('by=day')
  expect(until).toBe(today())
  expect((Date.parse(until) - Date.parse(since)) / 86_400_000).toBe(29)
  expect((await reportOf(`since=${today()}T23:59:59Z`)).total.requests).toBe(3)
  expect((await reportOf('since=2026-01-01&until=2026-01-31')).total.requests).toBe(0)
  expect((await reportOf('by=model&since=2026-01-01&until=2026-01-31')).total.requests).toBe(0)
  for (const range of ['since=2026-01-01&until=2026-04-03', 'since=2026-02-02&until=2026-02-01'])
    expect((await call('GET', `/usage?${range}`, reader)).status).toBe(400)
})

test('a ledger that is too long to add up is cut, and the report has the time from which it counts', async () => {
  const { orm } = latchkey.server.context
  const { groups, cutAt } = await reportLedger(orm, 'model', { limit: 1 }, { rowsMax: 2 })
  expect([...groups.values()].map(({ totals }) => totals.requests)).toEqual([2])
  expect(cutAt).toBeGreaterThan(Date.now() - 60_000)
  expect((await reportLedger(orm, 'model', { limit: 1 }, { rowsMax: 100 })).cutAt).toBeUndefined()
})

test('single requests come newest first, page by page', async () => {
  const first = await call('GET', '/usage/requests?limit=2', reader)
  expect((first.data as Row[]).map(({ key_name }) => key_name)).toEqual(['second', 'mine'])
  const { more_before_id } = first.body as { more_before_id: number }
  const rest = await call('GET', `/usage/requests?limit=2&before_id=${more_before_id}`, reader)
  expect((rest.data as Row[]).map(({ key_name }) => key_name)).toEqual(['mine'])
  expect((await call('GET', '/usage/requests', mine.key)).status).toBe(403)
})
