// The responses of operations on upstreams, as shapes. None has a credential.
import { type } from '../../values/shape.ts'
import { responseOf } from '../kinds/fields.ts'
import { upstreamFields } from '../kinds/upstream.ts'

/** `created_at` and `updated_at` are null for the upstream of the settings. */
export const upstreamResponse = type(responseOf(upstreamFields)).configure({ title: 'Upstream' })

export const upstreamCheckResponse = type({
  name: 'string',
  base_url: 'string',
  ok: 'boolean',
  models: 'number.integer | null',
  problem: 'string | null',
  milliseconds: 'number.integer',
}).configure({ title: 'UpstreamCheck' })
