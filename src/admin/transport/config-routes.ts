// The routes of configuration documents.
import { appliedResponse, planResponse } from '../config/config-response.ts'
import { dataOf } from '../operation/responses.ts'
import type { AdminRoute } from './admin-route.ts'

const documentRules =
  'The document has no upstreams and prices, which belong to the installation. Every entry keeps the rules of the endpoint that sets its fields; policies refer to issuers and keys by name. A new key is in the response to this request and nowhere else.'

export const configRoutes: AdminRoute[] = [
  {
    method: 'POST',
    path: '/config/plan',
    operation: 'config.plan',
    summary: 'Show what a configuration document would change, field by field',
    rules: documentRules,
    answer: dataOf(planResponse),
    isReading: true,
  },
  {
    method: 'POST',
    path: '/config/apply',
    operation: 'config.apply',
    summary: 'Change the configuration to what a document says, in one commit',
    rules: documentRules,
    answer: dataOf(appliedResponse),
  },
]
