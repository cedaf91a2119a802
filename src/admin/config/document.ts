// A configuration document: its shape, and what a value that is left out means. Every rule of a value is that of the operation that sets it.

import {
  presetSlugCharactersMax,
  upstreamFirstByteSecondsDefault,
  upstreamIdleSecondsDefault,
  upstreamPriorityMax,
} from '../../limits.ts'
import { presetLabels } from '../../presets/shapes.ts'
import { isSame } from '../../values/same-json.ts'
import { type } from '../../values/shape.ts'
import { nameShape, referenceShape, textShape } from '../../values/shapes.ts'
import { defaultsOf, given } from '../kinds/fields.ts'
import { issuerFields } from '../kinds/issuer.ts'
import { keyFields } from '../kinds/key.ts'
import { policyFields } from '../kinds/policy.ts'
import { priceShape } from '../upstreams/prices.ts'
import { upstreamFields, upstreamUrlShape } from '../upstreams/upstream-input.ts'

/** The collections of a document, in the order in which they are saved: a policy refers to issuers and keys. */
export const kinds = ['issuers', 'keys', 'policies', 'presets', 'upstreams', 'prices'] as const
export type Kind = (typeof kinds)[number]
/** These belong to the installation instead of one organization. */
export const commonKinds: readonly Kind[] = ['upstreams', 'prices']

/** One object of a document, as it is compared: without nulls and defaults. */
export type Entry = Readonly<Record<string, unknown>>

const issuerEntry = type({ '+': 'reject', ...given(issuerFields, 'entry') })
const keyEntry = type({ '+': 'reject', ...given(keyFields, 'entry') })
const policyEntry = type({ '+': 'reject', ...given(policyFields, 'entry') })
const presetEntry = type({
  '+': 'reject',
  ...presetLabels,
  slug: textShape(1, presetSlugCharactersMax),
  'workspace?': nameShape,
  'status?': "'active' | 'disabled'",
  'system_prompt?': 'string | null',
  config: 'object',
})
const upstreamEntry = type({ '+': 'reject', ...upstreamFields, name: nameShape, base_url: upstreamUrlShape })

export const documentShape = type({
  '+': 'reject',
  latchkey: '1',
  'organization?': referenceShape,
  'owner?': nameShape,
  'owner_locks?': type('boolean').configure({ says: 'Refuse edits by hand to what the owner has' }),
  'issuers?': issuerEntry.array(),
  'keys?': keyEntry.array(),
  'policies?': policyEntry.array(),
  'presets?': presetEntry.array(),
  'upstreams?': upstreamEntry.array(),
  'prices?': priceShape.array(),
})
export type ConfigDocument = typeof documentShape.infer
export type EntryOf<Of extends Kind> = NonNullable<ConfigDocument[Of]>[number]

const defaults: Readonly<Record<Kind, Entry>> = {
  issuers: defaultsOf(issuerFields),
  keys: defaultsOf(keyFields),
  policies: defaultsOf(policyFields),
  presets: { workspace: 'default', status: 'active' },
  upstreams: {
    models: ['*'],
    priority: upstreamPriorityMax,
    first_byte_seconds: upstreamFirstByteSecondsDefault,
    idle_seconds: upstreamIdleSecondsDefault,
    forward_headers: [],
    return_headers: [],
  },
  prices: {},
}
/** What a field means that an entry leaves out; null if it is then not set. */
export function defaultOf(kind: Kind, field: string): unknown {
  return defaults[kind][field] ?? null
}

/** Lists whose order means nothing. */
const sets = ['models', 'allowed_models', 'allowed_presets', 'forward_headers', 'return_headers']

/** The same entry without what is null or a default, and with the lists that are sets sorted. Equal entries have equal texts. */
export function normalise(kind: Kind, entry: Entry): Entry {
  const common = defaults[kind]
  const kept = Object.entries(entry).flatMap(([field, value]) => {
    if (value === null || value === undefined) return []
    const isSet = sets.includes(field) && Array.isArray(value)
    const normal: unknown = isSet ? [...new Set(value)].toSorted() : value
    return field in common && isSame(normal, common[field]) ? [] : [[field, normal] as const]
  })
  return Object.fromEntries(kept)
}

/** What names an entry among those of its kind. */
export function nameOf(kind: Kind, entry: Entry): string {
  if (kind === 'prices') return String(entry.model)
  if (kind !== 'presets') return String(entry.name)
  const { workspace = 'default', slug } = entry
  return workspace === 'default' ? String(slug) : `${String(workspace)}/${String(slug)}`
}
