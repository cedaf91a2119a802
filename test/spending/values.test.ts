// A budget for each value has a bounded number of values: another one is refused, those that are known go on.
import { expect, test } from 'bun:test'
import type { Budget as BudgetRow } from '../../db/schema/budget-schema.ts'
import type { Fault } from '../../src/fault.ts'
import { compileBudget } from '../../src/spending/budget.ts'
import { createBudgets } from '../../src/spending/budgets.ts'
import { createBudgetSums } from '../../src/spending/sums.ts'

const rowOf = (mode: BudgetRow['mode']): BudgetRow => ({
  ...{ id: 'b', organizationId: 'o', name: 'each', enabled: true, appliesTo: null, each: 'attribution' },
  ...{ overrides: null, windows: [{ per: 'day', requests: 9 }], topUps: null, mode, unpriced: 'count', hold: 'off' },
  ...{ alerts: [], concurrentRequests: null, createdAt: 1, updatedAt: 1, deletedAt: null, managedBy: null },
})
const key = { id: 'k', organizationId: 'o', workspaceId: 'w', labels: null }

/** A budget that has seen two values, which is all that it may have. */
function fullBudget(mode: BudgetRow['mode']) {
  const compiled = [compileBudget(rowOf(mode), null)]
  const budgets = createBudgets()
  budgets.install(
    compiled,
    createBudgetSums(compiled, () => 0, 2),
  )
  const amounts = { requests: 1, tokens: 0, nanodollars: 0, requestsWithoutCost: 0 }
  for (const attribution of ['one', 'two'])
    budgets.add(key, { policyId: null, attribution, session: null, model: null, at: 0, amounts })
  return (attribution: string) => {
    try {
      budgets.check(key, { policyId: null, attribution, session: null, models: [] }, () => true, 0)
      return 'admitted'
    } catch (error) {
      const { code, reason, subject, message } = error as Fault
      return { code, reason, subject, message }
    }
  }
}

test('one value too many is refused with its own reason, and those before go on', () => {
  const ask = fullBudget('block')
  expect(['one', 'two'].map(ask)).toEqual(['admitted', 'admitted'])
  expect(ask('three')).toEqual({
    ...{ code: 'forbidden', reason: 'budget_values_exceeded', subject: { kind: 'budget', id: 'b' } },
    message: 'The budget "each" has too many different values; ask an administrator',
  })
})

test('a budget that only warns refuses no value', () => {
  expect(fullBudget('warn')('three')).toBe('admitted')
})

test('a budget may have 100,000 values', () => {
  const compiled = [compileBudget(rowOf('block'), null)]
  const [budget] = compiled
  const sums = createBudgetSums(compiled, () => 0)
  const amounts = { requests: 1, tokens: 0, nanodollars: 0, requestsWithoutCost: 0 }
  let hadRoom = true
  for (let count = 0; count < 100_000; count++) {
    hadRoom &&= budget !== undefined && sums.hasRoomFor(budget, `v${count}`)
    sums.add(compiled, key, { policyId: null, attribution: `v${count}`, session: null, model: null, at: 0, amounts })
  }
  expect(hadRoom).toBe(true)
  expect(budget && sums.hasRoomFor(budget, 'v100000')).toBe(false)
  expect(budget && sums.hasRoomFor(budget, 'v99999')).toBe(true)
})
