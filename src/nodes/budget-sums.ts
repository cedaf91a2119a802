// Builds what was used of each budget from the ledger's totals, while requests go on.
import type { Orm } from '../../db/file/open.ts'
import { type HourTotals, readHours, readLedgerAfter } from '../../db/tables/budgets.ts'
import type { Writer } from '../../db/write/write.ts'
import type { Registry } from '../registry/registry.ts'
import { createMutex } from '../scheduling/mutex.ts'
import { type Budget, compileBudget, type KeyFacts } from '../spending/budget.ts'
import type { Budgets } from '../spending/budgets.ts'
import { hourOf, startOfHour } from '../spending/periods.ts'
import { type BudgetSums, createBudgetSums } from '../spending/sums.ts'

type Parts = {
  orm: Orm
  registry: Registry
  budgets: Budgets
  now: () => number
}

/** The budgets of an installation that are in force. */
function compileAll({ budgets, organizations }: Registry): Budget[] {
  return [...budgets.values()]
    .filter(({ deletedAt, enabled }) => deletedAt === null && enabled)
    .map((row) => compileBudget(row, organizations.get(row.organizationId)?.timeZone ?? null))
}

/**
 * Returns a function that builds all sums again and puts them in force. `hold` runs a function while no row of the ledger is
 * committed. Each row counts once: those that were committed after their total was read are read from the ledger.
 */
export function createBudgetBuilder(parts: Parts): (hold: Writer['holdLedger']) => Promise<void> {
  const { runExclusive } = createMutex()
  return (hold) => runExclusive(() => build(parts, hold))
}

async function build({ orm, registry, budgets, now }: Parts, hold: Writer['holdLedger']): Promise<void> {
  const compiled = compileAll(registry)
  const sums = createBudgetSums(compiled)
  if (compiled.length === 0) return budgets.install(compiled, sums)
  const keys = createKeyFinder(registry, compiled)
  const slices: { last: HourTotals | undefined; usageId: number }[] = []
  for await (const { totals, usageId } of readHours(orm, hourOf(earliestOf(compiled, now())))) {
    for (const total of totals) await addTotals(sums, keys, total)
    slices.push({ last: totals.at(-1), usageId })
  }
  const readUntil = (names: HourNames) =>
    slices.find(({ last }) => last !== undefined && !isAfter(names, last))?.usageId ?? slices.at(-1)?.usageId ?? 0
  await hold(async () => {
    const after = Math.min(...slices.map(({ usageId }) => usageId))
    for await (const rows of readLedgerAfter(orm, after, Number.MAX_SAFE_INTEGER))
      for (const { id, at, keyId, policyId, attribution, model, tokens, nanodollars } of rows) {
        const names: HourNames = [hourOf(at), keyId, policyId ?? '', attribution ?? '', model ?? '']
        if (id > readUntil(names)) await addTotals(sums, keys, [...names, 1, tokens ?? 0, nanodollars ?? 0])
      }
    // What was committed before is added to the old sums until this turn of the event loop ends.
    await new Promise((resolve) => setImmediate(resolve))
    budgets.install(compiled, sums)
  })
}

type HourNames = [hour: number, keyId: string, policyId: string, attribution: string, model: string]

/** In the order of the table, which compares texts as UTF-8. */
function isAfter(names: HourNames, last: HourTotals): boolean {
  for (const [index, name] of names.entries()) {
    const other = last[index]
    if (name === other) continue
    return typeof name === 'number'
      ? name > Number(other)
      : Buffer.compare(Buffer.from(name), Buffer.from(String(other))) > 0
  }
  return false
}

/** The earliest start of a period that now belongs to. */
function earliestOf(budgets: readonly Budget[], now: number): number {
  const starts = budgets.flatMap(({ windows }) => windows.map(({ periodAt }) => periodAt(now).start))
  return Math.min(...starts)
}

type FindKey = (id: string) => Promise<{ key: KeyFacts; budgets: readonly Budget[] } | undefined>

/** Deleted keys count: what they used was spent. */
function createKeyFinder({ keys, deleted }: Registry, budgets: readonly Budget[]): FindKey {
  const known = new Map<string, Awaited<ReturnType<FindKey>>>()
  return async (id) => {
    if (known.has(id)) return known.get(id)
    const key = keys.get(id) ?? (await deleted.key(id))
    const found = key && { key, budgets: budgets.filter((budget) => budget.appliesToKey(key)) }
    known.set(id, found)
    return found
  }
}

async function addTotals(
  sums: BudgetSums,
  find: FindKey,
  [hour, keyId, policyId, attribution, model, requests, tokens, nanodollars]: HourTotals,
): Promise<void> {
  const found = await find(keyId)
  if (found === undefined || found.budgets.length === 0) return
  const request = { policyId: policyId || null, attribution: attribution || null, model }
  sums.add(found.budgets, found.key, { ...request, at: startOfHour(hour), amounts: { requests, tokens, nanodollars } })
}
