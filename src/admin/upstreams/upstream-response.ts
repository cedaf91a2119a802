// The responses of operations on upstreams, as shapes. None has a credential.
import { type } from '../../values/shape.ts'

const time = type('string').configure({ format: 'date-time' })

const text = 'string | null'
const exchange = type({ token_file: 'string', url: text, policy: text, audience: text, scope: text })

/** `created_at` and `updated_at` are null for the upstream of the settings. */
export const upstreamResponse = type({
  id: 'string',
  name: 'string',
  managed_by: 'string | null',
  base_url: 'string',
  has_credential: 'boolean',
  credential_exchange: exchange.or('null'),
  models: 'string[]',
  priority: 'number.integer',
  ca_pem: 'string | null',
  first_byte_seconds: 'number.integer',
  idle_seconds: 'number.integer',
  forward_headers: 'string[]',
  return_headers: 'string[]',
  created_at: time.or('null'),
  updated_at: time.or('null'),
}).configure({ title: 'Upstream' })

export const upstreamCheckResponse = type({
  name: 'string',
  base_url: 'string',
  ok: 'boolean',
  models: 'number.integer | null',
  problem: 'string | null',
  milliseconds: 'number.integer',
}).configure({ title: 'UpstreamCheck' })
