// Prices that change and clocks that jump, through the service: a request costs what the price was when it began, reports say which one that
// was, and what budgets have counted stays the sum of the ledger.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createChance } from '../support/chance.ts'
import { onFile } from '../support/file-only.ts'
import { question } from '../support/inference.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { until } from '../support/until.ts'

const hour = 3_600_000
const start = Date.UTC(2026, 11, 30, 12)
const chance = createChance('clock')
let now = start
let latchkey: Federation
let key: Row & { key: string }
beforeAll(async () => {
  latchkey = await startFederation({ dependencies: { now: () => now } })
  key = await latchkey.admin('keys.create', { name: 'caller', attribute_from_header: 'x-user' })
})
afterAll(() => latchkey.stop())

const model = question.model
const setPrice = (fields: object) => latchkey.admin('prices.set', { prices: [{ model, ...fields }] })
async function ask(user = 'ada', more: object = {}): Promise<number> {
  const headers = { authorization: `Bearer ${key.key}`, 'content-type': 'application/json', 'x-user': user }
  const init = { method: 'POST', headers, body: JSON.stringify({ ...question, ...more }) }
  const response = await fetch(`${latchkey.server.baseUrl}/chat/completions`, init)
  await response.arrayBuffer()
  return response.status
}
type Request = Row & { cost: number; price: string; prompt_tokens: number; completion_tokens: number }
const latest = async () => {
  const [row] = (await latchkey.admin<{ data: Request[] }>('usage.requests', { limit: 1 })).data
  return row
}

test('a later price is used from its time on, and each request says which price it was', async () => {
  await setPrice({ prompt: 1, completion: 0, cached: 5 })
  await setPrice({ prompt: 3, completion: 0, from: '2027-01-01T00:00:00Z' })
  const cost = async () => {
    expect(await ask()).toBe(200)
    const row = await latest()
    return [row?.price, ((row?.cost ?? 0) * 1e6) / (row?.prompt_tokens ?? 1)]
  }
  now = Date.UTC(2027, 0, 1) - 1
  expect(await cost()).toEqual([model, 1])
  now += 1
  expect(await cost()).toEqual([`${model} from 2027-01-01T00:00:00.000Z`, 3])
  await setPrice({ prompt: 7, completion: 0, from: '2027-02-01T00:00:00Z' })
  // What is set now wins over what has taken effect, and what comes later stays.
  await setPrice({ prompt: 5, completion: 0 })
  expect(await cost()).toEqual([model, 5])
  now = Date.UTC(2027, 1, 1)
  expect(await cost()).toEqual([`${model} from 2027-02-01T00:00:00.000Z`, 7])
})

test('a request without max_tokens holds what its model can make at most, and one with it holds that', async () => {
  await latchkey.admin('prices.set', { prices: [{ model, prompt: 0, completion: 1_000_000, max_output_tokens: 2 }] })
  const held: number[] = []
  const { budgets } = latchkey.server.context
  const { of } = budgets.estimates
  budgets.estimates.of = (...given) => {
    const estimate = of(...given)
    held.push(estimate.nanodollars / 1e9)
    return estimate
  }
  await latchkey.admin('budgets.create', { name: 'worst', windows: [{ per: 'day', usd: 1_000 }], hold: 'worst' })
  expect([await ask(), await ask('ada', { max_tokens: 1 })]).toEqual([200, 200])
  expect(held).toEqual([2, 1])
  budgets.estimates.of = of
  await latchkey.admin('budgets.delete', { budget: 'worst' })
  await latchkey.admin('prices.remove', { model })
})

type Spent = { per: string; unit: string; spent: number; resets_at: string | null }

test('whatever a clock does, what budgets have counted is the sum of the ledger', async () => {
  await setPrice({ prompt: 1, completion: 2 })
  const windows = ['hour', 'day', 'month', 'lifetime'].map((per) => ({ per, requests: 1_000_000 }))
  await latchkey.admin('budgets.create', { name: 'users', each: 'attribution', windows })
  const jumps = [0, 1, hour, -hour, 26 * hour, -26 * hour, 40 * 24 * hour, -3 * hour]
  for (let step = 0; step < 40; step++) {
    now += jumps[Math.floor(chance() * jumps.length)] ?? 0
    expect(await ask(chance() < 0.5 ? 'ada' : 'grace')).toBe(200)
    // Sums that were dropped are built again at most once a minute.
    now += 61_000
    await ask('other')
    await until(`the sums of step ${step}`, async () => (await findDifferences()).length === 0, findDifferences)
  }
})

onFile('counts of this process').test('a request that is counted and not in the ledger is a difference', async () => {
  latchkey.server.context.budgets.add(latchkey.server.context.registry.keys.get(key.id) as never, {
    ...{ policyId: null, attribution: 'ada', session: null, model: null, at: now },
    amounts: { requests: 1, tokens: 0, nanodollars: 0, requestsWithoutCost: 0 },
  })
  expect((await findDifferences()).length).toBeGreaterThan(0)
})

async function findDifferences(): Promise<unknown[]> {
  const { values = [] } = await latchkey.admin<{ values?: { value: string; spent: Spent[] }[] }>('budgets.show', {
    budget: 'users',
  })
  const found: unknown[] = []
  for (const { value, spent } of values)
    for (const { per, spent: counted } of spent) {
      const ledger = await inLedger(value, per)
      if (counted !== ledger) found.push({ value, per, counted, ledger })
    }
  return found
}

const startsOf: Record<string, (date: Date) => number> = {
  hour: (date) => date.setUTCMinutes(0, 0, 0),
  day: (date) => date.setUTCHours(0, 0, 0, 0),
  month: (date) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth()),
  lifetime: () => 0,
}
const endsOf: Record<string, (date: Date) => number> = {
  hour: (date) => date.setUTCMinutes(60, 0, 0),
  day: (date) => date.setUTCHours(24, 0, 0, 0),
  month: (date) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1),
  lifetime: () => Number.MAX_SAFE_INTEGER,
}

async function inLedger(value: string, per: string): Promise<number> {
  const [from, until] = [startsOf[per]?.(new Date(now)) ?? 0, endsOf[per]?.(new Date(now)) ?? 0]
  const { rows } = await latchkey.server.context.database.client.execute({
    sql: 'select count(*) as count from usage where attribution = ? and at >= ? and at < ?',
    args: [value, from, until],
  })
  return Number(rows[0]?.count)
}
