// The routes of usage: totals of a bounded time, and single requests.
import { type } from '../../values/shape.ts'
import { archivedResponse, requestResponse } from '../operation/responses.ts'
import { usageReportResponse } from '../reports/usage-report.ts'
import type { AdminRoute } from './admin-route.ts'

const requestsResponse = type({
  data: requestResponse.array(),
  more_before_id: 'number.integer | null',
  'archived?': archivedResponse.array(),
})

export const usageRoutes: AdminRoute[] = [
  {
    method: 'GET',
    path: '/usage',
    operation: 'usage.report',
    summary: 'Add up the usage of whole days by key, policy, subject, model, preset, upstream or day',
    answer: usageReportResponse,
    isList: true,
    isReading: true,
  },
  {
    method: 'GET',
    path: '/usage/requests',
    operation: 'usage.requests',
    summary: 'List inference requests, newest first',
    answer: requestsResponse,
    isList: true,
    isReading: true,
  },
]
