// The budgets of a key as operations show them: what is left of them, and which of them refuse all of its requests now.
import type { KeyBudget } from '../../keys/openapi.ts'
import type { Budget, KeyFacts } from '../../spending/budget.ts'
import type { Needs } from '../operation/context.ts'
import { showRemaining } from '../operation/remaining-response.ts'

type Context = Needs<'budgets' | 'now'>

/** Those in force. What is left of one that counts for each policy, attribution or session is not the key's alone, so it is left out. */
export function budgetsOfKey(context: Context, key: KeyFacts): KeyBudget[] {
  return context.budgets.all().flatMap((budget) => (budget.appliesToKey(key) ? [showOne(context, budget, key)] : []))
}

function showOne({ budgets, now }: Context, budget: Budget, key: KeyFacts): KeyBudget {
  const { id, name, mode, each, appliesTo } = budget.row
  if (each !== null && each !== 'key' && !each.startsWith('label:')) return { id, name, mode, refuses_all: false }
  const counter = budget.counterOf(key, { policyId: null, attribution: null, session: null })
  const spent = budgets.spentOf(budget, counter, now())
  const isAboutAll = budget.models === undefined && appliesTo?.policies === undefined
  const refuses_all = mode === 'block' && isAboutAll && spent.some(({ remaining }) => remaining === 0)
  return { id, name, mode, refuses_all, spent: spent.map(showRemaining) }
}
