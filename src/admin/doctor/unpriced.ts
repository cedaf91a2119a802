// What budgets in dollars, of many keys and of single ones, counted as free lately, because a model has no price. Read from the ledger's totals.
import { readUnknownCosts, type UnknownCosts } from '../../../db/read/attention.ts'
import { hourOf } from '../../spending/periods.ts'
import type { Needs } from '../operation/context.ts'
import type { UnpricedFacts, UnpricedRequests } from './organization-rules.ts'

const unpricedHours = 24

/** By organization: the models without a price whose requests its budgets in dollars counted as free lately. */
export async function readUnpriced(
  { reader, registry, budgets, now }: Needs<'reader' | 'registry' | 'budgets' | 'now'>,
  only: string | undefined,
): Promise<Map<string, UnpricedFacts>> {
  const found = new Map<string, UnpricedFacts>()
  const inDollars = budgets
    .all()
    .filter(({ row, limitsDollars }) => limitsDollars && row.organizationId === (only ?? row.organizationId))
  for (const row of await readUnknownCosts(reader, hourOf(now()) - unpricedHours)) {
    const { keyId, policyId, model } = row
    const key = registry.keys.get(keyId) ?? (await registry.deleted.key(keyId))
    if (key === undefined || key.organizationId !== (only ?? key.organizationId)) continue
    if (registry.priceOf(model) !== undefined) continue
    const asked = { policyId: policyId || null, model: model || null }
    const counting = inDollars.filter((budget) => budget.appliesToKey(key) && budget.counts(asked))
    const hasLimit = key.limitNanodollars !== null && key.deletedAt === null
    if (counting.length === 0 && !hasLimit) continue
    const facts = found.get(key.organizationId) ?? { budgets: noRequests(), keys: noRequests() }
    found.set(key.organizationId, facts)
    const names = counting.map(({ row: { name } }) => name)
    if (names.length > 0) count(facts.budgets, row, names)
    if (hasLimit) count(facts.keys, row, [key.name])
  }
  return found
}

const noRequests = (): UnpricedRequests => ({ requests: 0, models: new Set(), names: new Set() })

function count(into: UnpricedRequests, { requests, model }: UnknownCosts, names: readonly string[]): void {
  into.requests += requests
  into.models.add(model)
  for (const name of names) into.names.add(name)
}
