// The routes that compare policies with past exchanges.
import { dataOf } from '../operation/responses.ts'
import { auditedTestResponse, backtestResponse } from '../policies/backtest-response.ts'
import type { AdminRoute } from './admin-route.ts'

export const pastExchangeRoutes: AdminRoute[] = [
  {
    method: 'POST',
    path: '/workload-identity/policies/{policy}/backtest',
    operation: 'policies.backtest',
    summary: 'Judge past exchanges by an edited policy, without saving it',
    rules: 'Without a field, the saved value applies. The edited policy must be one that could be saved.',
    answer: dataOf(backtestResponse),
    isReading: true,
  },
  {
    method: 'GET',
    path: '/workload-identity/audit/{request_id}/test',
    operation: 'policies.audited_test',
    summary: 'Make a test of a policy from an exchange, without saving it',
    answer: dataOf(auditedTestResponse),
    isReading: true,
  },
]
