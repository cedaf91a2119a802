// Simulations of budgets: the rules agree with a replay request by request, and the operation with what a budget then does.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Budget as BudgetRow, BudgetWindow } from '../../db/schema/budget-schema.ts'
import { type Amounts, compileBudget } from '../../src/spending/budget.ts'
import { createSimulation } from '../../src/spending/simulation.ts'
import { answer, type Inference, question, startInference } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'

const hour = 3_600_000

const rowOf = (windows: BudgetWindow[], overrides: BudgetRow['overrides'] = null): BudgetRow => ({
  ...{ id: 'b', organizationId: 'o', name: 'b', enabled: true, appliesTo: null, each: 'attribution', overrides },
  ...{
    windows,
    topUps: null,
    mode: 'block',
    unpriced: 'count',
    hold: 'expected',
    alerts: [],
    concurrentRequests: null,
  },
  ...{ createdAt: 1, updatedAt: 1, deletedAt: null, managedBy: null },
})

type PastRequest = { counter: string; at: number; used: Amounts }

/** Takes hours as the operation does; those that run out request by request. */
function simulate(row: BudgetRow, requests: readonly PastRequest[]) {
  const simulation = createSimulation(compileBudget(row, null))
  const hours = Map.groupBy(requests, ({ at }) => Math.floor(at / hour))
  for (const [number, ofHour] of [...hours].toSorted(([one], [other]) => one - other)) {
    const sums = new Map<string, Amounts>()
    for (const { counter, used } of ofHour) {
      const sum = sums.get(counter) ?? { requests: 0, tokens: 0, nanodollars: 0 }
      sums.set(counter, sum)
      for (const measure of ['requests', 'tokens', 'nanodollars'] as const) sum[measure] += used[measure]
    }
    const runningOut = simulation.addHour(number * hour, sums)
    for (const { counter, at, used } of ofHour) if (runningOut.has(counter)) simulation.addRequest(counter, at, used)
  }
  return simulation.counters()
}

/** The rule that requests obey: one is refused once a window is spent. */
function replay(row: BudgetRow, requests: readonly PastRequest[]): Map<string, number> {
  const budget = compileBudget(row, null)
  const used = new Map<string, Amounts>()
  const refused = new Map<string, number>()
  for (const { counter, at, used: own } of requests) {
    const names = budget.windows.map(({ per, periodAt }) => `${counter} ${per} ${periodAt(at).start}`)
    const sums = names.map((name) => used.get(name) ?? { requests: 0, tokens: 0, nanodollars: 0 })
    const isSpent = sums.some((sum, index) => {
      const limit = budget.limitOf(counter, index, at)
      return sum.requests >= limit.requests || sum.tokens >= limit.tokens || sum.nanodollars >= limit.nanodollars
    })
    if (isSpent) refused.set(counter, (refused.get(counter) ?? 0) + 1)
    else
      for (const [index, name] of names.entries()) {
        const { requests, tokens, nanodollars } = sums[index] ?? own
        const next = {
          ...{ requests: requests + 1, tokens: tokens + own.tokens },
          nanodollars: nanodollars + own.nanodollars,
        }
        used.set(name, next)
      }
  }
  return refused
}

const amounts = fc.record({ requests: fc.nat(9), tokens: fc.nat(25) }, { requiredKeys: [] })
const windows = fc
  .record({ hour: amounts, day: amounts, month: amounts }, { requiredKeys: [] })
  .map((given) =>
    Object.entries(given).flatMap(([per, own]) =>
      Object.keys(own).length === 0 ? [] : [{ per, ...own } as BudgetWindow],
    ),
  )
  .filter((given) => given.length > 0)
const past = fc
  .array(fc.record({ counter: fc.constantFrom('a', 'b', ''), minutes: fc.nat(3 * 24 * 60), tokens: fc.nat(9) }), {
    maxLength: 120,
  })
  .map((list) =>
    list
      .map(({ counter, minutes, tokens }) => ({
        counter,
        at: Date.UTC(2026, 10, 29) + minutes * 60_000,
        used: { requests: 1, tokens, nanodollars: 0 },
      }))
      .toSorted((one, other) => one.at - other.at),
  )

test('hours give the same refusals as single requests, whatever windows, months and overrides', () => {
  fc.assert(
    fc.property(windows, past, fc.option(windows), (own, requests, override) => {
      const row = rowOf(own, override === null ? null : { a: override })
      const expected = replay(row, requests)
      for (const { counter, refused, requests: all } of simulate(row, requests)) {
        expect([counter, refused]).toEqual([counter, expected.get(counter) ?? 0])
        expect(all).toBe(requests.filter((each) => each.counter === counter).length)
      }
    }),
    { numRuns: 150 },
  )
})

test('a request that adds nothing is refused in the hour in which the one before it spent all', () => {
  const at = Date.UTC(2026, 10, 29)
  const used = (tokens: number) => ({ requests: 1, tokens, nanodollars: 0 })
  const requests = [
    { counter: 'b', at, used: used(4) },
    { counter: 'b', at: at + 60_000, used: used(0) },
  ]
  const row = rowOf([{ per: 'hour', tokens: 4 }])
  expect(simulate(row, requests)).toMatchObject([{ requests: 2, refused: 1 }])
  expect(replay(row, requests)).toEqual(new Map([['b', 1]]))
})

test('an hour whose requests are gone is estimated by the part that fits', () => {
  const simulation = createSimulation(compileBudget(rowOf([{ per: 'day', tokens: 50 }]), null))
  const sum = { requests: 10, tokens: 100, nanodollars: 0 }
  expect([...simulation.addHour(0, new Map([['a', sum]]))]).toEqual(['a'])
  simulation.addEstimate('a', 0, sum)
  expect(simulation.counters()).toMatchObject([{ counter: 'a', requests: 10, refused: 5, firstRefusedAt: 0, share: 1 }])
})

type Simulated = {
  requests: number
  refused: number
  first_refused_at: string | null
  values_refused: number
  value_count: number
  estimated: boolean
  data: { value: string; name?: string; requests: number; refused: number; share: number }[]
}
type Key = Row & { key: string; name: string }

describe('budgets.simulate', () => {
  let latchkey: Inference
  let keys: Key[]
  beforeAll(async () => {
    latchkey = await startInference()
    latchkey.upstream.answer.current = () => Response.json({ ...answer, usage: { ...answer.usage, cost: 0.5 } })
    keys = []
    for (const [name, labels] of [
      ['one', { team: 'red' }],
      ['two', { team: 'blue' }],
    ] as const)
      keys.push(await latchkey.admin<Key>('keys.create', { name, labels }))
    for (const [index, count] of [6, 2].entries())
      for (let asked = 0; asked < count; asked++) {
        const headers = { authorization: `Bearer ${keys[index]?.key}` }
        await (await latchkey.complete(question, headers)).arrayBuffer()
      }
  })
  afterAll(() => latchkey.stop())
  beforeEach(async () => {
    const { data } = await latchkey.admin<{ data: Row[] }>('budgets.list')
    for (const { id } of data) await latchkey.admin('budgets.delete', { budget: id })
  })
  const simulated = (input: object) => latchkey.admin<Simulated>('budgets.simulate', { ...input })

  test('says how many requests of which keys a budget would have refused, and since when', async () => {
    const found = await simulated({ each: 'key', windows: [{ per: 'month', usd: 2 }] })
    expect(found).toMatchObject({ requests: 8, refused: 2, values_refused: 1, value_count: 2, estimated: false })
    expect(found.data.map(({ name, requests, refused, share }) => [name, requests, refused, share])).toEqual([
      ['one', 6, 2, 1],
      ['two', 2, 0, 0.5],
    ])
    const since = Date.parse(found.first_refused_at ?? '')
    expect(Math.abs(Date.now() - since)).toBeLessThan(60 * 60_000)
  })

  test('reads a saved budget, replaces what is sent beside it, and changes nothing', async () => {
    const windows = [{ per: 'day', requests: 100 }]
    await latchkey.admin('budgets.create', { name: 'saved', applies_to: { labels: { team: 'red' } }, windows })
    expect(await simulated({ budget: 'saved' })).toMatchObject({ requests: 6, refused: 0 })
    const tighter = { budget: 'saved', windows: [{ per: 'day', requests: 1 }] }
    expect(await simulated(tighter)).toMatchObject({ requests: 6, refused: 5 })
    expect((await latchkey.admin<Row>('budgets.show', { budget: 'saved' })).windows).toEqual(windows)
  })

  test('counts the models and labels that the budget is for, and nothing else', async () => {
    const windows = [{ per: 'hour', requests: 0 }]
    expect(await simulated({ applies_to: { models: ['other'] }, windows })).toMatchObject({ requests: 0, refused: 0 })
    expect(await simulated({ applies_to: { keys: ['two'] }, windows })).toMatchObject({ requests: 2, refused: 2 })
  })

  test.each([
    [{}, 'windows'],
    [{ windows: [{ per: 'day' }] }, 'add usd, tokens or requests'],
    [{ windows: [{ per: 'day', usd: 1 }], since: '2020-01-01T00:00:00Z' }, 'at most 92 days ago'],
    [{ budget: 'none such' }, 'none such'],
    [{ each: 'session', windows: [{ per: 'day', usd: 1 }] }, 'cannot be simulated'],
  ])('refuses %p', async (input, message) => {
    await expect(simulated(input)).rejects.toThrow(message)
  })
})
