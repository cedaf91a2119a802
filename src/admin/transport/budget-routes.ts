// The routes of budgets.
import { budgetResponse } from '../budgets/budget-response.ts'
import { simulationResponse } from '../budgets/simulate.ts'
import { deletedWorkspaceBudget, workspaceBudgetResponse } from '../budgets/workspace-budgets.ts'
import { deletedResponse, listOf, pageOf } from '../operation/responses.ts'
import type { AdminRoute } from './admin-route.ts'

const budgets = '/budgets'
const workspaceBudgets = '/workspaces/{workspace_ref}/budgets'
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
  {
    method: 'POST',
    path: '/budget-simulations',
    operation: 'budgets.simulate',
    summary: 'Show what a budget, saved or not, would have refused of past usage; changes nothing',
    rules:
      'Without `budget`, `windows` is needed. A request that would have been refused counts as not made. Top-ups are left out.',
    data: simulationResponse,
  },
  {
    method: 'GET',
    path: workspaceBudgets,
    operation: 'budgets.of_workspace',
    summary: 'List the budgets of a workspace, as the official client has them',
    answer: listOf(workspaceBudgetResponse),
  },
  {
    method: 'GET',
    path: `${workspaceBudgets}/{interval}`,
    operation: 'budgets.of_interval',
    summary: 'Show the budget of a workspace for an interval',
    data: workspaceBudgetResponse,
  },
  {
    method: 'PUT',
    path: `${workspaceBudgets}/{interval}`,
    operation: 'budgets.set_interval',
    summary: 'Create or change the budget of a workspace for an interval',
    rules:
      'It is a budget of all keys of the workspace together, also under /budgets. A limit must be more than that of each narrower interval.',
    data: workspaceBudgetResponse,
  },
  {
    method: 'DELETE',
    path: `${workspaceBudgets}/{interval}`,
    operation: 'budgets.delete_interval',
    summary: 'Delete the budget of a workspace for an interval',
    answer: deletedWorkspaceBudget,
  },
]
