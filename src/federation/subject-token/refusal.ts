// Every reason to refuse an exchange: the step that refuses (reference: Order of verification) and the response.
import { exchangeBodyBytesLimit, issuerKeysCooldownSeconds, subjectTokenBytesMax } from '../../limits.ts'
import { foreignIdCharactersMax } from '../../values/id-text.ts'

/** The steps of an exchange in order. pipeline.ts has their checks. */
export const stepNames = [
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
  'attribution',
  'replay',
  'minting',
] as const
export type StepName = (typeof stepNames)[number]

export type RefusalRow = {
  step: StepName
  status: number
  error: OAuthError
  description: string
  /** The caller sees the detail too: it says only what the caller has sent. */
  showsDetail?: true
  retryAfterSeconds?: number
}
export type OAuthError =
  | 'invalid_request'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'invalid_grant'
  | 'temporarily_unavailable'
  | 'server_error'

const badRequest = (description: string): RefusalRow => ({
  step: 'form',
  status: 400,
  error: 'invalid_request',
  description,
})

/** All token and policy problems share one text, so that callers cannot probe another organization's configuration. */
const refusedAt = (step: StepName): RefusalRow => ({
  step,
  status: 400,
  error: 'invalid_grant',
  description:
    'The subject token was not accepted under this federation policy; its administrator can find the reason in the audit log',
})

const reasons = {
  // The request
  content_type: badRequest('Send the form as application/x-www-form-urlencoded'),
  content_encoding: badRequest('Send the body without Content-Encoding'),
  body_broken: badRequest('The body could not be read'),
  body_late: badRequest('The body did not arrive in time'),
  body_too_large: { ...badRequest(`The body must be smaller than ${exchangeBodyBytesLimit} bytes`), status: 413 },
  form_malformed: badRequest('The form is not valid percent-encoded UTF-8'),
  json_malformed: { ...badRequest('The JSON is not accepted'), showsDetail: true },
  field_type: { ...badRequest('A field must be text, or left out'), showsDetail: true },
  field_malformed: {
    ...badRequest(
      `An id must have 1 to ${foreignIdCharactersMax} letters, digits, dots, colons, hyphens or underscores`,
    ),
    showsDetail: true,
  },
  field_repeated: { ...badRequest('A field was sent more than once'), showsDetail: true },
  field_missing: { ...badRequest('A required field is missing or empty'), showsDetail: true },
  grants_mixed: {
    ...badRequest('The jwt-bearer grant takes the JWT as assertion: leave out the fields of token exchange'),
    showsDetail: true,
  },
  policy_ids_differ: badRequest('The request names two different policies: send federation_rule_id alone'),
  grant_type: {
    step: 'form',
    status: 400,
    error: 'unsupported_grant_type',
    description: 'The grant_type must be urn:ietf:params:oauth:grant-type:token-exchange',
  },
  subject_token_type: badRequest('The subject_token_type must be urn:ietf:params:oauth:token-type:jwt'),
  requested_token_type: badRequest(
    'The requested_token_type must be urn:ietf:params:oauth:token-type:access_token, or left out',
  ),
  actor_token: badRequest('Delegation is not supported: send no actor_token'),
  policy_id_malformed: badRequest('The federation_policy_id must be a UUID: the id of the policy, not its name'),
  scope: { step: 'form', status: 400, error: 'invalid_scope', description: 'The scope must be inference, or left out' },
  subject_token_too_large: badRequest(`The subject_token must be at most ${subjectTokenBytesMax} bytes`),
  subject_token_not_jwt: badRequest(
    'The subject_token is not a JWT: three base64url parts, without padding or white space, around JSON objects',
  ),
  subject_token_white_space: badRequest(
    'The subject_token has white space around it, such as the line feed at the end of a file; send only the JWT',
  ),
  // The policy and the rows that it names
  policy_unknown: refusedAt('policy'),
  policy_deleted: refusedAt('policy'),
  policy_paused: refusedAt('policy'),
  policy_signs_in: refusedAt('policy'),
  policy_unsupported: refusedAt('condition'),
  organization_not_entitled: refusedAt('policy'),
  issuer_deleted: refusedAt('policy'),
  issuer_insecure: refusedAt('issuer'),
  key_deleted: refusedAt('policy'),
  key_disabled: refusedAt('policy'),
  key_expired: refusedAt('policy'),
  // The token
  token_duplicate_member: refusedAt('token'),
  token_header: refusedAt('token'),
  token_algorithm: refusedAt('token'),
  token_claim_type: refusedAt('token'),
  issuer_mismatch: refusedAt('issuer'),
  kid_unknown: refusedAt('keys'),
  kid_ambiguous: refusedAt('keys'),
  bundle_missing: refusedAt('keys'),
  bundle_expired: refusedAt('keys'),
  issuer_keys_expired: refusedAt('keys'),
  signature_invalid: refusedAt('signature'),
  exp_invalid: refusedAt('times'),
  expired: refusedAt('times'),
  not_yet_valid: refusedAt('times'),
  issued_in_future: refusedAt('times'),
  claim_too_long: refusedAt('lengths'),
  token_age_unknown: refusedAt('times'),
  token_age_too_long: refusedAt('times'),
  // The rules of the policy
  subject_mismatch: refusedAt('subject'),
  audience_mismatch: refusedAt('audience'),
  scopes_missing: refusedAt('scopes'),
  scopes_wrong_type: refusedAt('scopes'),
  scopes_mismatch: refusedAt('scopes'),
  token_type_missing: refusedAt('token_type'),
  token_type_wrong_type: refusedAt('token_type'),
  token_type_mismatch: refusedAt('token_type'),
  condition_false: refusedAt('condition'),
  condition_error: refusedAt('condition'),
  claims_too_large: refusedAt('condition'),
  attribution_failed: refusedAt('attribution'),
  jti_missing: refusedAt('replay'),
  replayed: refusedAt('replay'),
  changed_meanwhile: refusedAt('minting'),
  // Neither the caller's nor the policy's fault
  issuer_keys_unavailable: {
    step: 'keys',
    status: 503,
    error: 'temporarily_unavailable',
    description: 'The keys of the issuer could not be fetched; try again after the time in Retry-After',
  },
  replay_memory_full: {
    step: 'replay',
    status: 503,
    error: 'temporarily_unavailable',
    description: 'The exchange is temporarily unavailable; try again later',
    retryAfterSeconds: issuerKeysCooldownSeconds,
  },
  unforeseen: {
    step: 'minting',
    status: 500,
    error: 'server_error',
    description: 'Something went wrong; the log has the details under this request id',
  },
} as const satisfies Record<string, RefusalRow>

export type Reason = keyof typeof reasons
export const reasonNames = Object.keys(reasons) as Reason[]

/** Returns the step at which a reason refuses. Each reason belongs to one step. */
export function stepOf(reason: Reason): StepName {
  return reasons[reason].step
}

/** Reports whether an exchange is refused for this reason only after its signature is verified. */
export function isAfterSignature(reason: Reason): boolean {
  // Something unforeseen can happen at any step.
  return reason !== 'unforeseen' && stepNames.indexOf(stepOf(reason)) > stepNames.indexOf('signature')
}

/** Why an exchange is refused. `detail` is for the audit; the caller sees it only where the row of the reason says so. */
export type Refusal = { refused: Reason; detail?: string; retryAfterSeconds?: number }

export function refuse(reason: Reason, detail?: string): Refusal {
  return detail === undefined ? { refused: reason } : { refused: reason, detail }
}

/** Returns the refusal of a subject token that is not a JWT. */
export function refuseNotJwt(text: string): Refusal {
  return refuse(text === text.trim() ? 'subject_token_not_jwt' : 'subject_token_white_space')
}

export function isRefusal<T extends object>(value: T | Refusal): value is Refusal {
  return 'refused' in value
}

export function isReason(text: string): text is Reason {
  return Object.hasOwn(reasons, text)
}

/** Returns the OAuth error code of a reason. */
export function oauthErrorOf(reason: Reason): OAuthError {
  return reasons[reason].error
}

/** Returns the step of a reason and the response for the caller. */
export function rowOf(reason: Reason): RefusalRow {
  return reasons[reason]
}
