// Prices in bulk: how many statements an import takes does not grow with what the list holds, and every price leaves its record.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Row, startTestServer, type TestServer } from '../../support/latchkey.ts'
import { countStatements } from '../../support/statements.ts'
import { until } from '../../support/until.ts'

let latchkey: TestServer
beforeAll(async () => {
  latchkey = await startTestServer()
})
afterAll(() => latchkey.stop())

const pricesOf = (name: string, count: number, prompt = 1) =>
  Array.from({ length: count }, (_, index) => ({ model: `${name}/${index}`, prompt, completion: 2 }))

test('an import of a hundred prices takes as many statements as an import of one', async () => {
  const { database } = latchkey.server.context
  const counted = countStatements(database)
  const countOf = async (prices: object[]) => {
    counted.reset()
    await latchkey.admin('prices.set', { prices })
    return counted.count()
  }
  // What a start leaves to do is done by then.
  await countOf(pricesOf('first', 1))
  const one = await countOf(pricesOf('one', 1))
  expect(await countOf(pricesOf('hundred', 100))).toBe(one)
  expect(one).toBeLessThan(10)
  counted.stop()
})

test('every price of an import is in force and has its record, with the price before', async () => {
  const { context } = latchkey.server
  await latchkey.admin('prices.set', { prices: pricesOf('many', 2) })
  await latchkey.admin('prices.set', { prices: pricesOf('many', 3, 7) })
  expect(context.registry.priceOf('many/2')).toMatchObject({ promptNanodollars: 7_000_000_000 })
  const { data } = await latchkey.admin<{ data: object[] }>('audit.changes', { limit: 3 })
  const row = (prompt: number) => expect.objectContaining({ prompt_dollars: prompt, cached_dollars: null })
  expect(data).toMatchObject(
    [2, 1, 0].map((index) => ({
      kind: 'price',
      operation: 'prices.set',
      target_id: `many/${index}`,
      before: index === 2 ? null : row(1),
      after: row(7),
    })),
  )
})

test('of more prices than are read at once, all are listed in order, in force and recorded with the price before', async () => {
  const prices = pricesOf('big', 1_201).toReversed()
  await latchkey.admin('prices.set', { prices })
  await latchkey.admin('prices.set', { prices: prices.map((price) => ({ ...price, prompt: 9 })) })
  const { data } = await latchkey.admin<{ data: { model: string }[] }>('prices.list')
  const listed = data.map(({ model }) => model).filter((model) => model.startsWith('big/'))
  expect(listed).toEqual(prices.map(({ model }) => model).toSorted())
  for (const { model } of prices)
    expect(latchkey.server.context.registry.priceOf(model)).toMatchObject({ promptNanodollars: 9_000_000_000 })
  const changes = await latchkey.admin<{ data: { before: object | null }[] }>('audit.changes', { limit: 1_201 })
  for (const { before } of changes.data) expect(before).toMatchObject({ prompt_dollars: 1 })
})

test('of a model that is in the list twice the last price counts, and its record says so', async () => {
  await latchkey.admin('prices.set', { prices: [...pricesOf('twice', 1, 1), ...pricesOf('twice', 1, 3)] })
  expect(latchkey.server.context.registry.priceOf('twice/0')).toMatchObject({ promptNanodollars: 3_000_000_000 })
  const { data } = await latchkey.admin<{ data: object[] }>('audit.changes', { limit: 1 })
  expect(data).toMatchObject([{ target_id: 'twice/0', before: null, after: { prompt_dollars: 3 } }])
})

test('a price that somebody else has changed is replaced only by who has seen it, one at a time', async () => {
  const { key } = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'boss', kind: 'management' })
  const set = async (prompt: number, etag?: string, more: object[] = []) => {
    const response = await fetch(`${latchkey.server.baseUrl}/installation/prices`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(etag === undefined ? {} : { 'if-match': etag }),
      },
      body: JSON.stringify({ prices: [{ model: 'versioned', prompt, completion: 1 }, ...more] }),
    })
    return {
      status: response.status,
      body: (await response.json()) as { data: { updated_at: string; prompt: number }[] },
    }
  }
  const etagOf = ({ body }: Awaited<ReturnType<typeof set>>) => `"${body.data[0]?.updated_at}"`
  const first = await set(1)
  const second = await until('a later version', async () => {
    const made = await set(2, '*')
    return etagOf(made) === etagOf(first) ? undefined : made
  })
  const refused = await set(3, etagOf(first))
  expect(refused).toMatchObject({ status: 412, body: { data: { model: 'versioned', prompt: 2 } } })
  expect((await set(3, etagOf(second))).status).toBe(200)
  expect((await set(4, '*', [{ model: 'another', prompt: 1, completion: 1 }])).status).toBe(400)
  await latchkey.admin('prices.remove', { model: 'versioned' })
  expect((await set(5, etagOf(second))).status).toBe(412)
  // Nothing matches where there is no price (RFC 9110 §13.1.1).
  expect((await set(5, '*')).status).toBe(412)
  expect((await set(5)).status).toBe(200)
})
