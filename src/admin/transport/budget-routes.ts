// The routes of budgets.
import { budgetResponse } from '../budgets/budget-response.ts'
import { deletedResponse, pageOf } from '../operation/responses.ts'
import type { AdminRoute } from './admin-route.ts'

const budgets = '/budgets'
const rules =
  'Each window has an amount, and each period one window. overrides need each, and their periods must be among the windows. A budget for each policy or attribution cannot name a key that no policy targets. A key has at most 50 budgets.'

export const budgetRoutes: AdminRoute[] = [
  {
    method: 'GET',
    path: budgets,
    operation: 'budgets.list',
    summary: 'List the budgets with what was spent; of a budget for each value, those that run out next',
    answer: pageOf(budgetResponse),
  },
  {
    method: 'POST',
    path: budgets,
    operation: 'budgets.create',
    summary: 'Create a budget',
    rules,
    data: budgetResponse,
    status: 201,
  },
  {
    method: 'GET',
    path: `${budgets}/{budget}`,
    operation: 'budgets.show',
    summary: 'Show a budget with what was spent; of a budget for each value, the hundred that run out next',
    data: budgetResponse,
  },
  {
    method: 'PATCH',
    path: `${budgets}/{budget}`,
    operation: 'budgets.update',
    summary: 'Change a budget; takes effect at the next request',
    rules,
    data: budgetResponse,
  },
  {
    method: 'DELETE',
    path: `${budgets}/{budget}`,
    operation: 'budgets.delete',
    summary: 'Delete a budget',
    data: deletedResponse,
  },
  {
    method: 'POST',
    path: `${budgets}/{budget}/top-up`,
    operation: 'budgets.top_up',
    summary: 'Add to what a budget allows until a time',
    data: budgetResponse,
  },
]
