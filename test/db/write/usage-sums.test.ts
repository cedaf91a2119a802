// The totals of the ledger: each row counts once, in the total of its own key, policy, attribution, model and time, however many are added at
// a time.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Client, createClient } from '@libsql/client'
import fc from 'fast-check'
import { createOrm } from '../../../db/file/open.ts'
import { readUnknownCosts } from '../../../db/read/attention.ts'
import { createUsageSummer, usageSums } from '../../../db/write/usage-sums.ts'

const hour = 3_600_000
const most = Number.MAX_SAFE_INTEGER
const columns =
  'at, key_id, policy_id, attribution, model, prompt_tokens, completion_tokens, total_tokens, cost_nanodollars, status'

let client: Client
beforeAll(async () => {
  client = createClient({ url: ':memory:' })
  await client.executeMultiple(`
    create table usage (id integer primary key, at integer, key_id text, policy_id text, attribution text, model text, prompt_tokens integer,
      completion_tokens integer, total_tokens integer, cost_nanodollars integer, status integer, endpoint text default '/chat') strict;
    create table day_totals (key_id, day, requests, prompt_tokens, completion_tokens, total_tokens, cost_nanodollars, requests_without_cost, primary key (key_id, day));
    create table hour_totals (hour, key_id, policy_id, attribution, model, requests, total_tokens, cost_nanodollars, requests_without_cost,
      prompt_tokens, completion_tokens,
      primary key (hour, key_id, policy_id, attribution, model));
    create table usage_summed (id integer primary key, usage_id integer not null);`)
})
afterAll(() => client.close())

const text = fc.constantFrom('', 'a', 'b', 'ab', 'a b', ' ', '1')
const row = fc.tuple(
  fc.constantFrom(0, 1, hour, 24 * hour),
  fc.constantFrom('key_1', 'key_2'),
  fc.constantFrom(null, 'policy_1'),
  fc.option(text),
  fc.option(text),
  fc.option(fc.nat(9)),
  fc.option(fc.nat(9)),
  fc.option(fc.constantFrom(1, 20, most)),
  fc.option(fc.constantFrom(1, 300, most)),
  fc.constantFrom(200, 399, 400, 500),
)
type Row = typeof row extends fc.Arbitrary<infer Each> ? Each : never

const amount = (values: (number | null)[]) =>
  Math.min(
    values.reduce<number>((sum, value) => sum + (value ?? 0), 0),
    most,
  )

/** The values of each total, by names that no two totals share. */
function expected(rows: Row[], names: (row: Row) => unknown[], sums: (some: Row[]) => number[]): unknown[][] {
  const groups = Map.groupBy(rows, (each) => JSON.stringify(names(each)))
  return [...groups].map(([name, some]) => [...(JSON.parse(name) as unknown[]), some.length, ...sums(some)])
}

async function tableOf(name: string): Promise<unknown[][]> {
  const { rows } = await client.execute(`select * from ${name}`)
  return rows.map((each) => Object.values(each))
}

const inOrder = (totals: unknown[][]) => totals.map((total) => JSON.stringify(total)).toSorted()

test('totals are those of the rows, and rows that differ in one name have two', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(row, { maxLength: 6 }), { minLength: 1, maxLength: 4 }), async (parts) => {
      for (const name of ['usage', 'day_totals', 'hour_totals', 'usage_summed'])
        await client.execute(`delete from ${name}`)
      for (const part of parts) {
        const inserts = part.map((args) => ({
          sql: `insert into usage (${columns}) values (?,?,?,?,?,?,?,?,?,?)`,
          args,
        }))
        await client.batch([...inserts, ...usageSums], 'write')
      }
      const rows = parts.flat()
      const unknown = (some: Row[]) => some.filter((each) => each[8] === null && each[9] < 400).length
      const sums = (some: Row[], ...of: number[]) => of.map((index) => amount(some.map((each) => Number(each[index]))))
      expect(inOrder(await tableOf('day_totals'))).toEqual(
        inOrder(
          expected(
            rows,
            ([at, key]) => [key, Math.floor(at / hour / 24)],
            (some) => [...sums(some, 5, 6, 7, 8), unknown(some)],
          ),
        ),
      )
      expect(inOrder(await tableOf('hour_totals'))).toEqual(
        inOrder(
          expected(
            rows,
            ([at, key, policy, attribution, model]) => [
              ...[Math.floor(at / hour), key, policy ?? '', attribution ?? '', model ?? ''],
            ],
            (some) => [...sums(some, 7, 8), unknown(some), ...sums(some, 5, 6)],
          ),
        ),
      )
    }),
    { numRuns: 60 },
  )
})

test('the first commit of a process adds what earlier ones left, and after it each 256th row what came since', () => {
  const sumsFor = createUsageSummer()
  const areAdded = [1, 1, 254, 1, 300].map((rows) => sumsFor(rows).length > 0)
  expect(areAdded).toEqual([true, false, false, true, true])
})

test('a request of unknown cost is reported once, whether the totals include it or not yet', async () => {
  for (const name of ['usage', 'day_totals', 'hour_totals', 'usage_summed']) await client.execute(`delete from ${name}`)
  const insert = (at: number) => ({
    sql: "insert into usage (at, key_id, status) values (?, 'key_1', 200)",
    args: [at],
  })
  await client.batch([insert(0), insert(5 * hour), ...usageSums], 'write')
  await client.execute(insert(5 * hour))
  const found = (since: number) => readUnknownCosts(createOrm(client), since)
  expect(await found(0)).toEqual([{ keyId: 'key_1', policyId: '', model: '', requests: 3 }])
  expect(await found(5)).toMatchObject([{ requests: 2 }])
})
