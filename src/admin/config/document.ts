// The shape of a configuration document. Every rule of a value is that of the operation that sets it.

import { presetBodyDepthMax } from '../../limits.ts'
import { type Bounds, type } from '../../values/shape.ts'
import { nameShape, referenceShape } from '../../values/shapes.ts'
import { budgetFields } from '../kinds/budget.ts'
import { given } from '../kinds/fields.ts'
import { issuerFields } from '../kinds/issuer.ts'
import { keyFields } from '../kinds/key.ts'
import { entriesMaxOf, type Kind, kinds } from '../kinds/kinds.ts'
import { policyFields } from '../kinds/policy.ts'
import { presetFields } from '../kinds/preset.ts'
import { priceFields } from '../kinds/price.ts'
import { upstreamFields } from '../kinds/upstream.ts'
import { webhookFields } from '../kinds/webhook.ts'

/** Of an input that has documents. The deepest are settings of a preset, in an entry of a list of one of the documents of the input. */
export const documentBounds: Bounds = {
  depth: presetBodyDepthMax + 5,
  entries: Math.max(...kinds.map(entriesMaxOf)),
}

export const documentShape = type({
  '+': 'reject',
  latchkey: '1',
  'organization?': referenceShape,
  'owner?': nameShape,
  'owner_locks?': type('boolean').configure({ says: 'Refuse edits by hand to what the owner has' }),
  'issuers?': type({ '+': 'reject', ...given(issuerFields, 'entry') })
    .array()
    .atMostLength(entriesMaxOf('issuers')),
  'keys?': type({ '+': 'reject', ...given(keyFields, 'entry') })
    .array()
    .atMostLength(entriesMaxOf('keys')),
  'policies?': type({ '+': 'reject', ...given(policyFields, 'entry') })
    .array()
    .atMostLength(entriesMaxOf('policies')),
  'presets?': type({ '+': 'reject', ...given(presetFields, 'entry') })
    .array()
    .atMostLength(entriesMaxOf('presets')),
  'upstreams?': type({ '+': 'reject', ...given(upstreamFields, 'entry') })
    .array()
    .atMostLength(entriesMaxOf('upstreams')),
  'prices?': type({ '+': 'reject', ...given(priceFields, 'entry') })
    .array()
    .atMostLength(entriesMaxOf('prices')),
  'budgets?': type({ '+': 'reject', ...given(budgetFields, 'entry') })
    .array()
    .atMostLength(entriesMaxOf('budgets')),
  'webhooks?': type({ '+': 'reject', ...given(webhookFields, 'entry') })
    .array()
    .atMostLength(entriesMaxOf('webhooks')),
})
export type ConfigDocument = typeof documentShape.infer
export type EntryOf<Of extends Kind> = NonNullable<ConfigDocument[Of]>[number]
