// What the API returns, as types for its client in the browser: the modules of the page import them. Each follows from the shape of its
// response.
import type { keyResponse } from '../../keys/openapi.ts'
import type { presetResponse, versionResponse } from '../../presets/responses.ts'
import type { archiveResponse } from '../archives.ts'
import type { logResponse } from '../audit-log.ts'
import type { budgetResponse } from '../budgets/budget-response.ts'
import type { simulationResponse } from '../budgets/simulate.ts'
import type { planResponse } from '../config/config-response.ts'
import type { findingsResponse } from '../doctor/findings.ts'
import type { bundleSignerResponse, importResponse } from '../operation/bundle-responses.ts'
import type { issuerResponse } from '../operation/issuer-response.ts'
import type {
  changeResponse,
  exchangeCountsResponse,
  exchangeResponse,
  explanationResponse,
  findingResponse,
  policyResponse,
  requestResponse,
  verificationResponse,
} from '../operation/responses.ts'
import type { organizationResponse, workspaceResponse } from '../organizations.ts'
import type { backtestResponse } from '../policies/backtest-response.ts'
import type { refusedResponse } from '../reports/refused.ts'
import type { usageReportResponse } from '../reports/usage-report.ts'
import type { identityResponse, sessionResponse } from '../sessions/session-response.ts'
import type { signingKeyResponse } from '../signing-keys.ts'
import type { systemResponse } from '../system.ts'
import type { priceListResponse } from '../upstreams/prices.ts'
import type { queueResponse } from '../upstreams/queue-state.ts'
import type { upstreamCheckResponse, upstreamResponse } from '../upstreams/upstream-response.ts'
import type { alertResponse } from '../webhooks/alerts.ts'
import type { webhookResponse } from '../webhooks/webhook-response.ts'

export type Alert = typeof alertResponse.infer
export type Archive = typeof archiveResponse.infer
export type AuditLog = typeof logResponse.infer
export type Backtest = typeof backtestResponse.infer
export type Budget = typeof budgetResponse.infer
export type BudgetSimulation = typeof simulationResponse.infer
export type BundleSigner = typeof bundleSignerResponse.infer
export type ConfigPlan = typeof planResponse.infer
export type ImportedBundle = (typeof importResponse.infer)['data'][number]
export type Organization = typeof organizationResponse.infer
export type Workspace = typeof workspaceResponse.infer
export type Change = typeof changeResponse.infer
export type Exchange = typeof exchangeResponse.infer
export type ExchangeCounts = typeof exchangeCountsResponse.infer
export type Explanation = typeof explanationResponse.infer
export type Finding = typeof findingResponse.infer
/** Who is signed in. */
export type Identity = typeof identityResponse.infer
/** An inference request that a server got. */
export type InferenceRequest = typeof requestResponse.infer
export type Issuer = typeof issuerResponse.infer
export type Key = typeof keyResponse.infer
/** What the doctor found. */
export type DoctorFinding = (typeof findingsResponse.infer)['findings'][number]
export type Policy = typeof policyResponse.infer
export type Preset = typeof presetResponse.infer
export type PresetVersion = typeof versionResponse.infer
export type Price = (typeof priceListResponse.infer)['data'][number]
/** Inference requests that no server got. */
export type RefusedRequests = typeof refusedResponse.infer
/** A session of the page. */
export type SignedIn = typeof sessionResponse.infer
/** What runs and waits at the inference servers. */
export type Queue = typeof queueResponse.infer
export type SigningKey = typeof signingKeyResponse.infer
export type System = typeof systemResponse.infer
export type Upstream = typeof upstreamResponse.infer
export type UpstreamCheck = typeof upstreamCheckResponse.infer
export type UsageReport = typeof usageReportResponse.infer
export type UsageRow = UsageReport['data'][number]
export type Webhook = typeof webhookResponse.infer
export type Verification = typeof verificationResponse.infer
