// What budgets in dollars counted as free lately, because a model has no price. Read from the ledger's totals.
import { readUnknownCosts } from '../../../db/read/attention.ts'
import { hourOf } from '../../spending/periods.ts'
import type { Needs } from '../operation/context.ts'
import type { UnpricedFacts } from './organization-rules.ts'

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
  if (inDollars.length === 0) return found
  for (const { keyId, policyId, model, requests } of await readUnknownCosts(reader, hourOf(now()) - unpricedHours)) {
    const key = registry.keys.get(keyId) ?? (await registry.deleted.key(keyId))
    if (key === undefined || registry.priceOf(model) !== undefined) continue
    const asked = { policyId: policyId || null, model: model || null }
    const counting = inDollars.filter((budget) => budget.appliesToKey(key) && budget.counts(asked))
    if (counting.length === 0) continue
    const facts = found.get(key.organizationId) ?? { requests: 0, models: new Set(), budgets: new Set() }
    found.set(key.organizationId, facts)
    facts.requests += requests
    facts.models.add(model)
    for (const { row } of counting) facts.budgets.add(row.name)
  }
  return found
}
