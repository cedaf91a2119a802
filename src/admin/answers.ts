// What admin operations answer with, as shapes: the functions that show a row are held to them, and the OpenAPI document tells them.
import { keySources } from '../../db/schema.ts'
import { steps } from '../federation/refusal.ts'
import { type } from '../shape.ts'

const text = 'string | null'
const list = <Item>(item: Item) => type({ data: type(item as never).array() })

export const issuerAnswer = type({
  id: 'string',
  name: 'string',
  issuer_url: 'string',
  organization_id: 'string',
  key_source: type.enumerated(...keySources),
  jwks_url: text,
  jwks: 'unknown',
  clock_skew_seconds: 'number.integer',
  max_token_age_seconds: 'number.integer | null',
  ca_pem: text,
  keys_stale_seconds: 'number.integer',
  keys_fetched_at: text,
  keys_fresh_until: text,
  created_at: 'string',
  updated_at: 'string',
})
export const policyAnswer = type({
  id: 'string',
  name: 'string',
  organization_id: 'string',
  issuer_id: 'string',
  issuer_url: 'string',
  issuer_deleted: 'boolean',
  audience: 'string',
  subject: text,
  condition: text,
  condition_environment: 'number.integer | null',
  required_scope: text,
  required_token_type: text,
  enabled: 'boolean',
  replay_protection: 'boolean',
  key_id: 'string',
  key_name: 'string',
  key_disabled: 'boolean',
  key_deleted: 'boolean',
  max_lifetime_seconds: 'number.integer',
  created_at: 'string',
  updated_at: 'string',
  'dry_run?': 'true',
})
export const exchangeAnswer = type({
  id: 'number.integer',
  at: 'string',
  request_id: 'string',
  outcome: "'issued' | 'refused'",
  error: text,
  reason: text,
  step: type.enumerated(...steps).or('null'),
  detail: text,
  organization_id: text,
  policy_id: text,
  policy_name: text,
  policy_named: text,
  issuer_id: text,
  issuer_url: text,
  key_id: text,
  subject: text,
  subject_token_id: text,
  subject_token_sha256: text,
  access_token_id: text,
  access_token_expires_at: text,
  client_address: text,
})
export const changeAnswer = type({
  id: 'number.integer',
  at: 'string',
  actor: "'local' | 'key' | 'server'",
  actor_key_id: text,
  request_id: text,
  operation: 'string',
  organization_id: text,
  kind: 'string',
  target_id: 'string',
  before: 'unknown',
  after: 'unknown',
})
export const explanationAnswer = type({
  policy_id: 'string',
  policy_name: 'string',
  accepted: 'boolean',
  steps: type({ step: type.enumerated(...steps), ok: 'boolean', 'reason?': 'string', 'detail?': 'string' }).array(),
  'condition?': type({ source: 'string', 'value?': 'string', 'error?': 'string' }).array(),
})
export const deletedAnswer = type({ id: 'string', deleted: 'true' })

/** `{ "data": … }`, as every answer over HTTP is. */
export const dataOf = <Item>(item: Item) => type({ data: item as never })
export const listOf = list
