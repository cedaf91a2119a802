// The OAuth responses of the token endpoint (RFC 6749 §5, RFC 8693 §2.2, RFC 7523 §3.1).
import type { Fault } from '../fault.ts'
import { json, statusOf } from '../http/reply.ts'
import type { IssuedAccessToken } from '../tokens/access-token.ts'
import { accessTokenType, type Grant, tokenExchange } from './grants.ts'
import { type Refusal, refuse, rowOf } from './subject-token/refusal.ts'

/** Headers of every token endpoint response (RFC 6749 §5.1). */
const noStore = { 'cache-control': 'no-store', pragma: 'no-cache' }

/**
 * Returns the error response (RFC 6749 §5.2): `error`, `error_description` in the words of the grant, and the request
 * id that finds the details in the log and the audit.
 */
export function refusalReply(refusal: Refusal, requestId: string, { words }: Grant = tokenExchange): Response {
  const row = rowOf(refusal.refused)
  const description = row.description.replaceAll(/\w+/g, (word) => words.get(word) ?? word)
  const detail = row.showsDetail === true && refusal.detail !== undefined ? `: ${refusal.detail}` : ''
  const retryAfterSeconds = refusal.retryAfterSeconds ?? row.retryAfterSeconds
  const retry = retryAfterSeconds === undefined ? undefined : { 'retry-after': String(retryAfterSeconds) }
  return json(
    row.status,
    { error: row.error, error_description: description + detail, request_id: requestId },
    { ...noStore, ...retry },
  )
}

/** Returns the error response for a fault that is not a refusal: a wrong method or an unforeseen error. */
export function toOAuthError(fault: Fault, requestId: string): Response {
  const status = statusOf(fault)
  if (fault.code === 'unavailable') {
    const body = { error: 'temporarily_unavailable', error_description: fault.message, request_id: requestId }
    return json(status, body, { ...noStore, ...fault.headers })
  }
  if (status >= 500) return refusalReply(refuse('unforeseen'), requestId)
  const body = { error: 'invalid_request', error_description: fault.message, request_id: requestId }
  return json(status, body, { ...noStore, ...fault.headers })
}

/** Returns the success response (RFC 8693 §2.2.1; RFC 6749 §5.1). */
export function issuedReply({ text, lifetimeSeconds }: IssuedAccessToken, { namesIssuedType }: Grant): Response {
  const body = {
    access_token: text,
    issued_token_type: namesIssuedType ? accessTokenType : undefined,
    token_type: 'Bearer',
    expires_in: lifetimeSeconds,
    scope: 'inference',
  }
  return json(200, body, noStore)
}
