// An issuer as operations show it, as a shape for the OpenAPI document.
import { keySources } from '../../../db/schema/schema.ts'
import { type } from '../../values/shape.ts'
import { keyBundleResponse } from './bundle-responses.ts'
import { lastUseFields } from './last-use-response.ts'

const text = 'string | null'
const time = type('string').configure({ format: 'date-time' })
const timeOrNull = time.or('null')

export const issuerResponse = type({
  id: 'string',
  name: 'string',
  issuer_url: 'string',
  organization_id: 'string',
  key_source: type.enumerated(...keySources),
  jwks_url: text,
  jwks: 'unknown',
  clock_skew_seconds: 'number.integer',
  max_token_age_seconds: 'number.integer | null',
  shared: 'boolean | null',
  ca_pem: text,
  ca_expires_at: timeOrNull,
  keys_stale_seconds: 'number.integer',
  keys_fetched_at: timeOrNull,
  keys_fresh_until: timeOrNull,
  keys: type({ kid: text, algorithm: 'string' }).array(),
  managed_by: text,
  bundle_signer: text,
  keys_expire_at: timeOrNull,
  key_bundle: keyBundleResponse.or('null'),
  created_at: time,
  updated_at: time,
  ...lastUseFields,
  'warnings?': 'string[]',
}).configure({ title: 'Issuer' })
