// Every reason for which an exchange is refused, and the one mapping from reasons to what the caller is told (decisions §1).
import type { Fault } from '../fault.ts'
import { json, statusOf } from '../http/reply.ts'
import { exchangeBodyBytesLimit, issuerKeysCooldownSeconds, subjectTokenBytesMax } from '../limits.ts'

type Answer = { status: number; error: OAuthError; description: string; retryAfterSeconds?: number }
export type OAuthError =
  | 'invalid_request'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'invalid_grant'
  | 'temporarily_unavailable'
  | 'server_error'

const badRequest = (description: string): Answer => ({ status: 400, error: 'invalid_request', description })

/** One text for everything about the token or the policy, so that nobody can probe another organization's configuration. */
const notAccepted: Answer = {
  status: 400,
  error: 'invalid_grant',
  description:
    'The subject token was not accepted under this federation policy; its admin finds the reason in the exchange audit',
}

const answers = {
  // The request
  content_type: badRequest('Send the form as application/x-www-form-urlencoded'),
  content_encoding: badRequest('Send the body without Content-Encoding'),
  body_broken: badRequest('The body could not be read'),
  body_late: badRequest('The body did not arrive in time'),
  body_too_large: { ...badRequest(`The body must be smaller than ${exchangeBodyBytesLimit} bytes`), status: 413 },
  form_malformed: badRequest('The form is not valid percent-encoded UTF-8'),
  field_repeated: badRequest('A field is sent more than once'),
  field_missing: badRequest('A required field is missing or empty'),
  grant_type: {
    status: 400,
    error: 'unsupported_grant_type',
    description: 'The grant_type must be urn:ietf:params:oauth:grant-type:token-exchange',
  },
  subject_token_type: badRequest('The subject_token_type must be urn:ietf:params:oauth:token-type:jwt'),
  requested_token_type: badRequest(
    'The requested_token_type must be urn:ietf:params:oauth:token-type:access_token when sent',
  ),
  actor_token: badRequest('Delegation is not offered: send no actor_token'),
  policy_id_malformed: badRequest('The federation_policy_id must be a UUID: the id of the policy, not its name'),
  scope: { status: 400, error: 'invalid_scope', description: 'The scope must be inference when sent' },
  subject_token_too_large: badRequest(`The subject_token must be at most ${subjectTokenBytesMax} bytes`),
  subject_token_not_jwt: badRequest(
    'The subject_token is not a JWT: three base64url parts, without padding or white space, around JSON objects',
  ),
  subject_token_white_space: badRequest(
    'The subject_token has white space around it, such as the line feed at the end of a file; send the JWT alone',
  ),
  // The policy and what it names
  policy_unknown: notAccepted,
  policy_deleted: notAccepted,
  policy_paused: notAccepted,
  policy_unsupported: notAccepted,
  organization_not_entitled: notAccepted,
  issuer_deleted: notAccepted,
  issuer_insecure: notAccepted,
  key_deleted: notAccepted,
  key_disabled: notAccepted,
  key_expired: notAccepted,
  // The token
  token_duplicate_member: notAccepted,
  token_header: notAccepted,
  token_algorithm: notAccepted,
  token_claim_type: notAccepted,
  issuer_mismatch: notAccepted,
  kid_unknown: notAccepted,
  kid_ambiguous: notAccepted,
  signature_invalid: notAccepted,
  exp_invalid: notAccepted,
  expired: notAccepted,
  not_yet_valid: notAccepted,
  issued_in_future: notAccepted,
  claim_too_long: notAccepted,
  token_age_unknown: notAccepted,
  token_age_too_long: notAccepted,
  // The rules of the policy
  subject_mismatch: notAccepted,
  audience_mismatch: notAccepted,
  scopes_missing: notAccepted,
  scopes_wrong_type: notAccepted,
  scopes_mismatch: notAccepted,
  token_type_missing: notAccepted,
  token_type_wrong_type: notAccepted,
  token_type_mismatch: notAccepted,
  condition_false: notAccepted,
  condition_error: notAccepted,
  claims_too_large: notAccepted,
  jti_missing: notAccepted,
  replayed: notAccepted,
  changed_meanwhile: notAccepted,
  // Neither side's fault
  issuer_keys_unavailable: {
    status: 503,
    error: 'temporarily_unavailable',
    description: 'The keys of the issuer could not be fetched; try again after the time in Retry-After',
  },
  replay_memory_full: {
    status: 503,
    error: 'temporarily_unavailable',
    description: 'The exchange is not possible at the moment; try again later',
    retryAfterSeconds: issuerKeysCooldownSeconds,
  },
  unforeseen: {
    status: 500,
    error: 'server_error',
    description: 'Something went wrong; the log has the details under this request id',
  },
} as const satisfies Record<string, Answer>

export type Reason = keyof typeof answers

/** The steps of an exchange in their order (decisions §1). */
export const steps = [
  'form',
  'policy',
  'token',
  'issuer',
  'keys',
  'signature',
  'times',
  'lengths',
  'subject',
  'audience',
  'scopes',
  'token_type',
  'condition',
  'replay',
  'minting',
] as const
export type Step = (typeof steps)[number]

/** The step at which a reason refuses; what is not here refuses the form. */
const stepOfReason: Partial<Record<Reason, Step>> = {
  policy_unknown: 'policy',
  policy_deleted: 'policy',
  policy_paused: 'policy',
  policy_unsupported: 'condition',
  organization_not_entitled: 'policy',
  issuer_deleted: 'policy',
  issuer_insecure: 'issuer',
  key_deleted: 'policy',
  key_disabled: 'policy',
  key_expired: 'policy',
  subject_token_not_jwt: 'token',
  subject_token_white_space: 'token',
  token_duplicate_member: 'token',
  token_header: 'token',
  token_algorithm: 'token',
  token_claim_type: 'token',
  issuer_mismatch: 'issuer',
  issuer_keys_unavailable: 'keys',
  kid_unknown: 'keys',
  kid_ambiguous: 'keys',
  signature_invalid: 'signature',
  exp_invalid: 'times',
  expired: 'times',
  not_yet_valid: 'times',
  issued_in_future: 'times',
  token_age_unknown: 'times',
  token_age_too_long: 'times',
  claim_too_long: 'lengths',
  subject_mismatch: 'subject',
  audience_mismatch: 'audience',
  scopes_missing: 'scopes',
  scopes_wrong_type: 'scopes',
  scopes_mismatch: 'scopes',
  token_type_missing: 'token_type',
  token_type_wrong_type: 'token_type',
  token_type_mismatch: 'token_type',
  condition_false: 'condition',
  condition_error: 'condition',
  claims_too_large: 'condition',
  jti_missing: 'replay',
  replayed: 'replay',
  replay_memory_full: 'replay',
  changed_meanwhile: 'minting',
  unforeseen: 'minting',
}

export function stepOf(reason: Reason): Step {
  return stepOfReason[reason] ?? 'form'
}

/** Why an exchange is refused. `detail` is for the audit; only for a form field's name is it shown to the caller as well. */
export type Refusal = { refused: Reason; detail?: string; retryAfterSeconds?: number }

export function refuse(reason: Reason, detail?: string): Refusal {
  return detail === undefined ? { refused: reason } : { refused: reason, detail }
}

/** For a subject token that is not the text of a JWT. */
export function refuseNotJwt(text: string): Refusal {
  return refuse(text === text.trim() ? 'subject_token_not_jwt' : 'subject_token_white_space')
}

export function isRefusal<T extends object>(value: T | Refusal): value is Refusal {
  return 'refused' in value
}

export function isReason(text: string): text is Reason {
  return Object.hasOwn(answers, text)
}

/** The OAuth error code that a reason maps to. */
export function oauthErrorOf(reason: Reason): OAuthError {
  return answers[reason].error
}

/** Headers that every answer of the token endpoint carries (RFC 6749 §5.1). */
export const noStore = { 'cache-control': 'no-store', pragma: 'no-cache' }

/** RFC 6749 §5.2: `error` and `error_description`, both always present, and the id under which log and audit have the details. */
export function refusalReply(refusal: Refusal, requestId: string): Response {
  const answer: Answer = answers[refusal.refused]
  const field = refusal.refused === 'field_missing' || refusal.refused === 'field_repeated' ? `: ${refusal.detail}` : ''
  const retryAfterSeconds = refusal.retryAfterSeconds ?? answer.retryAfterSeconds
  const retry = retryAfterSeconds === undefined ? undefined : { 'retry-after': String(retryAfterSeconds) }
  return json(
    answer.status,
    { error: answer.error, error_description: answer.description + field, request_id: requestId },
    { ...noStore, ...retry },
  )
}

/** What the token endpoint answers for a fault that is not a refusal: a wrong method, or something unforeseen. */
export function tellTokenEndpointFault(fault: Fault, requestId: string): Response {
  const status = statusOf(fault)
  if (status >= 500) return refusalReply(refuse('unforeseen'), requestId)
  const body = { error: 'invalid_request', error_description: fault.message, request_id: requestId }
  return json(status, body, { ...noStore, ...fault.headers })
}
