// Sums of budgets when clocks are wrong: the current period stays, whatever times requests have.
import { expect, test } from 'bun:test'
import type { Budget as BudgetRow } from '../../db/schema/budget-schema.ts'
import { compileBudget } from '../../src/spending/budget.ts'
import { createBudgets } from '../../src/spending/budgets.ts'
import { createBudgetSums } from '../../src/spending/sums.ts'

const hour = 3_600_000
const now = Date.UTC(2026, 10, 26, 12)
const row: BudgetRow = {
  ...{ id: 'b', organizationId: 'o', name: 'b', enabled: true, appliesTo: null, each: 'key', overrides: null },
  ...{ windows: [{ per: 'hour', requests: 9 }], topUps: null, mode: 'block', unpriced: 'count', hold: 'expected' },
  ...{ createdAt: 1, updatedAt: 1, deletedAt: null, managedBy: null, concurrentRequests: null, alerts: [] },
}
const key = { id: 'k', organizationId: 'o', workspaceId: 'w', labels: null }

test('requests of other times do not drop what the current period has used', () => {
  const budget = compileBudget(row, null)
  const sums = createBudgetSums([budget], () => now)
  const request = { policyId: null, attribution: null, session: null, model: null }
  const amounts = { requests: 1, tokens: 0, nanodollars: 0, requestsWithoutCost: 0 }
  for (const ahead of [0, 1, 2, 3, 4, -1, -5, 0])
    sums.add([budget], key, { ...request, at: now + ahead * hour, amounts })
  expect(sums.usedOf(budget, 'k', 0, now).requests).toBe(2)
  const neighbors = [now - hour, now + hour, now - 5 * hour].map((at) => sums.usedOf(budget, 'k', 0, at).requests)
  expect(neighbors).toEqual([1, 1, 0])
})

test('a later period that had to go is remembered: once it comes, what it has used is read again', () => {
  const budget = compileBudget(row, null)
  const sums = createBudgetSums([budget], () => now)
  const request = { policyId: null, attribution: null, session: null, model: null }
  const amounts = { requests: 1, tokens: 0, nanodollars: 0, requestsWithoutCost: 0 }
  const add = (hours: number) => sums.add([budget], key, { ...request, at: now + hours * hour, amounts })
  for (const hours of [0, -1, -2, -3, -9]) add(hours)
  expect(sums.droppedLater()).toBe(Number.POSITIVE_INFINITY)
  // The new one is too far away, or drops one that is.
  add(7)
  expect(sums.droppedLater()).toBe(now + 7 * hour)
  const other = createBudgetSums([budget], () => now)
  for (const hours of [0, 5, 4, 3, 2]) other.add([budget], key, { ...request, at: now + hours * hour, amounts })
  expect(other.droppedLater()).toBe(now + 4 * hour)
  const budgets = createBudgets()
  budgets.install([budget], other)
  let stale = 0
  budgets.onStale.push(() => {
    stale += 1
  })
  const check = (at: number) => budgets.check(key, { ...request, models: [] }, () => true, at)
  check(now + 4 * hour - 1)
  expect(stale).toBe(0)
  check(now + 4 * hour)
  expect(stale).toBe(1)
})
