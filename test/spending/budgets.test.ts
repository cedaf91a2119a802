// Budgets as callers and administrators meet them: what they count, whom they refuse and when, and what remains.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { answer, type Inference, question, startInference } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'

type Key = Row & { key: string }
type Spent = {
  requests_without_cost?: number
  per: string
  unit: string
  limit: number
  spent: number
  remaining: number
  resets_at: string | null
}
type Budget = Row & {
  requests_without_cost?: number
  spent?: Spent[]
  values?: { value: string; spent: Spent[] }[]
  value_count?: number
  updated_at: string
}

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
beforeEach(async () => {
  latchkey.reset()
  latchkey.upstream.answer.current = priced(0.6)
  await apply([])
  const { data } = await latchkey.admin<{ data: Row[] }>('budgets.list')
  for (const { id } of data) await latchkey.admin('budgets.delete', { budget: id })
})
afterAll(() => latchkey.stop())

const priced = (cost: number) => () => Response.json({ ...answer, usage: { ...answer.usage, cost } })
let made = 0
const createKey = (more: object = {}) => latchkey.admin<Key>('keys.create', { name: `b${made++}`, ...more })
const create = (name: string, fields: object) => latchkey.admin<Budget>('budgets.create', { name, ...fields })
/** Applies a document with these budgets, and deletes those of the one before. */
function apply(budgets: object[]): Promise<Row> {
  const document = { latchkey: 1, organization: 'default', owner: 'tests', budgets }
  return latchkey.admin<Row>('config.apply', { document, prune: true })
}
const show = (budget: string) => latchkey.admin<Budget>('budgets.show', { budget })
const month = (usd: number) => [{ per: 'month', usd }]
const ask = async ({ key }: { key: string }, headers: Record<string, string> = {}, body: object = question) => {
  const response = await latchkey.complete(body, { authorization: `Bearer ${key}`, ...headers })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Row & { error?: Row } }
}
const statusOf = async (...asked: Parameters<typeof ask>) => (await ask(...asked)).status

describe('a budget', () => {
  test('of a key refuses with 402 once it is spent, says when it resets, and asks for no retry', async () => {
    const key = await createKey()
    await create('research', { applies_to: { keys: [key.name] }, windows: month(1) })
    expect([await statusOf(key), await statusOf(key)]).toEqual([200, 200])
    const { status, body, headers } = await ask(key)
    const now = new Date()
    const resets_at = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString()
    expect(status).toBe(402)
    expect(body).toEqual({
      error: {
        code: 402,
        message: `The monthly budget "research", 1 USD, is spent; it resets at ${resets_at}`,
        type: 'budget_spent',
        metadata: {
          error_type: 'payment_required',
          budget: 'research',
          per: 'month',
          unit: 'usd',
          limit: 1,
          spent: 1.2,
          resets_at,
        },
      },
    } as never)
    expect(headers.has('retry-after')).toBe(false)
    expect(latchkey.upstream.requests).toHaveLength(2)
    expect((await show('research')).spent).toEqual([
      { per: 'month', unit: 'usd', limit: 1, spent: 1.2, remaining: 0, resets_at, requests_without_cost: 0 },
    ])
    expect(await statusOf(await createKey())).toBe(200)
  })

  test('counts what its current period has used before it was made, and no other organization', async () => {
    const key = await createKey()
    await ask(key)
    await latchkey.admin('organizations.create', { name: 'elsewhere' })
    const foreign = await latchkey.admin<Key>('keys.create', { name: 'foreign', organization: 'elsewhere' })
    await ask(foreign)
    await create('late', { organization: 'default', applies_to: { keys: [key.name] }, windows: month(0.5) })
    expect(await statusOf(key)).toBe(402)
    expect(await statusOf(foreign)).toBe(200)
    await latchkey.admin('budgets.delete', { budget: 'late', organization: 'default' })
    expect(await statusOf(key)).toBe(200)
  })

  test('of each attribution has a counter for each, and one with an override and one with a top-up last longer', async () => {
    const key = await createKey({ attribute_from_header: 'x-user' })
    const as = (user: string) => ({ 'x-user': user })
    const fields = { organization: 'default', applies_to: { keys: [key.name] }, each: 'attribution' }
    await create('users', { ...fields, windows: month(0.5), overrides: { ada: month(2) } })
    for (const user of ['ada', 'grace', 'linus']) expect(await statusOf(key, as(user))).toBe(200)
    expect([await statusOf(key, as('ada')), await statusOf(key, as('grace'))]).toEqual([200, 402])
    const { body } = await ask(key, as('grace'))
    expect(String(body.error?.message)).toStartWith('The monthly budget "users" of "grace", 0.5 USD, is spent')
    const until = new Date(Date.now() + 3_600_000).toISOString()
    const topUp = { organization: 'default', budget: 'users', usd: 0.5, value: 'grace', until, because: 'release' }
    expect(await latchkey.admin('budgets.top_up', topUp)).toMatchObject({ top_ups: [{ usd: 0.5, value: 'grace' }] })
    expect([await statusOf(key, as('grace')), await statusOf(key, as('linus'))]).toEqual([200, 402])
    // A call without the header has a counter too, so that leaving it out is no way around.
    expect([await statusOf(key), await statusOf(key)]).toEqual([200, 402])
    const shown = { organization: 'default', budget: 'users' }
    const { values, value_count } = await latchkey.admin<Budget>('budgets.show', shown)
    expect(value_count).toBe(4)
    expect(values?.map(({ value }) => value).toSorted()).toEqual(['', 'ada', 'grace', 'linus'])
  })

  test('of a label counts the keys that have it now, also what they used before', async () => {
    const [one, other] = [await createKey({ labels: { team: 'red' } }), await createKey()]
    await ask(one)
    await ask(other)
    const scope = { labels: { team: 'red' } }
    await create('red', { organization: 'default', applies_to: scope, windows: [{ per: 'day', requests: 2 }] })
    expect(
      (await latchkey.admin<Budget>('budgets.show', { organization: 'default', budget: 'red' })).spent,
    ).toMatchObject([{ unit: 'requests', spent: 1, remaining: 1 }])
    await latchkey.admin('keys.update', { organization: 'default', key: other.id, labels: { team: 'red' } })
    expect([await statusOf(one), await statusOf(other)]).toEqual([402, 402])
    await latchkey.admin('keys.update', { organization: 'default', key: one.id, labels: { team: 'blue' } })
    expect([await statusOf(one), await statusOf(other)]).toEqual([200, 200])
  })

  test('of models counts and refuses those alone', async () => {
    const key = await createKey()
    const fields = { organization: 'default', applies_to: { keys: [key.name], models: ['real-*', 'asked-model'] } }
    await create('models', { ...fields, windows: [{ per: 'lifetime', tokens: 7 }] })
    expect(await statusOf(key)).toBe(200)
    expect(await statusOf(key)).toBe(402)
    expect(await statusOf(key, {}, { ...question, model: 'other' })).toBe(200)
    expect(await statusOf(key, {}, { ...question, models: ['other', 'asked-model'], model: 'other' })).toBe(402)
    // The inference server chooses, perhaps one of those.
    expect(await statusOf(key, {}, { messages: question.messages })).toBe(402)
  })

  test('of policies leaves the key itself alone', async () => {
    const fields = { organization: 'default', applies_to: { policies: [latchkey.policy.id] }, each: 'policy' }
    await create('ci', { ...fields, windows: [{ per: 'hour', requests: 1 }] })
    expect([await statusOf({ key: latchkey.accessToken }), await statusOf({ key: latchkey.accessToken })]).toEqual([
      200, 402,
    ])
    expect(await statusOf(latchkey.key as Key)).toBe(200)
  })

  test('that warns, or is disabled, refuses nobody', async () => {
    const key = await createKey()
    const fields = { organization: 'default', applies_to: { keys: [key.name] }, windows: [{ per: 'day', requests: 0 }] }
    await create('soft', { ...fields, mode: 'warn' })
    expect(await statusOf(key)).toBe(200)
    const updated = { organization: 'default', budget: 'soft' }
    await latchkey.admin('budgets.update', { ...updated, mode: 'block' })
    expect(await statusOf(key)).toBe(402)
    await latchkey.admin('budgets.update', { ...updated, enabled: false })
    expect(await statusOf(key)).toBe(200)
  })

  test('can refuse models without a price', async () => {
    const key = await createKey()
    const fields = { organization: 'default', applies_to: { keys: [key.name] }, windows: month(5), unpriced: 'refuse' }
    await create('priced', fields)
    const { status, body } = await ask(key)
    expect([status, body.error?.type]).toEqual([403, 'model_unpriced'])
    await latchkey.admin('prices.set', { prices: [{ model: 'asked-model', prompt: 1, completion: 1 }] })
    expect(await statusOf(key)).toBe(200)
    await latchkey.admin('prices.remove', { model: 'asked-model' })
  })

  test('in dollars says how many requests have an unknown cost, also before it was made and of values that spent nothing', async () => {
    const key = await createKey({ attribute_from_header: 'x-user' })
    latchkey.upstream.answer.current = () => Response.json(answer)
    const fields = { organization: 'default', applies_to: { keys: [key.name] }, each: 'attribution', windows: month(5) }
    await ask(key, { 'x-user': 'ada' })
    await create('unpriced', fields)
    await ask(key, { 'x-user': 'ada' })
    latchkey.upstream.answer.current = priced(0.6)
    await ask(key, { 'x-user': 'grace' })
    latchkey.upstream.answer.current = () => new Response('{}', { status: 400 })
    await ask(key, { 'x-user': 'linus' })
    const asked = { organization: 'default', budget: 'unpriced' }
    const found = await latchkey.admin<Budget>('budgets.show', asked)
    const counted = found.values?.map(({ value, spent }) => [value, spent[0]?.spent, spent[0]?.requests_without_cost])
    expect(counted).toEqual([
      ['grace', 0.6, 0],
      ['ada', 0, 2],
    ])
    expect(found).toMatchObject({ value_count: 2, requests_without_cost: 2 })
    expect(await latchkey.admin<Row>('budgets.simulate', asked)).toMatchObject({
      requests: 4,
      requests_without_cost: 2,
    })
    const finding = async () => {
      const { findings } = await latchkey.admin<{ findings: Row[] }>('doctor.examine', { organization: 'default' })
      return findings.find(({ code }) => code === 'budget_cost_unknown')
    }
    expect(await finding()).toMatchObject({
      ...{ names: ['unpriced'], operation: 'prices.set' },
      action: 'latchkey prices set real-model --prompt DOLLARS --completion DOLLARS',
    })
    await latchkey.admin('prices.set', { prices: [{ model: 'real-*', prompt: 1, completion: 1 }] })
    expect(await finding()).toBeUndefined()
    await latchkey.admin('prices.remove', { model: 'real-*' })
    expect(await finding()).toBeDefined()
    const tokens = await latchkey.admin<Budget>('budgets.update', { ...asked, windows: [{ per: 'month', tokens: 9 }] })
    expect([tokens.requests_without_cost, await finding()]).toEqual([undefined, undefined])
  })

  test('of a single key in dollars is named by the doctor where a model has no price', async () => {
    const key = await createKey({ limit: 5 })
    const finding = async () => {
      const { findings } = await latchkey.admin<{ findings: Row[] }>('doctor.examine', { organization: 'default' })
      return findings.find(({ code, names }) => code === 'budget_cost_unknown' && [names].flat().includes(key.name))
    }
    latchkey.upstream.answer.current = priced(0.6)
    await ask(key)
    expect(await finding()).toBeUndefined()
    latchkey.upstream.answer.current = () => Response.json(answer)
    await ask(key)
    expect(await finding()).toMatchObject({ level: 'warning', operation: 'prices.set' })
    await latchkey.admin('keys.update', { key: key.name, limit: null })
    expect(await finding()).toBeUndefined()
  })

  test('is one of several: the one with the latest reset is named', async () => {
    const key = await createKey()
    const fields = { organization: 'default', applies_to: { keys: [key.name] } }
    await create('short', { ...fields, windows: [{ per: 'hour', requests: 1 }] })
    await create('long', {
      ...fields,
      windows: [
        { per: 'day', requests: 1 },
        { per: 'month', requests: 1 },
      ],
    })
    await ask(key)
    expect((await ask(key)).body.error?.metadata).toMatchObject({ budget: 'long', per: 'month' })
    const { findings } = await latchkey.admin<{ findings: Row[] }>('doctor.examine', { organization: 'default' })
    const found = findings.find(({ code }) => code === 'budget_refuses')
    expect(found?.names).toEqual(expect.arrayContaining(['short', 'long']))
  })

  test('that allows nothing refuses from the start, also a single value', async () => {
    const key = await createKey()
    const fields = { organization: 'default', applies_to: { keys: [key.name] } }
    await create('nothing at all', { ...fields, windows: [{ per: 'month', usd: 0 }] })
    await create('nothing for ci', {
      ...{ organization: 'default', each: 'label:stage', windows: [{ per: 'month', requests: 900 }] },
      overrides: { ci: [{ per: 'month', requests: 0 }], cd: [{ per: 'month', requests: 1 }] },
    })
    await create('nothing spent', { ...fields, windows: [{ per: 'month', usd: 1 }] })
    const { findings } = await latchkey.admin<{ findings: Row[] }>('doctor.examine', { organization: 'default' })
    const found = findings.find(({ code }) => code === 'budget_refuses')
    expect(found?.names).toEqual(expect.arrayContaining(['nothing at all', 'nothing for ci']))
    expect(found?.names).not.toContain('nothing spent')
    expect(found?.message).toContain('"nothing for ci" for "ci", until')
  })
})

test('callers see what remains: at GET /key, and in headers if the organization wants that', async () => {
  const key = await createKey()
  const windows = [{ per: 'month', usd: 2, requests: 10 }]
  await create('visible', { organization: 'default', applies_to: { keys: [key.name] }, windows })
  expect((await ask(key)).headers.has('x-latchkey-budget-remaining')).toBe(false)
  await latchkey.admin('organizations.update', { organization: 'default', budget_headers: true })
  const { headers } = await ask(key)
  expect(headers.get('x-latchkey-budget-remaining')).toBe('1.4')
  expect(headers.get('x-ratelimit-remaining-requests')).toBe('9')
  const response = await fetch(`${latchkey.server.baseUrl}/key`, { headers: { authorization: `Bearer ${key.key}` } })
  const { data } = (await response.json()) as { data: { budgets: Row[] } }
  expect(data.budgets).toMatchObject([
    { name: 'visible', per: 'month', unit: 'usd', limit: 2, spent: 1.2, remaining: 0.8 },
    { name: 'visible', per: 'month', unit: 'requests', limit: 10, spent: 2, remaining: 8 },
  ])
  await latchkey.admin('organizations.update', { organization: 'default', budget_headers: false })
})

test('days begin in the time zone of the organization, and a change of it counts again', async () => {
  const key = await createKey()
  await ask(key)
  await create('daily', {
    organization: 'default',
    applies_to: { keys: [key.name] },
    windows: [{ per: 'day', requests: 5 }],
  })
  for (const time_zone of ['Pacific/Kiritimati', 'Pacific/Pago_Pago', null]) {
    await latchkey.admin('organizations.update', { organization: 'default', time_zone })
    const { spent } = await latchkey.admin<Budget>('budgets.show', { organization: 'default', budget: 'daily' })
    const hours = { 'Pacific/Kiritimati': 10, 'Pacific/Pago_Pago': 11 }[time_zone ?? ''] ?? 0
    expect(new Date(String(spent?.[0]?.resets_at)).getUTCHours()).toBe(hours)
  }
  const update = latchkey.admin('organizations.update', { organization: 'default', time_zone: 'Mars/Olympus' })
  await expect(update).rejects.toThrow('time zone')
})

describe('a budget is refused', () => {
  const rows: [why: string, fields: object, message: string][] = [
    ['without a window', { windows: [] }, 'windows'],
    ['with a window without an amount', { windows: [{ per: 'day' }] }, 'add usd, tokens or requests'],
    [
      'with a period twice',
      {
        windows: [
          { per: 'day', usd: 1 },
          { per: 'day', usd: 2 },
        ],
      },
      'without a second day',
    ],
    ['with an unknown period', { windows: [{ per: 'year', usd: 1 }] }, 'per'],
    ['with a negative amount', { windows: [{ per: 'day', usd: -1 }] }, 'usd'],
    ['with a fraction of a token', { windows: [{ per: 'day', tokens: 1.5 }] }, 'tokens'],
    [
      'for each of what nobody knows',
      { each: 'color', windows: month(1) },
      'key, policy, attribution, session or label:NAME',
    ],
    ['with overrides of nothing', { windows: month(1), overrides: { a: month(2) } }, 'set each'],
    [
      'with an override of another period',
      { each: 'key', windows: month(1), overrides: { a: [{ per: 'day', usd: 1 }] } },
      'add it to windows',
    ],
    ['for an unknown key', { applies_to: { keys: ['nobody'] }, windows: month(1) }, 'There is no key'],
    [
      'for an unknown workspace',
      { applies_to: { workspaces: ['nowhere'] }, windows: month(1) },
      'There is no workspace',
    ],
    [
      'for each policy of a key without one',
      { each: 'policy', applies_to: { keys: ['direct'] }, windows: month(1) },
      'No policy targets',
    ],
    [
      'for each attribution of a key without one',
      { each: 'attribution', applies_to: { keys: ['direct'] }, windows: month(1) },
      'No policy targets',
    ],
    ['with a name that is taken', { name: 'taken', windows: month(1) }, 'already exists'],
  ]
  beforeAll(async () => {
    await latchkey.admin('keys.create', { organization: 'default', name: 'direct' })
  })
  test.each(rows)('%s', async (_why, fields, message) => {
    await create('taken', { organization: 'default', windows: month(100) })
    await expect(create('bad', { organization: 'default', ...fields })).rejects.toThrow(message)
    const { data } = await latchkey.admin<{ data: Row[] }>('budgets.list', { organization: 'default' })
    expect(data).toHaveLength(1)
  })

  test('as the 51st of a key', async () => {
    const budgets = Array.from({ length: 50 }, (_, n) => ({ name: `n${n}`, windows: month(1_000), mode: 'warn' }))
    await apply(budgets)
    await expect(create('n50', { organization: 'default', windows: month(1) })).rejects.toThrow('at most 50')
    await create('elsewhere', { organization: 'elsewhere', windows: month(1_000) })
    await latchkey.admin('budgets.delete', { budget: 'elsewhere', organization: 'elsewhere' })
  })
})

test('a key has at most 50 budgets, also after its labels change, or when it is made by hand or by a document', async () => {
  const budgets = Array.from({ length: 51 }, (_, index) => ({
    ...{ name: `n${index}`, windows: month(1_000), mode: 'warn' },
    applies_to: { labels: { [index % 2 === 0 ? 'one' : 'other']: 'x' } },
  }))
  const [both, document] = [
    { one: 'x', other: 'x' },
    { latchkey: 1, organization: 'default' },
  ]
  await apply(budgets)
  const message = 'would have 51 budgets; a key has at most 50: narrow applies_to, or delete budgets'
  const { id: key } = await createKey({ organization: 'default', labels: { one: 'x' } })
  const relabel = () => latchkey.admin('keys.update', { organization: 'default', key, labels: both })
  await expect(relabel()).rejects.toThrow(message)
  await expect(createKey({ organization: 'default', labels: both })).rejects.toThrow(message)
  const keys = [{ name: 'crowded', labels: both }]
  await expect(latchkey.admin('config.plan', { document: { ...document, keys } })).rejects.toThrow(message)
  const switchOne = (enabled: boolean) =>
    latchkey.admin('budgets.update', { organization: 'default', budget: 'n0', enabled })
  await switchOne(false)
  expect(await relabel()).toMatchObject({ labels: both })
  await expect(switchOne(true)).rejects.toThrow(message)
})

test('a document is refused that would give a key more than 50 budgets, of which it may delete others', async () => {
  const budgetsOf = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, index) => ({ name: `${prefix}${index}`, mode: 'warn', windows: month(1_000) }))
  await expect(apply(budgetsOf('a', 51))).rejects.toThrow('would have 51 budgets')
  await apply(budgetsOf('a', 50))
  const { counts } = await apply(budgetsOf('b', 50))
  expect(counts).toMatchObject({ create: 50, delete: 50 })
})

test('a day that allows more than its month is a warning', async () => {
  const windows = [
    { per: 'day', usd: 5 },
    { per: 'month', usd: 1 },
  ]
  const { warnings } = await create('odd', { organization: 'default', windows })
  expect(warnings).toEqual(['The day allows more usd than the month, so it is never reached'] as never)
})

test('a budget of a document is topped up without a warning, also one that is locked: the document leaves top-ups alone', async () => {
  const document = { latchkey: 1, organization: 'default', owner: 'locks', owner_locks: true }
  const budgets = [{ name: 'topped', windows: month(1) }]
  await latchkey.admin('config.apply', { document: { ...document, budgets } })
  const until = new Date(Date.now() + 3_600_000).toISOString()
  const topUp = { organization: 'default', budget: 'topped', usd: 1, until, because: 'release' }
  expect(await latchkey.admin<Row>('budgets.top_up', topUp)).not.toHaveProperty('warnings')
  await latchkey.admin('config.apply', { document: { ...document, budgets } })
  expect(await show('topped')).toMatchObject({ top_ups: [{ usd: 1 }] })
  await latchkey.admin('config.apply', { document: { ...document, owner_locks: false, budgets: [] }, prune: true })
})

test('a document with a day that allows more than its month warns as a command does, while that is new', async () => {
  const odd = { name: 'odd', windows: [{ per: 'day', usd: 5 }, ...month(1)] }
  const document = { latchkey: 1, organization: 'default', budgets: [odd, { name: 'even', windows: month(1) }] }
  const warnings = ['budgets "odd": The day allows more usd than the month, so it is never reached']
  expect((await latchkey.admin<Row>('config.plan', { document })).warnings).toEqual(warnings)
  expect((await latchkey.admin<Row>('config.apply', { document })).warnings).toEqual(warnings)
  expect(await latchkey.admin<Row>('config.plan', { document })).not.toHaveProperty('warnings')
})
