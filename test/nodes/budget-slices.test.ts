// Budgets near their limits on several nodes: whatever the nodes do at once, and whichever of them is killed, running requests and the ledger
// stay within the limit, and the sums of every node equal the ledger.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Budget as BudgetRow } from '../../db/schema/budget-schema.ts'
import { insertBudget, updateBudget } from '../../db/tables/budgets.ts'
import type { Statement } from '../../db/write/rows.ts'
import { createWriter, type Writer } from '../../db/write/write.ts'
import { shareBudgets } from '../../src/nodes/budget-slices.ts'
import { createBudgetBuilder } from '../../src/nodes/budget-sums.ts'
import { loadRegistry, type Registry } from '../../src/registry/registry.ts'
import { type Budgets, createBudgets } from '../../src/spending/budgets.ts'
import type { Slices } from '../../src/spending/slices.ts'
import {
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../support/rows.ts'
import { isRealRqlite } from '../support/rqlited.ts'
import { isRealServer } from '../support/sqld.ts'

const now = Date.UTC(2026, 10, 26, 12)
const rows = organizationRows('own')
const never = new AbortController().signal
let own: TestDatabase
let writer: Writer

const budget: BudgetRow = {
  ...{ id: 'shared', organizationId: 'own', name: 'shared', enabled: true, appliesTo: null, each: 'attribution' },
  ...{ windows: [{ per: 'day', requests: 12, tokens: 100 }], overrides: null, topUps: null, mode: 'block' },
  ...{ unpriced: 'count', createdAt: 1, updatedAt: 1, deletedAt: null, managedBy: null, hold: 'expected', alerts: [] },
  concurrentRequests: null,
}

beforeAll(async () => {
  own = await createDatabase()
  writer = createWriter(own.database, () => {}, undefined, own.following)
  await writer.write([...insertOrganizationRows(own.database, rows), insertBudget(own.database.orm, budget)])
})
afterAll(async () => {
  await writer.close()
  await own.close()
})

async function newestRow(): Promise<number> {
  const { rows: found } = await own.database.client.execute('select coalesce(max(id), 0) as id from usage')
  return Number(found[0]?.id)
}

/** While it is set, no node learns what others have committed. */
let gate: Promise<void> | undefined
/** The monotonic clock of all nodes, which a step sets forward. */
let clock = 0

/** Only a kill ends slices here: a machine that is busy would end them by the clock of the database. */
const keepSlices: Statement = {
  toSQL: () => ({ sql: `update budget_slices set until = ${Number.MAX_SAFE_INTEGER} where until > 0`, params: [] }),
}
const keeping: Pick<Writer, 'write'> = { write: (statements) => writer.write([...statements, keepSlices]) }

/** Most requests that wait here are refused in the end. A real server needs longer for a turn. */
const waitMillisecondsDefault = isRealServer || isRealRqlite ? 2_000 : 60

/** What a process of a server database has of budgets, without its HTTP. `loses`: it never releases what it holds. */
async function startNode(registry: Registry, nodes: () => number, loses = false) {
  const { orm } = own.database
  const budgets = createBudgets()
  const builder = createBudgetBuilder({ orm, registry, budgets, now: () => now })
  await builder.build()
  let live = nodes()
  const fresh = async () => {
    await gate
    live = nodes()
    await builder.follow(await newestRow())
  }
  const follow = { fresh: () => fresh(), liveNodes: () => live }
  const slices = shareBudgets({ orm, writer: keeping, follow, monotonic: () => clock }, budgets, () => now)
  const report = async () => {
    await fresh()
    await slices.report((more) => keeping.write(more))
  }
  await report()
  const ask = async (attribution: string, tokens: number, waitMilliseconds = waitMillisecondsDefault) => {
    await fresh()
    const asking = { policyId: null, attribution, session: null, models: [] }
    const check = () => budgets.check(rows.key, asking, () => true, now)
    check()
    const estimate = () => ({ requests: 1, tokens, nanodollars: 0 })
    const release = await budgets.hold(rows.key, {
      ...{ asking, estimate, check, signal: never, now: () => now, waitMilliseconds },
    })
    return loses ? () => {} : release
  }
  return { id: slices.nodeId, budgets, ask, report, fresh, isKilled: false }
}

type Running = { node: number; attribution: string; tokens: number; release: () => void }
type Step = { kind: 'ask' | 'end' | 'second' | 'kill' | 'join' | 'turn' } & {
  node: number
  attribution: string
  tokens: number
  /** Requests at once. */
  times?: number
}
/** What each attribution may use. */
type Limits = { requests: number; tokens: number }

const stepOf = (tokens: readonly number[], timesMax: number): fc.Arbitrary<Step> =>
  fc.record({
    kind: fc.oneof(
      { weight: 12, arbitrary: fc.constant('ask' as const) },
      { weight: 8, arbitrary: fc.constant('end' as const) },
      { weight: 2, arbitrary: fc.constant('second' as const) },
      { weight: 1, arbitrary: fc.constant('kill' as const) },
      { weight: 1, arbitrary: fc.constant('join' as const) },
      { weight: 4, arbitrary: fc.constant('turn' as const) },
    ),
    node: fc.nat(5),
    attribution: fc.constantFrom('one', 'two'),
    tokens: fc.constantFrom(...tokens),
    times: fc.integer({ min: 1, max: timesMax }),
  })

const few: Limits = { requests: 12, tokens: 100 }

/** Runs the steps on three nodes. Returns the nodes that live, what was admitted when nothing was left for it, and how often. */
async function run(steps: readonly Step[], loses = false, limits = few) {
  const day = crypto.randomUUID()
  const registry = await loadRegistry(own.database.orm)
  let live = 3
  const start = () => startNode(registry, () => live, loses)
  const nodes = await Promise.all([start(), start(), start()])
  const counted: Record<string, { requests: number; tokens: number }> = {}
  const largest: Record<string, number> = {}
  const of = (attribution: string) => (counted[attribution] ??= { requests: 0, tokens: 0 })
  const running = new Set<Running>()
  const asked: Promise<void>[] = []
  const committing: Promise<void>[] = []
  const excess: string[] = []
  const end = async (each: Running) => {
    running.delete(each)
    const { attribution, tokens } = each
    of(attribution).requests += 1
    of(attribution).tokens += tokens
    const appending = writer.appendUsage({
      ...usageRow(crypto.randomUUID(), rows),
      ...{ at: now, policyId: null, attribution: `${day}${attribution}`, totalTokens: tokens, costNanodollars: 0 },
    })
    committing.push(appending)
    await appending
    each.release()
  }
  const begin = async (node: number, { attribution, tokens }: Step) => {
    const release = await nodes[node]?.ask(`${day}${attribution}`, tokens).catch(() => undefined)
    if (release === undefined || nodes[node]?.isKilled) return
    running.add({ node, attribution, tokens, release })
    const others = [...running].filter((each) => each.attribution === attribution)
    const sum = (of_: (each: { tokens: number }) => number) => others.reduce((total, each) => total + of_(each), 0)
    const [requests, used] = [
      of(attribution).requests + others.length,
      of(attribution).tokens + sum((each) => each.tokens),
    ]
    // One may run alone, however large it is. A node that is far from the limit can admit more until it knows what that one has used.
    const alone = Math.max(largest[attribution] ?? 0, tokens)
    largest[attribution] = alone
    if (requests > limits.requests || used - alone > limits.tokens) excess.push(`${requests} requests, ${used} tokens`)
  }
  for (const { kind, times = 1, ...each } of steps) {
    const index = each.node % nodes.length
    const node = nodes[index]
    if (kind === 'second') {
      clock += 1_000
      asked.push(...nodes.filter(({ isKilled }) => !isKilled).map(({ report }) => report()))
    }
    if (kind === 'join' && nodes.length < 6) {
      live += 1
      nodes.push(await start())
    }
    if (node === undefined || node.isKilled) continue
    if (kind === 'ask') for (let time = 0; time < times; time++) asked.push(begin(index, { kind, ...each }))
    else if (kind === 'end') asked.push(...[...running].slice(0, times).map(end))
    else if (kind === 'turn') await new Promise((resolve) => setImmediate(resolve))
    else if (kind === 'kill' && live > 1) {
      node.isKilled = true
      live -= 1
      for (const each of running) if (nodes[each.node] === node) running.delete(each)
      // Five seconds later, by which time the database has what it was sent.
      await Promise.all(committing)
      await own.database.commit([{ sql: 'update budget_slices set until = 0 where node_id = ?', args: [node.id] }])
    }
  }
  await Promise.all(asked)
  for (const each of running) await end(each)
  return { nodes: nodes.filter(({ isKilled }) => !isKilled), counted, excess, day }
}

const many: Limits = { requests: 100, tokens: 1_000 }

test.each([
  ['few', few, stepOf([1, 9, 60], 1), 12],
  ['many', many, stepOf([1, 9, 60, 400], 12), 8],
])(
  'the limit holds for all nodes together where it is for %s requests, and the sums of each equal the ledger',
  async (_, limits, step, numRuns) => {
    await setLimits(limits)
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 70 }), async (steps) => {
        const { nodes, counted, excess, day } = await run(steps, false, limits)
        expect(excess).toEqual([])
        for (const { budgets, fresh } of nodes) {
          await fresh()
          const [compiled] = budgets.all()
          for (const [attribution, { requests, tokens }] of Object.entries(counted))
            expect(compiled && budgets.sums().usedOf(compiled, `${day}${attribution}`, 0, now)).toMatchObject({
              ...{ requests, tokens },
            })
        }
      }),
      { numRuns },
    )
    await setLimits(few)
  },
)

async function setLimits(limits: Partial<Limits>): Promise<void> {
  const windows = [{ per: 'day' as const, ...limits }]
  await writer.write([updateBudget(own.database.orm, 'shared', { ...budget, windows })])
}

test('a hold near a limit outlives its request until its row is counted: otherwise it would be neither', async () => {
  await setLimits(many)
  const registry = await loadRegistry(own.database.orm)
  const node = await startNode(registry, () => 1)
  const attribution = crypto.randomUUID()
  const release = await node.ask(attribution, 400)
  const { promise, resolve } = Promise.withResolvers<void>()
  gate = promise
  const row = { at: now, policyId: null, attribution, totalTokens: 400, costNanodollars: 0 }
  await writer.appendUsage({ ...usageRow(crypto.randomUUID(), rows), ...row })
  release()
  const asking = { policyId: null, attribution, session: null, models: [] }
  const estimate = () => ({ requests: 1, tokens: 50, nanodollars: 0 })
  const times = { signal: never, now: () => now, waitMilliseconds: 60_000 }
  const waiting = node.budgets.hold(rows.key, { asking, estimate, check: () => {}, ...times })
  expect(waiting).toBeInstanceOf(Promise)
  resolve()
  gate = undefined
  ;(await waiting)()
  const [compiled] = node.budgets.all()
  expect(compiled && node.budgets.sums().usedOf(compiled, attribution, 0, now)).toMatchObject({
    requests: 1,
    tokens: 400,
  })
  await setLimits(few)
})

async function slicesIn(): Promise<number> {
  const { rows: found } = await own.database.client.execute('select count(*) as count from budget_slices')
  return Number(found[0]?.count)
}

const oneRequest: Step[] = [
  { kind: 'ask', node: 0, attribution: 'one', tokens: 60 },
  ...Array.from({ length: 5 }, (): Step => ({ kind: 'turn', node: 1, attribution: '', tokens: 0 })),
]

test('an idle node gives back what it took, and a release that is lost is found: its slice stays', async () => {
  const dropAll = () => own.database.commit([{ sql: 'delete from budget_slices', args: [] }])
  for (const [loses, left] of [
    [false, 0],
    [true, 1],
  ] as const) {
    await dropAll()
    const { nodes } = await run(oneRequest, loses)
    for (const { fresh } of nodes) await fresh()
    for (let time = 0; time < 3; time++) for (const { report } of nodes) await report()
    expect([loses, await slicesIn()]).toEqual([loses, left])
  }
  await dropAll()
})

test('requests on three nodes at once get all of a limit, and one by one what an estimate does not leave', async () => {
  const ask = (node: number, tokens: number): Step => ({ kind: 'ask', node: node % 3, attribution: 'one', tokens })
  const many = await run(Array.from({ length: 40 }, (_, index) => ask(index, 1)))
  expect(many.counted.one?.requests).toBe(12)
  const large = await run([ask(0, 200), ask(1, 200), ask(2, 200)])
  expect([large.counted.one?.requests, large.excess]).toEqual([1, []])
})

test('where only tokens are limited, requests that are larger than what is left run one by one', async () => {
  await setLimits({ tokens: 100 })
  const ask = (node: number): Step => ({ kind: 'ask', node, attribution: 'one', tokens: 200 })
  const end: Step = { kind: 'end', node: 0, attribution: '', tokens: 0 }
  const { counted, excess } = await run([ask(0), ask(1), ask(2), end])
  expect([counted.one?.requests, excess]).toEqual([1, []])
  await setLimits(few)
})

test('a budget that is raised meanwhile lets a request go on that waits at another node', async () => {
  const registry = await loadRegistry(own.database.orm)
  const [one, two] = [await startNode(registry, () => 2), await startNode(registry, () => 2)]
  const first = await one?.ask('raised', 60)
  const second = two?.ask('raised', 60, 60_000).then(
    () => 'ran',
    () => 'refused',
  )
  const raised = { ...budget, windows: [{ per: 'day' as const, requests: 12, tokens: 1_000 }] }
  await writer.write([updateBudget(own.database.orm, 'shared', raised)])
  registry.budgets.set('shared', raised)
  await createBudgetBuilder({ orm: own.database.orm, registry, budgets: two.budgets, now: () => now }).build()
  expect(await second).toBe('ran')
  first?.()
  await setLimits(few)
})

test('a slice is asked for after a report that is on its way: that one has the slices as they were', async () => {
  let slices: Slices | undefined
  const sharing = {
    share: (given: Slices) => {
      slices = given
      return () => []
    },
  } as unknown as Budgets
  const written: string[] = []
  const noted: Pick<Writer, 'write'> = {
    write: async () => {
      written.push('slice')
    },
  }
  const follow = { fresh: async () => {}, liveNodes: () => 1 }
  const ports = { orm: own.database.orm, writer: noted, follow, monotonic: () => 0 }
  const { report } = shareBudgets(ports, sharing, () => now)
  const { promise, resolve } = Promise.withResolvers<void>()
  const reported = report(() => promise.then(() => void written.push('report')))
  const amounts = { requests: 1, tokens: 1, nanodollars: 1 }
  const asked = { held: amounts, own: amounts, wanted: amounts, left: amounts }
  const taken = slices?.take({ budgetId: 'shared', counter: 'x' }, asked)
  await new Promise((later) => setTimeout(later, 5))
  resolve()
  await Promise.all([reported, taken])
  expect(written).toEqual(['report', 'slice'])
})
