// What a key may still do: its budget, its rates, its models and its end, at the very next request after each change.
import { afterAll, beforeAll, beforeEach, expect, setSystemTime, test } from 'bun:test'
import { answer, type Inference, question, startInference } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

type Key = Row & { key: string; limit_remaining: number | null; usage: number }
let made = 0
const create = (bounds: object) => latchkey.admin<Key>('keys.create', { name: `k${made++}`, ...bounds })
const ask = async ({ key }: Key, body: object = question) => {
  const response = await latchkey.complete(body, { authorization: `Bearer ${key}` })
  const { error } = (await response.json()) as { error?: { message: string } }
  return { status: response.status, message: error?.message, retryAfter: response.headers.get('retry-after') }
}
const priced = (cost: number) => () => Response.json({ ...answer, usage: { ...answer.usage, cost } })

test('a budget that is spent refuses the next request, and a higher one lets it pass again', async () => {
  latchkey.upstream.answer.current = priced(0.6)
  const key = await create({ limit: 1 })
  expect([(await ask(key)).status, (await ask(key)).status]).toEqual([200, 200])
  const message = 'The limit of this key, 1 USD, is spent; it does not reset: ask an administrator to raise it'
  expect(await ask(key)).toMatchObject({ status: 402, message })
  expect(latchkey.upstream.requests).toHaveLength(2)
  expect(await latchkey.admin<Key>('keys.show', { key: key.id })).toMatchObject({ usage: 1.2, limit_remaining: 0 })
  expect(await latchkey.admin<Key>('keys.update', { key: key.id, limit: 2 })).toMatchObject({ limit_remaining: 0.8 })
  expect((await ask(key)).status).toBe(200)
  await latchkey.admin('keys.update', { key: key.id, limit: null })
  expect((await ask(key)).status).toBe(200)
})

test('a key shows the budgets that apply to it, and which of them refuses all of its requests', async () => {
  const budget = (name: string, more: object = {}) =>
    latchkey.admin('budgets.create', {
      ...{ name, windows: [{ per: 'week', requests: 1 }], applies_to: { labels: { team: 'research' } } },
      ...more,
    })
  await budget('research week')
  await budget('only warns', { mode: 'warn' })
  await budget('of some models', {
    applies_to: { labels: { team: 'research' }, models: ['other/*'] },
    windows: [{ per: 'week', requests: 0 }],
  })
  await budget('each person', { each: 'attribution' })
  await budget('not theirs', { applies_to: { labels: { team: 'support' } } })
  const key = await create({ labels: { team: 'research' } })
  type Limited = { name: string; limited_by?: { name: string; refuses_all: boolean; spent?: object[] }[] }
  const shown = async () => {
    const one = await latchkey.admin<Limited>('keys.show', { key: key.id })
    const { data } = await latchkey.admin<{ data: Limited[] }>('keys.list')
    expect(data.find(({ name }) => name === one.name)?.limited_by).toEqual(one.limited_by ?? [])
    return one.limited_by?.map(({ name, refuses_all }) => [name, refuses_all])
  }
  const others = [
    ['only warns', false],
    ['of some models', false],
    ['each person', false],
  ]
  expect(await shown()).toEqual([['research week', false], ...others])
  expect((await ask(key)).status).toBe(200)
  expect(await shown()).toEqual([['research week', true], ...others])
  expect((await ask(key)).status).toBe(402)
  const { limited_by: budgets = [] } = await latchkey.admin<Limited>('keys.show', { key: key.id })
  expect(budgets[0]).toMatchObject({
    mode: 'block',
    spent: [{ per: 'week', unit: 'requests', spent: 1, remaining: 0 }],
  })
  expect(budgets.at(-1)).not.toHaveProperty('spent')
  const manager = await create({ kind: 'management' })
  expect(await latchkey.admin('keys.show', { key: manager.id })).not.toHaveProperty('limited_by')
})

test('a budget of nothing refuses at once, whatever the period', async () => {
  for (const limit_reset of ['daily', 'weekly', 'monthly', null])
    expect(await ask(await create({ limit: 0, limit_reset }))).toMatchObject({
      status: 402,
      message: expect.stringContaining('does not reset'),
    })
})

test.each([
  ['daily', '2031-01-02 00:00'],
  ['weekly', '2031-01-06 00:00'],
  ['monthly', '2031-02-01 00:00'],
] as const)('a spent %s budget says when it resets, and a request passes then', async (limit_reset, resetsAt) => {
  latchkey.upstream.answer.current = priced(0.6)
  const key = await create({ limit: 0.5, limit_reset })
  try {
    setSystemTime(new Date('2031-01-01T12:34:56Z'))
    expect((await ask(key)).status).toBe(200)
    const message = `The ${limit_reset} limit of this key, 0.5 USD, is spent; it resets at ${resetsAt} UTC`
    expect(await ask(key)).toMatchObject({ status: 402, message })
    const reset = Date.parse(`${resetsAt.replace(' ', 'T')}Z`)
    setSystemTime(reset - 1)
    expect((await ask(key)).status).toBe(402)
    setSystemTime(reset)
    expect((await ask(key)).status).toBe(200)
  } finally {
    setSystemTime()
  }
})

test('a price list applies when the upstream reports no cost, and a reported cost takes precedence', async () => {
  await latchkey.admin('prices.set', { prices: [{ model: 'real-*', prompt: 1_000_000, completion: 0 }] })
  const key = await create({})
  await ask(key)
  expect((await latchkey.admin<Key>('keys.show', { key: key.id })).usage).toBe(3)
  latchkey.upstream.answer.current = priced(0.5)
  await ask(key)
  expect((await latchkey.admin<Key>('keys.show', { key: key.id })).usage).toBe(3.5)
  await latchkey.admin('prices.remove', { model: 'real-*' })
  latchkey.reset()
  await ask(key)
  expect((await latchkey.admin<Key>('keys.show', { key: key.id })).usage).toBe(3.5)
})

test('requests a minute and tokens a minute are held, with the time to wait', async () => {
  const few = await create({ requests_per_minute: 2 })
  expect([(await ask(few)).status, (await ask(few)).status]).toEqual([200, 200])
  const held = await ask(few)
  expect(held.status).toBe(429)
  expect(Number(held.retryAfter)).toBeWithin(1, 31)
  const small = await create({ tokens_per_minute: 1 })
  expect((await ask(small)).status).toBe(200)
  expect((await ask(small)).status).toBe(429)
})

test('a key for some models is refused the others, also as a fallback, and where none is named', async () => {
  const key = await create({ allowed_models: ['meta/*', 'b'] })
  const { messages } = question
  expect((await ask(key, { messages, model: 'meta/x' })).status).toBe(200)
  for (const [body, why] of [
    [{ messages, model: 'c' }, '"c" is not one of them'],
    [{ messages, model: 'b', models: ['c'] }, '"c" is not one of them'],
    [{ messages }, 'name a model'],
  ] as const)
    expect(await ask(key, body)).toMatchObject({
      status: 403,
      message: `This key may only use the models: meta/*, b; ${why}`,
    })
  expect(latchkey.upstream.requests).toHaveLength(1)
})

test('an expired key is refused, and so is a token that acts as it', async () => {
  const key = await create({ expires_at: '2999-01-01T00:00:00Z' })
  expect((await ask(key)).status).toBe(200)
  await expect(latchkey.admin('keys.update', { key: key.id, expires_at: '2001-01-01T00:00:00Z' })).rejects.toThrow(
    'future',
  )
  const expiresAt = Date.now() + 60_000
  await latchkey.admin('keys.update', { key: 'target', expires_at: new Date(expiresAt).toISOString() })
  const asToken = async () =>
    (await latchkey.complete(question, { authorization: `Bearer ${latchkey.accessToken}` })).status
  try {
    setSystemTime(expiresAt - 1)
    expect(await asToken()).toBe(200)
    setSystemTime(expiresAt)
    expect(await asToken()).toBe(401)
    const refused = await latchkey.exchange(await latchkey.mint())
    expect(refused.status).toBe(400)
    const { data } = await latchkey.admin<{ data: Row[] }>('audit.list', { limit: 1 })
    expect(data).toMatchObject([{ reason: 'key_expired' }])
  } finally {
    setSystemTime()
    await latchkey.admin('keys.update', { key: 'target', expires_at: null })
  }
})

test('bounds of inference are not for management keys', async () => {
  await expect(create({ kind: 'management', limit: 1 })).rejects.toThrow('management key cannot call inference')
})

test('the totals of every key are what its requests add up to', async () => {
  latchkey.upstream.answer.current = priced(0.25)
  const [one, other, none] = [await create({}), await create({}), await create({})]
  for (const key of [one, other, one, one]) await ask(key)
  latchkey.upstream.answer.current = () => Response.json({ error: 'no' }, { status: 500 })
  await ask(other)
  expect(await latchkey.admin<object>('usage.verify')).toEqual({ ok: true, data: [] })
  const totalsOf = async ({ id }: Key) => (await latchkey.admin<{ data: Row[] }>('usage.sum', { key: id })).data
  expect(await totalsOf(one)).toMatchObject([{ requests: 3, total_tokens: 21, cost: 0.75, requests_without_cost: 0 }])
  expect(await totalsOf(other)).toMatchObject([{ requests: 2, total_tokens: 7, cost: 0.25, requests_without_cost: 0 }])
  expect(await totalsOf(none)).toEqual([])
  for (const [key, usage] of [
    [one, 0.75],
    [other, 0.25],
    [none, 0],
  ] as const)
    expect(await latchkey.admin<Key>('keys.show', { key: key.id })).toMatchObject({ usage, usage_daily: usage })
})
