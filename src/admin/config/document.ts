// The shape of a configuration document. Every rule of a value is that of the operation that sets it.

import { type } from '../../values/shape.ts'
import { nameShape, referenceShape } from '../../values/shapes.ts'
import { given } from '../kinds/fields.ts'
import { issuerFields } from '../kinds/issuer.ts'
import { keyFields } from '../kinds/key.ts'
import type { Kind } from '../kinds/kinds.ts'
import { policyFields } from '../kinds/policy.ts'
import { presetFields } from '../kinds/preset.ts'
import { priceFields } from '../kinds/price.ts'
import { upstreamFields } from '../kinds/upstream.ts'

export const documentShape = type({
  '+': 'reject',
  latchkey: '1',
  'organization?': referenceShape,
  'owner?': nameShape,
  'owner_locks?': type('boolean').configure({ says: 'Refuse edits by hand to what the owner has' }),
  'issuers?': type({ '+': 'reject', ...given(issuerFields, 'entry') }).array(),
  'keys?': type({ '+': 'reject', ...given(keyFields, 'entry') }).array(),
  'policies?': type({ '+': 'reject', ...given(policyFields, 'entry') }).array(),
  'presets?': type({ '+': 'reject', ...given(presetFields, 'entry') }).array(),
  'upstreams?': type({ '+': 'reject', ...given(upstreamFields, 'entry') }).array(),
  'prices?': type({ '+': 'reject', ...given(priceFields, 'entry') }).array(),
})
export type ConfigDocument = typeof documentShape.infer
export type EntryOf<Of extends Kind> = NonNullable<ConfigDocument[Of]>[number]
