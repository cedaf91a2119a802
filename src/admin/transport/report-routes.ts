// The routes of what happened: findings, exchanges, changes, usage and sessions.
import { type } from '../../values/shape.ts'
import { proofResponse } from '../audit-proof.ts'
import { findingsResponse } from '../doctor/findings.ts'
import {
  archivedResponse,
  auditedResponse,
  changeResponse,
  exchangeCountsResponse,
  exchangesResponse,
  listOf,
  requestResponse,
} from '../operation/responses.ts'
import { auditedTestResponse } from '../policies/backtest-response.ts'
import { refusedResponse } from '../reports/refused.ts'
import { usageReportResponse } from '../reports/usage-report.ts'
import { endedSessionResponse, sessionResponse } from '../sessions/session-response.ts'
import type { AdminRoute } from './admin-route.ts'

const audit = '/workload-identity/audit'

const requestsResponse = type({
  data: requestResponse.array(),
  more_before_id: 'number.integer | null',
  'archived?': archivedResponse.array(),
})

export const reportRoutes: AdminRoute[] = [
  {
    method: 'GET',
    path: '/workload-identity/findings',
    operation: 'doctor.examine',
    summary: 'List what needs attention: issuers, policies and budgets',
    data: findingsResponse,
  },
  {
    method: 'GET',
    path: audit,
    operation: 'audit.list',
    summary: 'List exchanges with outcome and reason, newest first',
    answer: exchangesResponse,
  },
  {
    method: 'GET',
    path: `${audit}/changes`,
    operation: 'audit.changes',
    summary: 'List the changes by administrators, newest first',
    answer: listOf(changeResponse),
  },
  {
    method: 'GET',
    path: `${audit}/counts`,
    operation: 'audit.counts',
    summary: 'Count the exchanges of the last hours or days by outcome and reason',
    answer: exchangeCountsResponse,
  },
  {
    method: 'GET',
    path: `${audit}/proof`,
    operation: 'audit.prove',
    summary: 'Prove that the transparent audit log has an exchange or a change; auditors check the proof offline',
    rules:
      'Name one of request_id and change_id. Records belong to the whole installation, so no key gets proofs of them.',
    data: proofResponse,
  },
  {
    method: 'GET',
    path: `${audit}/{request_id}`,
    operation: 'audit.show',
    summary: 'Show an exchange or an inference request by its request id',
    data: auditedResponse,
  },
  {
    method: 'GET',
    path: '/admin/sessions',
    operation: 'sessions.list',
    summary: 'List the sessions of the admin page',
    answer: listOf(sessionResponse),
  },
  {
    method: 'DELETE',
    path: '/admin/sessions/{session}',
    operation: 'sessions.end',
    summary: 'End a session of the admin page',
    data: endedSessionResponse,
  },
  {
    method: 'GET',
    path: '/usage',
    operation: 'usage.report',
    summary: 'Add up the usage of whole days by key, policy, subject, model, preset, upstream or day',
    answer: usageReportResponse,
  },
  {
    method: 'GET',
    path: '/usage/requests',
    operation: 'usage.requests',
    summary: 'List inference requests, newest first',
    answer: requestsResponse,
  },
  {
    method: 'GET',
    path: '/usage/refused',
    operation: 'usage.refused',
    summary: 'Show which inference requests the responding node refused before any server got them',
    answer: refusedResponse,
  },
  {
    method: 'GET',
    path: `${audit}/{request_id}/test`,
    operation: 'policies.audited_test',
    summary: 'Make a test of a policy from an exchange, without saving it',
    data: auditedTestResponse,
  },
]
