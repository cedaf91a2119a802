// The routes of administration over HTTP: the operation of each path, its response, and who may call it.
import { appliedResponse, exportedResponse, planResponse } from '../config/config-response.ts'
import { issuerResponse } from '../operation/issuer-response.ts'
import {
  changedPolicyResponse,
  deletedResponse,
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
import { organizationResponse, workspaceResponse } from '../organizations.ts'
import { backtestResponse } from '../policies/backtest-response.ts'
import type { AdminRoute } from './admin-route.ts'
import { budgetRoutes } from './budget-routes.ts'
import { bundleRoutes } from './bundle-routes.ts'
import { reportRoutes } from './report-routes.ts'
import { webhookRoutes } from './webhook-routes.ts'

const issuers = '/workload-identity/issuers'
const policies = '/workload-identity/policies'

const issuerRules =
  'The issuer URL is `https://`, or `http://` on a loopback host of a server that allows it. Keys come from one source: discovery, a JWKS URL, or a pasted JWKS.'
const policyRules =
  'The condition must compile (types, cost, no nested macros, no `matches`), the key must be an inference key, and the allowed models and presets take a bounded number of bytes, since access tokens carry them. A policy sets a subject, a condition, or both. A blocking finding of the linter refuses the policy unless `lint_exceptions` names its rule. So does a test that fails.'

const documentRules =
  'The document has no upstreams and prices, which belong to the installation. Every entry keeps the rules of the endpoint that sets its fields; policies refer to issuers and keys by name. A new key is in the response to this request and nowhere else.'

export const routes: AdminRoute[] = [
  {
    method: 'GET',
    path: issuers,
    operation: 'issuers.list',
    summary: 'List the issuers',
    answer: pageOf(issuerResponse),
  },
  {
    method: 'POST',
    path: issuers,
    operation: 'issuers.add',
    summary: 'Trust an issuer',
    rules: issuerRules,
    data: issuerResponse,
    status: 201,
  },
  {
    method: 'POST',
    path: `${issuers}/verify`,
    operation: 'issuers.verify',
    summary: 'Test an issuer before it is saved: discovery, keys, certificates, clock',
    rules: issuerRules,
    data: verificationResponse,
  },
  {
    method: 'GET',
    path: `${issuers}/{issuer}`,
    operation: 'issuers.show',
    summary: 'Show an issuer',
    data: issuerResponse,
  },
  {
    method: 'PATCH',
    path: `${issuers}/{issuer}`,
    operation: 'issuers.update',
    summary: 'Change an issuer',
    rules: issuerRules,
    data: issuerResponse,
  },
  {
    method: 'DELETE',
    path: `${issuers}/{issuer}`,
    operation: 'issuers.delete',
    summary: 'Stop trusting an issuer',
    data: deletedResponse,
  },
  {
    method: 'POST',
    path: `${issuers}/{issuer}/refresh`,
    operation: 'issuers.refresh',
    summary: "Fetch an issuer's keys now",
    data: issuerResponse,
    isBare: true,
  },
  {
    method: 'POST',
    path: `${issuers}/{issuer}/verify`,
    operation: 'issuers.verify',
    name: 'issuersVerifySaved',
    summary: 'Test a saved issuer: discovery, keys, certificates, clock',
    data: verificationResponse,
    isBare: true,
  },
  {
    method: 'GET',
    path: policies,
    operation: 'policies.list',
    summary: 'List the policies',
    answer: pageOf(policyResponse),
  },
  {
    method: 'POST',
    path: policies,
    operation: 'policies.create',
    summary: 'Create a policy, or check it with dry_run, which a viewer may do',
    rules: policyRules,
    data: savedPolicyResponse,
    status: 201,
    draft: policyDraftResponse,
  },
  {
    method: 'POST',
    path: `${policies}/check`,
    operation: 'policies.check',
    summary: 'Explain why a token is accepted or refused, without exchanging it',
    answer: listOf(explanationResponse),
  },
  {
    method: 'POST',
    path: `${policies}/lint`,
    operation: 'policies.lint',
    summary: 'Show who could pass that should not: of one policy, of drafts, or of all policies',
    answer: listOf(lintResponse),
  },
  {
    method: 'POST',
    path: '/workload-identity/policy-tests',
    operation: 'policies.test',
    summary: 'Run the tests that are stored with one policy or with all policies',
    answer: listOf(testedPolicyResponse),
  },
  {
    method: 'GET',
    path: `${policies}/{policy}`,
    operation: 'policies.show',
    summary: 'Show a policy',
    data: policyResponse,
  },
  {
    method: 'PATCH',
    path: `${policies}/{policy}`,
    operation: 'policies.update',
    summary: 'Change a policy, or show what a change would do with dry_run',
    rules: policyRules,
    data: changedPolicyResponse,
  },
  {
    method: 'DELETE',
    path: `${policies}/{policy}`,
    operation: 'policies.delete',
    summary: 'Delete a policy',
    data: deletedResponse,
  },
  {
    method: 'POST',
    path: `${policies}/{policy}/pause`,
    operation: 'policies.pause',
    summary: 'Stop new exchanges under a policy',
    data: policyResponse,
    isBare: true,
  },
  {
    method: 'POST',
    path: `${policies}/{policy}/resume`,
    operation: 'policies.resume',
    summary: 'Allow exchanges under a paused policy again',
    data: policyResponse,
    isBare: true,
  },
  ...budgetRoutes,
  ...webhookRoutes,
  ...bundleRoutes,
  {
    method: 'POST',
    path: `${policies}/{policy}/backtest`,
    operation: 'policies.backtest',
    summary: 'Judge past exchanges by an edited policy, without saving it',
    rules: 'Without a field, the saved value applies. The edited policy must be one that could be saved.',
    data: backtestResponse,
  },
  {
    method: 'GET',
    path: '/organization',
    operation: 'organizations.show',
    summary: 'Show the organization of the key: its plan, and what it records',
    data: organizationResponse,
  },
  {
    method: 'PATCH',
    path: '/organization',
    operation: 'organizations.update',
    name: 'organizationsUpdateOwn',
    summary: 'Change what the organization of the key records, its time zone and its headers',
    data: organizationResponse,
  },
  {
    method: 'GET',
    path: '/workspaces',
    operation: 'workspaces.list',
    summary: 'List the workspaces',
    answer: listOf(workspaceResponse),
  },
  {
    method: 'POST',
    path: '/workspaces',
    operation: 'workspaces.create',
    summary: 'Create a workspace',
    data: workspaceResponse,
    status: 201,
  },
  {
    method: 'POST',
    path: '/config/export',
    operation: 'config.export',
    summary: 'Write what is saved as a configuration document, without secrets',
    data: exportedResponse,
  },
  {
    method: 'POST',
    path: '/config/plan',
    operation: 'config.plan',
    summary: 'Show what a configuration document would change, field by field',
    rules: documentRules,
    data: planResponse,
  },
  {
    method: 'POST',
    path: '/config/apply',
    operation: 'config.apply',
    summary: 'Change the configuration to what a document says, in one commit',
    rules: documentRules,
    data: appliedResponse,
  },
  ...reportRoutes,
]
