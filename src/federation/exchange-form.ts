// The form of an exchange (reference: Token exchange; RFC 8693 §2.1): its fields, their valid values, and the order of
// the checks.

import { subjectTokenBytesMax } from '../limits.ts'
import { decodeUtf8 } from '../values/bytes.ts'
import { uuidText } from '../values/id-text.ts'
import { type Refusal, refuse } from './subject-token/refusal.ts'

export const tokenExchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const jwtTokenType = 'urn:ietf:params:oauth:token-type:jwt'
export const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'

/** `policyId` is a lowercase UUID. */
export type ExchangeForm = { policyId: string; subjectToken: string }

/** Fields that may occur only once. `audience` and `resource` may repeat and are ignored, as are unknown fields. */
const singleFields = new Set([
  'grant_type',
  'federation_policy_id',
  'subject_token',
  'subject_token_type',
  'requested_token_type',
  'scope',
  'actor_token',
  'actor_token_type',
])

/**
 * Parses the bytes of a form. A field without a value counts as omitted (RFC 6749 §3.2). It does not check whether the
 * token is a JWT.
 */
export function parseExchangeForm(body: Uint8Array): ExchangeForm | Refusal {
  const fields = readFields(body)
  if (!(fields instanceof Map)) return fields
  const value = (name: string) => fields.get(name) || undefined

  const grantType = value('grant_type')
  if (grantType === undefined) return refuse('field_missing', 'grant_type')
  if (grantType !== tokenExchangeGrant) return refuse('grant_type')
  if (value('actor_token') !== undefined || value('actor_token_type') !== undefined) return refuse('actor_token')

  const subjectTokenType = value('subject_token_type')
  if (subjectTokenType === undefined) return refuse('field_missing', 'subject_token_type')
  if (subjectTokenType !== jwtTokenType) return refuse('subject_token_type')
  if ((value('requested_token_type') ?? accessTokenType) !== accessTokenType) return refuse('requested_token_type')

  const policyId = value('federation_policy_id')
  if (policyId === undefined) return refuse('field_missing', 'federation_policy_id')
  if (!uuidText.test(policyId)) return refuse('policy_id_malformed', recordable(policyId))
  const subjectToken = value('subject_token')
  if (subjectToken === undefined) return refuse('field_missing', 'subject_token')
  if (Buffer.byteLength(subjectToken) > subjectTokenBytesMax) return refuse('subject_token_too_large')
  if ((value('scope') ?? 'inference') !== 'inference') return refuse('scope')
  return { policyId: policyId.toLowerCase(), subjectToken }
}

/**
 * Returns the value that was sent instead of an id, for the audit: it can be the policy's name. Other text can be a
 * misplaced credential and is not recorded.
 */
function recordable(text: string): string {
  return /^[\w-]{1,64}$/.test(text) ? text : '(not an id)'
}

function readFields(body: Uint8Array): Map<string, string> | Refusal {
  const text = decodeUtf8(body)
  if (text === undefined) return refuse('form_malformed')
  const fields = new Map<string, string>()
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const split = pair.indexOf('=')
    const name = decodeField(split < 0 ? pair : pair.slice(0, split))
    const value = split < 0 ? '' : decodeField(pair.slice(split + 1))
    if (name === undefined || value === undefined) return refuse('form_malformed')
    if (!singleFields.has(name)) continue
    if (fields.has(name)) return refuse('field_repeated', name)
    fields.set(name, value)
  }
  return fields
}

function decodeField(text: string): string | undefined {
  if (!/[%+]/.test(text)) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
