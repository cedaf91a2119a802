// The responses of admin operations, as shapes: the functions that show a row return them, and the OpenAPI document contains them.
import { grantNames } from '../../../db/schema/record-schema.ts'
import { ruleNames } from '../../federation/lint/rules.ts'
import { stepNames } from '../../federation/subject-token/refusal.ts'
import { type } from '../../values/shape.ts'
import { responseOf } from '../kinds/fields.ts'
import { policyFields } from '../kinds/policy.ts'
import { lastUseFields } from './last-use-response.ts'
import { totalCount } from './list-page.ts'

const text = 'string | null'
/** ISO 8601 UTC, as `timeOf` makes it. */
const time = type('string').configure({ format: 'date-time' })
const timeOrNull = time.or('null')
/** What the caller should know about a change that was made. */
const warnings = { 'warnings?': 'string[]' } as const
const usableKey = type({ kid: text, algorithm: 'string' })

/** What the linter finds. `witness` has the claims of a token that would pass, `example` those that matter most. */
export const findingResponse = type({
  rule: type.enumerated(...ruleNames),
  level: "'blocking' | 'warning' | 'note'",
  message: 'string',
  fix: 'string',
  'detail?': 'string',
  'witness?': 'object',
  'example?': 'object',
  'allowed_because?': 'string',
}).configure({ title: 'Finding' })
const findings = { findings: findingResponse.array() } as const
const shownPolicy = responseOf(policyFields)
const policyRow = { ...shownPolicy, ...warnings } as const
export const policyResponse = type({
  ...policyRow,
  ...lastUseFields,
  'exchanges_24h?': type({ issued: 'number.integer', refused: 'number.integer' }),
}).configure({ title: 'Policy' })
/** A policy that was just saved. */
export const savedPolicyResponse = type({ ...policyRow, ...findings }).configure({ title: 'SavedPolicy' })
/** A policy that was changed, or would be: then with a token that passes only afterward, and one that passes only before. */
export const changedPolicyResponse = type({
  ...policyRow,
  ...findings,
  'dry_run?': 'true',
  'difference?': type({ 'gains?': 'object', 'loses?': 'object' }),
}).configure({ title: 'ChangedPolicy' })
const { id: _id, created_at: _created, updated_at: _updated, ...unsavedPolicy } = shownPolicy
/** A policy that would be saved. */
export const policyDraftResponse = type({ ...unsavedPolicy, ...findings, dry_run: 'true' }).configure({
  title: 'PolicyDraft',
})
export const lintResponse = type({ policy_id: text, policy_name: text, issuer_url: 'string', ...findings }).configure({
  title: 'LintedPolicy',
})
const conditionParts = type({ source: 'string', 'value?': 'string', 'error?': 'string' }).array()
/** A test of a policy. One that failed has the reason of the refusal, and the parts of the condition that was evaluated. */
export const testResultResponse = type({
  name: 'string',
  expected: 'string',
  got: 'string',
  ok: 'boolean',
  'detail?': 'string',
  'condition?': conditionParts,
})
export const testedPolicyResponse = type({
  policy_id: text,
  policy_name: text,
  issuer_url: 'string',
  tests: testResultResponse.array(),
}).configure({ title: 'TestedPolicy' })
export const verificationResponse = type({
  issuer_url: 'string',
  ok: 'boolean',
  checks: type({ step: 'string', ok: 'boolean', detail: 'string' }).array(),
  keys: usableKey.array(),
}).configure({ title: 'IssuerVerification' })
const exchangeFields = {
  id: 'number.integer',
  at: time,
  request_id: 'string',
  outcome: "'issued' | 'refused'",
  error: text,
  reason: text,
  step: type.enumerated(...stepNames).or('null'),
  detail: text,
  organization_id: text,
  policy_id: text,
  policy_name: text,
  policy_named: text,
  issuer_id: text,
  issuer_name: text,
  issuer_url: text,
  key_id: text,
  key_name: text,
  grant: type.enumerated(...grantNames).or('null'),
  subject: text,
  attribution: text,
  subject_token_id: text,
  subject_token_sha256: text,
  access_token_id: text,
  access_token_expires_at: timeOrNull,
  client_address: text,
} as const
export const exchangeResponse = type(exchangeFields).configure({ title: 'Exchange' })
const requestFields = {
  id: 'number.integer',
  at: time,
  request_id: 'string',
  organization_id: 'string',
  workspace_id: 'string',
  key_id: 'string',
  key_name: text,
  policy_id: text,
  policy_name: text,
  issuer_id: text,
  issuer_name: text,
  issuer_url: text,
  subject: text,
  attribution: text,
  user: text,
  session_id: text,
  metadata: 'object | null',
  access_token_id: text,
  endpoint: 'string',
  model: text,
  model_asked: text,
  upstream: text,
  attempts: 'number.integer | null',
  preset_version: text,
  status: 'number.integer',
  streamed: 'boolean',
  completed: 'boolean',
  client_left: 'boolean',
  error: text,
  prompt_tokens: 'number.integer | null',
  completion_tokens: 'number.integer | null',
  total_tokens: 'number.integer | null',
  cached_tokens: 'number.integer | null',
  reasoning_tokens: 'number.integer | null',
  unit: "'character' | 'image' | 'audio_second' | null",
  units: 'number | null',
  cost: 'number | null',
  price: text,
  usage_source: "'upstream' | 'none'",
  estimated: 'boolean',
  first_byte_milliseconds: 'number.integer | null',
  duration_milliseconds: 'number.integer',
} as const
/** An inference request in the ledger. */
export const requestResponse = type(requestFields)
/** What the audit has of the claims of a token. */
const recordedClaims = type({ claims: 'object', 'absent?': 'string[]', 'complete?': 'true', 'key?': 'string' })
/** What a request id refers to. */
export const auditedResponse = type({
  kind: "'exchange'",
  ...exchangeFields,
  recorded_claims: recordedClaims.or('null'),
})
  .configure({ title: 'AuditedExchange' })
  .or(type({ kind: "'inference'", ...requestFields }).configure({ title: 'AuditedInference' }))
export const changeResponse = type({
  id: 'number.integer',
  at: time,
  actor: "'local' | 'key' | 'server'",
  actor_key_id: text,
  actor_issuer: text,
  actor_subject: text,
  actor_key_name: text,
  session_id: text,
  request_id: text,
  operation: 'string',
  group_id: text,
  organization_id: text,
  kind: 'string',
  target_id: 'string',
  before: 'object | null',
  after: 'object | null',
}).configure({ title: 'Change' })
/** `reasons` counts the refused ones. Earlier exchanges than `counted_since` are too many to count. */
export const exchangeCountsResponse = type({
  per: "'hour' | 'day'",
  since: time,
  counted_since: time,
  data: type({
    at: time,
    issued: 'number.integer',
    refused: 'number.integer',
    reasons: type({ '[string]': 'number.integer' }),
  }).array(),
}).configure({ title: 'ExchangeCounts' })
export const explanationResponse = type({
  policy_id: 'string',
  policy_name: 'string',
  accepted: 'boolean',
  steps: type({ step: type.enumerated(...stepNames), ok: 'boolean', 'reason?': 'string', 'detail?': 'string' }).array(),
  'condition?': conditionParts,
}).configure({ title: 'Explanation' })
export const deletedResponse = type({
  id: 'string',
  deleted: 'true',
  'policies_affected?': 'string[]',
  ...warnings,
}).configure({
  title: 'Deleted',
})

/** `{ "data": … }`, as in every response over HTTP. */
export const dataOf = (item: type.Any) => type({ data: item })
export const listOf = (item: type.Any) => type({ data: item.array() })
/** A list that comes in pages where `limit` is sent. */
export const pageOf = (item: type.Any) => type({ data: item.array(), ...totalCount })
/** A file with rows that have left the database, and the times of its first and last row. */
export const archivedResponse = type({ file: 'string', from: time, to: time }).configure({ title: 'ArchivedRows' })
/**
 * A filtered report searches a limited number of rows. To continue, send `more_before_id` as `before_id`. `archived` lists the archives with
 * rows of the time that was asked for.
 */
export const exchangesResponse = type({
  data: exchangeResponse.array(),
  'more_before_id?': 'number.integer',
  'archived?': archivedResponse.array(),
})
