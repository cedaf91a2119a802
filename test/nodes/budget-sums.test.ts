// The sums of budgets equal the ledger, whatever is committed while they are built, and whichever times requests have.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { SQL } from 'drizzle-orm'
import fc from 'fast-check'
import type { Budget as BudgetRow } from '../../db/schema/budget-schema.ts'
import type { UsageRow } from '../../db/schema/record-schema.ts'
import { isCostUnknown } from '../../db/schema/unknown-cost.ts'
import { insertApiKey } from '../../db/tables/api-keys.ts'
import { insertBudget } from '../../db/tables/budgets.ts'
import { addUsageSums } from '../../db/write/usage-sums.ts'
import { createWriter, type Writer } from '../../db/write/write.ts'
import { createBudgetBuilder } from '../../src/nodes/budget-sums.ts'
import { loadRegistry, type Registry } from '../../src/registry/registry.ts'
import { type Budgets, createBudgets } from '../../src/spending/budgets.ts'
import {
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../support/rows.ts'

const now = Date.UTC(2026, 10, 26, 12)
const hour = 3_600_000
const rows = organizationRows('own')
let own: TestDatabase
let writer: Writer
let registry: Registry

const budgetOf = (name: string, more: Partial<BudgetRow>): BudgetRow => ({
  ...{
    id: name,
    organizationId: 'own',
    name,
    enabled: true,
    appliesTo: null,
    each: null,
    overrides: null,
    alerts: [],
    topUps: null,
  },
  ...{
    windows: [
      { per: 'month', usd: 1 },
      { per: 'hour', requests: 1 },
      { per: 'lifetime', tokens: 1 },
    ],
    mode: 'block',
  },
  ...{
    unpriced: 'count',
    createdAt: 1,
    updatedAt: 1,
    deletedAt: null,
    managedBy: null,
    hold: 'off',
    concurrentRequests: null,
    ...more,
  },
})
const deletedKey = { ...rows.key, id: 'own-deleted', name: 'deleted', hash: 'd'.padEnd(64, '0'), deletedAt: 2 }

beforeAll(async () => {
  own = await createDatabase()
  const { orm } = own.database
  writer = createWriter(own.database, () => {}, undefined, own.following)
  await writer.write([...insertOrganizationRows(own.database, rows), insertApiKey(orm, deletedKey)])
  await writer.write([
    insertBudget(orm, budgetOf('all', {})),
    insertBudget(orm, budgetOf('attributions', { each: 'attribution', appliesTo: { models: ['a*'] } })),
    insertBudget(orm, budgetOf('sessions', { each: 'session' })),
    insertBudget(orm, budgetOf('policies', { each: 'policy', appliesTo: { policies: ['own-policy'] } })),
  ])
  registry = await loadRegistry(orm)
})
afterAll(async () => {
  await writer.close()
  await own.close()
})

/** What each counter should have, from the rows of the ledger. */
async function ledgerSums(budget: string): Promise<Record<string, number[]>> {
  const filters = {
    all: 'true',
    sessions: 'true',
    attributions: "model like 'a%'",
    policies: "policy_id = 'own-policy'",
  } as const
  const counters = {
    all: "''",
    attributions: "coalesce(attribution, '')",
    policies: 'policy_id',
    sessions: "coalesce(session_id, '')",
  } as const
  const name = budget as keyof typeof filters
  const { rows: found } = await own.database.client.execute(`
    select ${counters[name]} as counter, total(cost_nanodollars) filter (where at >= ${Date.UTC(2026, 10)} and at < ${Date.UTC(2026, 11)}) as month,
      count(*) filter (where at / ${hour} = ${now / hour}) as hour, total(total_tokens) as lifetime,
      count(*) filter (where cost_nanodollars is null and status = 200 and endpoint <> '/tokenize') as unknown
    from usage where ${filters[name]} group by 1`)
  return Object.fromEntries(
    found.map((row) => [String(row.counter), [row.month, row.hour, row.lifetime, row.unknown].map(Number)]),
  )
}

function countedSums(budgets: Budgets, name: string): Record<string, number[]> {
  const budget = budgets.all().find(({ row }) => row.id === name)
  if (budget === undefined) return {}
  const sums = budgets.sums()
  return Object.fromEntries(
    [...sums.countersOf(budget)].map((counter) => {
      const used = (window: number) => sums.usedOf(budget, counter, window, now)
      return [counter, [used(0).nanodollars, used(1).requests, used(2).tokens, used(2).requestsWithoutCost]]
    }),
  )
}

const request = fc.record({
  // Before this month, in it, in this hour, and later than now.
  at: fc.constantFrom(now - 60 * 24 * hour, now - 20 * hour, now, now + 1, now + 3 * hour),
  keyId: fc.constantFrom('own-key', 'own-deleted'),
  policyId: fc.constantFrom('own-policy', null),
  attribution: fc.constantFrom('one', 'zwei ö\n', '', null),
  sessionId: fc.constantFrom('first', 'second', null),
  model: fc.constantFrom('a1', 'b1', null),
  totalTokens: fc.constantFrom(3, null),
  costNanodollars: fc.constantFrom(7, null),
  status: fc.constantFrom(200, 400, 502),
  endpoint: fc.constantFrom('/chat/completions', '/tokenize'),
})
/** `sum`: the totals get what they lack, as with each 256th row. */
type Step = { kind: 'build' | 'turn' | 'sum' | 'request' } & Partial<UsageRow>
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: request.map((each) => ({ kind: 'request' as const, ...each })) },
  { weight: 2, arbitrary: fc.constant({ kind: 'build' as const }) },
  { weight: 6, arbitrary: fc.constant({ kind: 'turn' as const }) },
  { weight: 3, arbitrary: fc.constant({ kind: 'sum' as const }) },
)

/** Runs the steps as a server does: a row counts once it is committed. */
async function run(steps: Step[], add: (budgets: Budgets, row: UsageRow) => void): Promise<Budgets> {
  const budgets = createBudgets()
  const { build } = createBudgetBuilder({ orm: own.database.orm, registry, budgets, now: () => now, hoursAtOnce: 2 })
  await build()
  const running: Promise<void>[] = []
  for (const { kind, ...fields } of steps)
    if (kind === 'build') running.push(build(writer.holdLedger))
    else if (kind === 'sum') running.push(writer.write(addUsageSums))
    else if (kind === 'turn') await new Promise((resolve) => setImmediate(resolve))
    else {
      const row: UsageRow = { ...usageRow(crypto.randomUUID(), rows), ...fields }
      running.push(writer.appendUsage(row).then(() => add(budgets, row)))
    }
  await Promise.all(running)
  return budgets
}

function addRow(budgets: Budgets, row: UsageRow): void {
  const { keyId, policyId, attribution, sessionId: session, model, at, totalTokens, costNanodollars } = row
  const key = keyId === deletedKey.id ? deletedKey : rows.key
  const amounts = {
    requests: 1,
    tokens: totalTokens ?? 0,
    nanodollars: costNanodollars ?? 0,
    requestsWithoutCost: Number(isCostUnknown(row)),
  }
  budgets.add(key, { policyId, attribution: attribution || null, session, model, at, amounts })
}

test('each row counts once in every budget, also when sums are built in between', async () => {
  const steps = fc.array(step, { minLength: 5, maxLength: 80 })
  await fc.assert(
    fc.asyncProperty(steps, async (given) => {
      const budgets = await run(given, addRow)
      for (const name of ['all', 'attributions', 'policies', 'sessions'])
        expect([name, countedSums(budgets, name)]).toEqual([name, await ledgerSums(name)])
    }),
    { numRuns: 25 },
  )
})

test('a row counts once that the totals get between two reads of its hour', async () => {
  await writer.write(addUsageSums)
  // Of the key whose totals are read by the second statement.
  const row = { ...usageRow(crypto.randomUUID(), rows), at: now, keyId: 'own-key', costNanodollars: 7 }
  await Promise.all(['own-deleted', 'own-key'].map((keyId) => writer.appendUsage({ ...row, keyId, requestId: keyId })))
  await writer.write(addUsageSums)
  await writer.appendUsage(row)
  let isAdded = false
  const all = async (query: SQL) => {
    const found = await own.database.orm.all<{ totals?: string }>(query)
    const [totals] = JSON.parse(found[0]?.totals ?? '[]') as [hour: number, keyId: string][]
    if (isAdded || totals?.[0] !== now / hour || totals[1] !== 'own-deleted') return found
    isAdded = true
    await writer.write(addUsageSums)
    return found
  }
  const orm = Object.assign(Object.create(own.database.orm) as typeof own.database.orm, { all })
  const budgets = createBudgets()
  await createBudgetBuilder({ orm, registry, budgets, now: () => now, hoursAtOnce: 1 }).build()
  expect([isAdded, countedSums(budgets, 'all')]).toEqual([true, await ledgerSums('all')])
})

test('a row that is not added, or added twice, is found', async () => {
  const steps: Step[] = [{ kind: 'request', at: now, costNanodollars: 7 }]
  for (const times of [0, 2]) {
    const budgets = await run(steps, (sums, row) => {
      for (let time = 0; time < times; time++) addRow(sums, row)
    })
    expect(countedSums(budgets, 'all')).not.toEqual(await ledgerSums('all'))
  }
})

test('a refresh that fails in the middle of the ledger counts no row twice', async () => {
  const budgets = createBudgets()
  let isAway = false
  const key: Registry['deleted']['key'] = async (id) => {
    if (isAway) throw new Error('The database is away')
    return registry.deleted.key(id)
  }
  const flaky: Registry = { ...registry, deleted: { ...registry.deleted, key } }
  const { build, follow } = createBudgetBuilder({ orm: own.database.orm, registry: flaky, budgets, now: () => now })
  await build()
  // It is looked up in the database, since no row before is of it.
  const late = { ...deletedKey, id: 'own-late', name: 'late', hash: 'e'.padEnd(64, '0') }
  await writer.write([insertApiKey(own.database.orm, late)])
  for (const keyId of ['own-key', late.id, 'own-key'])
    await writer.appendUsage({ ...usageRow(crypto.randomUUID(), rows), keyId, at: now })
  const { rows: found } = await own.database.client.execute('select max(id) from usage')
  const newest = Number(found[0]?.[0])
  isAway = true
  await expect(follow(newest)).rejects.toThrow('The database is away')
  isAway = false
  await follow(newest)
  for (const name of ['all', 'sessions']) expect(countedSums(budgets, name)).toEqual(await ledgerSums(name))
})

test('a refresh that ends behind a newer one does not turn back', async () => {
  const budgets = createBudgets()
  const { build, follow } = createBudgetBuilder({ orm: own.database.orm, registry, budgets, now: () => now })
  await build()
  for (let each = 0; each < 2; each += 1) await writer.appendUsage({ ...usageRow(crypto.randomUUID(), rows), at: now })
  const { rows: found } = await own.database.client.execute('select max(id) from usage')
  const newest = Number(found[0]?.[0])
  await Promise.all([follow(newest), follow(newest - 1)])
  await follow(newest)
  expect(countedSums(budgets, 'all')).toEqual(await ledgerSums('all'))
})
