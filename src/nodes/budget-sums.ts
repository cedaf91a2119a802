// Builds what was used of each budget from the ledger's totals, while requests go on.
import type { Orm } from '../../db/file/open.ts'
import {
  type HourTotals,
  readHours,
  readLedgerAfter,
  readSessions,
  type SessionTotals,
} from '../../db/tables/budgets.ts'
import { rowIdsOf } from '../../db/tables/usage.ts'
import type { Registry } from '../registry/registry.ts'
import { createMutex } from '../scheduling/mutex.ts'
import { type Budget, compileBudget, type KeyFacts } from '../spending/budget.ts'
import type { Budgets } from '../spending/budgets.ts'
import { hourOf, startOfHour } from '../spending/periods.ts'
import { type BudgetSums, createBudgetSums } from '../spending/sums.ts'

type BuilderParts = {
  orm: Orm
  registry: Registry
  budgets: Budgets
  now: () => number
  /** Totals read at a time. */
  hoursAtOnce?: number
}

/** The budgets of an installation that are in force. */
function compileAll({ budgets, organizations }: Registry): Budget[] {
  return [...budgets.values()]
    .filter(({ deletedAt, enabled }) => deletedAt === null && enabled)
    .map((row) => compileBudget(row, organizations.get(row.organizationId)?.timeZone ?? null))
}

/** Runs a function while no row of the ledger is committed. */
type HoldLedger = (act: () => Promise<void>) => Promise<void>

export type BudgetBuilder = {
  /** Builds all sums again and puts them in force. `hold`: of a process that holds its database. */
  build: (hold?: HoldLedger) => Promise<void>
  /** On a server database: adds the rows of the ledger up to this one, of all nodes. */
  follow: (usageId: number) => Promise<void>
}

/** A node that was away for more rows than this builds the sums again. */
const rowsFollowedMax = 20_000

export function createBudgetBuilder(parts: BuilderParts): BudgetBuilder {
  const { runExclusive } = createMutex()
  let state: BuiltSums | undefined
  // Those that are in force, and what notices how near their limits are.
  const inForce: Pick<BudgetSums, 'add'> = { add: (_ofKey, key, used) => parts.budgets.add(key, used) }
  return {
    build: (hold) =>
      runExclusive(async () => {
        state = await build(parts, hold)
      }),
    follow: async (usageId) => {
      if (state === undefined || usageId <= state.usageId) return
      await runExclusive(async () => {
        if (state === undefined || usageId <= state.usageId) return
        if (usageId - state.usageId > rowsFollowedMax) state = await build(parts, undefined)
        else {
          for await (const rows of readLedgerAfter(parts.orm, state.usageId, usageId))
            for (const row of rows) {
              await addTotals(inForce, state.keys, totalsOf(row), 'both')
              // Where this ends early, as without the database, the next call goes on there: each row counts once.
              state.usageId = row.id
            }
          state.usageId = usageId
        }
      })
    },
  }
}

/** `usageId`: the newest row of the ledger that the sums have. */
type BuiltSums = { sums: BudgetSums; keys: FindKey; usageId: number }

/**
 * Each row counts once: those that their total did not include when it was read are read from the ledger. Undefined if there are no budgets:
 * nothing has to follow.
 */
async function build(
  { orm, registry, budgets, now, hoursAtOnce }: BuilderParts,
  hold: HoldLedger | undefined,
): Promise<BuiltSums | undefined> {
  const compiled = compileAll(registry)
  const sums = createBudgetSums(compiled, now)
  if (compiled.length === 0) {
    budgets.install(compiled, sums)
    return undefined
  }
  const keys = createKeyFinder(registry, compiled)
  const ofSessions = await readSessionsOf(compiled, { orm, now }, (totals) => addTotals(sums, keys, totals, 'sessions'))
  const slices: { last: HourTotals | undefined; usageId: number }[] = []
  for await (const { totals, usageId } of readHours(orm, hourOf(earliestOf(compiled, now())), hoursAtOnce)) {
    for (const total of totals) await addTotals(sums, keys, [...total, ''], 'hours')
    slices.push({ last: totals.at(-1), usageId })
  }
  const ofHours = slices.at(-1)?.usageId ?? 0
  const finish = async (upto: number) => {
    const after = Math.min(ofSessions, ...slices.map(({ usageId }) => usageId))
    for await (const rows of readLedgerAfter(orm, after, upto))
      for (const row of rows) {
        const totals = totalsOf(row)
        const slice = slices.find(({ last }) => last !== undefined && !isAfter(totals, last))
        if (row.id > (slice?.usageId ?? ofHours)) await addTotals(sums, keys, totals, 'hours')
        if (row.id > ofSessions) await addTotals(sums, keys, totals, 'sessions')
      }
    // What was committed before is added to the old sums until this turn of the event loop ends.
    await new Promise((resolve) => setImmediate(resolve))
    budgets.install(compiled, sums)
  }
  const newest = (await rowIdsOf(orm)).end - 1
  await (hold === undefined ? finish(newest) : hold(() => finish(Number.MAX_SAFE_INTEGER)))
  return { sums, keys, usageId: newest }
}

/** Returns the newest row of the ledger that was read; without budgets of sessions, nothing is read. */
async function readSessionsOf(
  compiled: readonly Budget[],
  { orm, now }: Pick<BuilderParts, 'orm' | 'now'>,
  add: (totals: SessionTotals) => Promise<void>,
): Promise<number> {
  const budgets = compiled.filter(isOfSessions)
  if (budgets.length === 0) return Number.POSITIVE_INFINITY
  let newest = 0
  for await (const { totals, usageId } of readSessions(orm, earliestOf(budgets, now()))) {
    for (const total of totals) await add(total)
    newest = usageId
  }
  return newest
}

/** Totals by hour know no sessions. */
const isOfSessions = ({ row: { each } }: Budget) => each === 'session'

type LedgerRow = { at: number; keyId: string; policyId: string | null; attribution: string | null } & {
  session: string | null
  model: string | null
  tokens: number | null
  nanodollars: number | null
  requestsWithoutCost: number
}

/** A row as the totals of its hour. */
function totalsOf(row: LedgerRow): SessionTotals {
  const { at, keyId, policyId, attribution, session, model, tokens, nanodollars } = row
  const names = [hourOf(at), keyId, policyId ?? '', attribution ?? '', model ?? ''] as const
  return [...names, 1, tokens ?? 0, nanodollars ?? 0, row.requestsWithoutCost, session ?? '']
}

/** In the order of the table, which compares texts as UTF-8. */
function isAfter(totals: SessionTotals, last: HourTotals): boolean {
  for (const [index, name] of totals.slice(0, 5).entries()) {
    const other = last[index]
    if (name === other) continue
    return typeof name === 'number'
      ? name > Number(other)
      : Buffer.compare(Buffer.from(name), Buffer.from(String(other))) > 0
  }
  return false
}

/** The earliest start of a period that now belongs to; now without any. */
function earliestOf(budgets: readonly Budget[], now: number): number {
  const starts = budgets.flatMap(({ windows }) => windows.map(({ periodAt }) => periodAt(now).start))
  return Math.min(now, ...starts)
}

/** The budgets of a key, by what they are read from. `both`: of a row that neither has. */
type KeyBudgets = { key: KeyFacts } & Record<'hours' | 'sessions' | 'both', readonly Budget[]>
type FindKey = (id: string) => Promise<KeyBudgets | undefined>

/** Deleted keys count: what they used was spent. */
function createKeyFinder({ keys, deleted }: Registry, budgets: readonly Budget[]): FindKey {
  const known = new Map<string, Awaited<ReturnType<FindKey>>>()
  return async (id) => {
    if (known.has(id)) return known.get(id)
    const key = keys.get(id) ?? (await deleted.key(id))
    const both = key === undefined ? [] : budgets.filter((budget) => budget.appliesToKey(key))
    const [sessions, hours] = [both.filter(isOfSessions), both.filter((budget) => !isOfSessions(budget))]
    const found = key && { key, hours, sessions, both }
    known.set(id, found)
    return found
  }
}

async function addTotals(
  sums: Pick<BudgetSums, 'add'>,
  find: FindKey,
  [
    hour,
    keyId,
    policyId,
    attribution,
    model,
    requests,
    tokens,
    nanodollars,
    requestsWithoutCost,
    session,
  ]: SessionTotals,
  which: 'hours' | 'sessions' | 'both',
): Promise<void> {
  const found = await find(keyId)
  if (found === undefined || found[which].length === 0) return
  const request = { policyId: policyId || null, attribution: attribution || null, session: session || null, model }
  const amounts = { requests, tokens, nanodollars, requestsWithoutCost }
  sums.add(found[which], found.key, { ...request, at: startOfHour(hour), amounts })
}
