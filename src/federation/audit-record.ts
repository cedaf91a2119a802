// Builds the audit record of an exchange: who made the request, under which policy, and the outcome. It decides
// nothing.
import { hash } from 'node:crypto'
import type { AuditRow } from '../../db/schema/record-schema.ts'
import { withoutSecrets } from '../fault.ts'
import type { RequestInfo } from '../http/endpoint.ts'
import { claimCharactersMax } from '../limits.ts'
import type { IssuedAccessToken } from '../tokens/access-token.ts'
import type { JsonObject, JwtText } from '../tokens/jwt-text.ts'
import { storableText } from '../values/bytes.ts'
import type { ExchangeForm, Grant } from './grants.ts'
import type { Facts } from './pipeline.ts'
import type { PolicyBinding } from './policy-binding.ts'
import { isRefusal, oauthErrorOf, type Refusal } from './subject-token/refusal.ts'

/** What the audit keeps of claims (reference: Recorded claims). */
export type ClaimRecorder = {
  /** Loads what recording needs. Undefined once that is done. */
  prepare: () => Promise<void> | undefined
  /** Returns the text for the audit, or null if nothing should be recorded. The signature of the token must be verified. */
  record: (binding: Pick<PolicyBinding, 'organization' | 'issuer' | 'policy'>, payload: JsonObject) => string | null
}

/** The outcome of an exchange, and the facts known by then. */
export type Decision = {
  outcome: IssuedAccessToken | Refusal
  /** The one that the request names, or token exchange. */
  grant: Pick<Grant, 'name'>
  form?: ExchangeForm
  jwt?: JwtText | undefined
  binding?: PolicyBinding | undefined
  facts?: Pick<Facts, 'isVerified' | 'attribution'>
}

/**
 * Returns the audit row of an exchange, issued or refused. `at` is the time of the request in milliseconds since 1970
 * UTC. Of claims it has what `recorder`, which must be prepared, returns, if the token was verified.
 */
export function auditRecordOf(
  { outcome, grant, form, jwt, binding, facts }: Decision,
  { requestId, clientAddress }: RequestInfo,
  at: number,
  recorder: ClaimRecorder,
): AuditRow {
  const isRecordable = facts?.isVerified === true && jwt !== undefined && binding !== undefined
  const subject = boundedText(jwt?.payload.sub)
  // The record of claims lacks the subject, so it is of use only if this column has it as the token does.
  const recordedClaims = isRecordable && subject === jwt.payload.sub ? recorder.record(binding, jwt.payload) : null
  const ended = isRefusal(outcome) ? refusedColumns(outcome) : issuedColumns(outcome)
  return {
    at,
    requestId,
    clientAddress,
    organizationId: binding?.organization.id ?? null,
    policyId: binding?.policy.id ?? null,
    issuerId: binding?.issuer.id ?? null,
    keyId: binding?.key.id ?? null,
    policyNamed: form?.policyId ?? null,
    subjectTokenSha256: form === undefined ? null : hash('sha256', form.subjectToken, 'hex'),
    // The token's claims, verified or not, help to distinguish refused exchanges.
    subject,
    subjectTokenId: boundedText(jwt?.payload.jti),
    recordedClaims,
    attribution: isRefusal(outcome) ? null : (facts?.attribution ?? null),
    grant: grant.name,
    outcome: ended.outcome,
    error: ended.error,
    reason: ended.reason,
    detail: ended.detail,
    accessTokenId: ended.accessTokenId,
    accessTokenExpiresAt: ended.accessTokenExpiresAt,
  }
}

function issuedColumns({ id, expiresAt }: IssuedAccessToken) {
  return {
    outcome: 'issued' as const,
    error: null,
    reason: null,
    detail: null,
    accessTokenId: id,
    accessTokenExpiresAt: expiresAt,
  }
}

function refusedColumns({ refused: reason, detail }: Refusal) {
  const refusal = { error: oauthErrorOf(reason), reason, detail: boundedText(detail) }
  return { outcome: 'refused' as const, ...refusal, accessTokenId: null, accessTokenExpiresAt: null }
}

/** Cuts external text to the length that the audit stores, in code points like the claim limits. */
function boundedText(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const text = storableText(withoutSecrets(value))
  if (text.length <= claimCharactersMax) return text
  const characters = [...text.slice(0, 2 * claimCharactersMax + 1)]
  return characters.length <= claimCharactersMax ? text : `${characters.slice(0, claimCharactersMax).join('')}…`
}
