// The routes of administration over HTTP: the operation of each path, its response, and who may call it.
import { findingsResponse } from '../doctor/findings.ts'
import { issuerResponse } from '../operation/issuer-response.ts'
import {
  auditedResponse,
  changedPolicyResponse,
  changeResponse,
  dataOf,
  deletedResponse,
  exchangeCountsResponse,
  exchangesResponse,
  explanationResponse,
  lintResponse,
  listOf,
  pageOf,
  policyDraftResponse,
  policyResponse,
  savedPolicyResponse,
  testedPolicyResponse,
  verificationResponse,
} from '../operation/responses.ts'
import type { AdminRoute } from './admin-route.ts'
import { bundleRoutes } from './bundle-routes.ts'
import { configRoutes } from './config-routes.ts'
import { pastExchangeRoutes } from './past-exchange-routes.ts'
import { sessionRoutes } from './session-routes.ts'

const issuers = '/workload-identity/issuers'
const policies = '/workload-identity/policies'
const audit = '/workload-identity/audit'
const findings = '/workload-identity/findings'
const issuer = dataOf(issuerResponse)
const policy = dataOf(policyResponse)
const savedPolicy = dataOf(savedPolicyResponse)
const deleted = dataOf(deletedResponse)
const verification = dataOf(verificationResponse)

const issuerRules =
  'The issuer URL is `https://`, or `http://` on a loopback host of a server that allows it. Keys come from one source: discovery, a JWKS URL, or a pasted JWKS.'
const policyRules =
  'The condition must compile (types, cost, no nested macros, no `matches`), the key must be an inference key, and the allowed models and presets take a bounded number of bytes, since access tokens carry them. A policy sets a subject, a condition, or both. A blocking finding of the linter refuses the policy unless `lint_exceptions` names its rule. So does a test that fails.'

export const routes: AdminRoute[] = [
  {
    method: 'GET',
    path: issuers,
    operation: 'issuers.list',
    summary: 'List the issuers',
    answer: pageOf(issuerResponse),
    isList: true,
    isReading: true,
  },
  {
    method: 'POST',
    path: issuers,
    operation: 'issuers.add',
    summary: 'Trust an issuer',
    rules: issuerRules,
    answer: issuer,
    status: 201,
  },
  // It fetches any URL that it is given, so read-only keys may not call it.
  {
    method: 'POST',
    path: `${issuers}/verify`,
    operation: 'issuers.verify',
    summary: 'Test an issuer before it is saved: discovery, keys, certificates, clock',
    rules: issuerRules,
    answer: verification,
  },
  {
    method: 'GET',
    path: `${issuers}/{issuer}`,
    operation: 'issuers.show',
    summary: 'Show an issuer',
    answer: issuer,
    isReading: true,
  },
  {
    method: 'PATCH',
    path: `${issuers}/{issuer}`,
    operation: 'issuers.update',
    summary: 'Change an issuer',
    rules: issuerRules,
    answer: issuer,
  },
  {
    method: 'DELETE',
    path: `${issuers}/{issuer}`,
    operation: 'issuers.delete',
    summary: 'Stop trusting an issuer',
    answer: deleted,
  },
  {
    method: 'POST',
    path: `${issuers}/{issuer}/refresh`,
    operation: 'issuers.refresh',
    summary: "Fetch an issuer's keys now",
    answer: issuer,
    isBare: true,
  },
  {
    method: 'POST',
    path: `${issuers}/{issuer}/verify`,
    operation: 'issuers.verify',
    name: 'issuersVerifySaved',
    summary: 'Test a saved issuer: discovery, keys, certificates, clock',
    answer: verification,
    isBare: true,
  },
  {
    method: 'GET',
    path: policies,
    operation: 'policies.list',
    summary: 'List the policies',
    answer: pageOf(policyResponse),
    isList: true,
    isReading: true,
  },
  {
    method: 'POST',
    path: policies,
    operation: 'policies.create',
    summary: 'Create a policy, or check it with dry_run, which a read-only key may do',
    rules: policyRules,
    answer: savedPolicy,
    status: 201,
    draft: dataOf(policyDraftResponse),
  },
  {
    method: 'POST',
    path: `${policies}/check`,
    operation: 'policies.check',
    summary: 'Explain why a token is accepted or refused, without exchanging it',
    answer: listOf(explanationResponse),
    isList: true,
    isReading: true,
  },
  {
    method: 'POST',
    path: `${policies}/lint`,
    operation: 'policies.lint',
    summary: 'Show who could pass that should not: of one policy, of drafts, or of all policies',
    answer: listOf(lintResponse),
    isList: true,
    isReading: true,
  },
  {
    method: 'POST',
    path: '/workload-identity/policy-tests',
    operation: 'policies.test',
    summary: 'Run the tests that are stored with one policy or with all policies',
    answer: listOf(testedPolicyResponse),
    isList: true,
    isReading: true,
  },
  {
    method: 'GET',
    path: `${policies}/{policy}`,
    operation: 'policies.show',
    summary: 'Show a policy',
    answer: policy,
    isReading: true,
  },
  {
    method: 'PATCH',
    path: `${policies}/{policy}`,
    operation: 'policies.update',
    summary: 'Change a policy, or show what a change would do with dry_run',
    rules: policyRules,
    answer: dataOf(changedPolicyResponse),
  },
  {
    method: 'DELETE',
    path: `${policies}/{policy}`,
    operation: 'policies.delete',
    summary: 'Delete a policy',
    answer: deleted,
  },
  {
    method: 'POST',
    path: `${policies}/{policy}/pause`,
    operation: 'policies.pause',
    summary: 'Stop new exchanges under a policy',
    answer: policy,
    isBare: true,
  },
  {
    method: 'POST',
    path: `${policies}/{policy}/resume`,
    operation: 'policies.resume',
    summary: 'Allow exchanges under a paused policy again',
    answer: policy,
    isBare: true,
  },
  ...bundleRoutes,
  ...pastExchangeRoutes,
  ...configRoutes,
  {
    method: 'GET',
    path: findings,
    operation: 'doctor.examine',
    summary: 'List what needs attention: issuers, policies and budgets',
    answer: dataOf(findingsResponse),
    isReading: true,
  },
  {
    method: 'GET',
    path: audit,
    operation: 'audit.list',
    summary: 'List exchanges with outcome and reason, newest first',
    answer: exchangesResponse,
    isList: true,
    isReading: true,
  },
  {
    method: 'GET',
    path: `${audit}/changes`,
    operation: 'audit.changes',
    summary: 'List the changes by administrators, newest first',
    answer: listOf(changeResponse),
    isList: true,
    isReading: true,
  },
  {
    method: 'GET',
    path: `${audit}/counts`,
    operation: 'audit.counts',
    summary: 'Count the exchanges of the last hours or days by outcome and reason',
    answer: exchangeCountsResponse,
    isList: true,
    isReading: true,
  },
  {
    method: 'GET',
    path: `${audit}/{request_id}`,
    operation: 'audit.show',
    summary: 'Show an exchange or an inference request by its request id',
    answer: dataOf(auditedResponse),
    isReading: true,
  },
  ...sessionRoutes,
]
