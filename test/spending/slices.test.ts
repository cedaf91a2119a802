// When nodes need slices of a budget.
import { expect, test } from 'bun:test'
import type { Budget as BudgetRow } from '../../db/schema/budget-schema.ts'
import { compileBudget } from '../../src/spending/budget.ts'
import type { BudgetState } from '../../src/spending/budget-state.ts'
import { isFar } from '../../src/spending/slices.ts'
import { createBudgetSums } from '../../src/spending/sums.ts'

const now = Date.UTC(2026, 10, 26, 12)
const row: BudgetRow = {
  ...{ id: 'b', organizationId: 'o', name: 'b', enabled: true, appliesTo: null, each: 'key', overrides: null },
  ...{ windows: [{ per: 'hour', requests: 100 }], topUps: null, mode: 'block', unpriced: 'count', hold: 'expected' },
  ...{ createdAt: 1, updatedAt: 1, deletedAt: null, managedBy: null, concurrentRequests: null, alerts: [] },
}
const amounts = (requests: number) => ({ requests, tokens: 0, nanodollars: 0 })

test.each([
  [1, 8, true],
  [1, 9, false],
  [3, 3, true],
  [3, 4, false],
])(
  'with %d nodes, one that holds %d of a fifth of the limit and begins one more is far from it: %p',
  (nodes, held, far) => {
    const budget = compileBudget(row, null)
    const state = { sums: createBudgetSums([budget], () => now) } as BudgetState
    expect(isFar(state, { budget, counter: 'k' }, [amounts(held), amounts(1)], { nodes, now })).toBe(far)
  },
)
