// The managed kinds, by the name of their collection in a document, in the order in which they are saved: a policy refers to issuers and keys.

import type { ChangeKind } from '../../../db/tables/admin-changes.ts'
import { inputEntriesMax, presetsMax } from '../../limits.ts'
import { budgetFields } from './budget.ts'
import type { Fields } from './fields.ts'
import { issuerFields } from './issuer.ts'
import { keyFields } from './key.ts'
import { policyFields } from './policy.ts'
import { presetFields } from './preset.ts'
import { priceFields } from './price.ts'
import { upstreamFields } from './upstream.ts'
import { webhookFields } from './webhook.ts'

/** One object of a document, as it is compared: without nulls and defaults. */
export type Entry = Readonly<Record<string, unknown>>

type KindRecord = {
  /** In the log of changes, and in operations. */
  one: ChangeKind
  fields: Fields
  /** It belongs to the installation instead of one organization. */
  isCommon?: true
  /** Why no policy is judged again after an edit of it; missing where the fields say who judges them. */
  why?: string
  /** Entries of a document, where they are more than in other inputs. */
  entriesMax?: number
  /** What names an entry among those of its kind. */
  nameOf: (entry: Entry) => string
}

const byName = ({ name }: Entry) => String(name)

export const kindRecords = {
  issuers: { one: 'issuer', fields: issuerFields, nameOf: byName },
  keys: {
    one: 'key',
    fields: keyFields,
    nameOf: byName,
    why: 'a policy decides about tokens, not about the key that they act as',
  },
  policies: { one: 'policy', fields: policyFields, nameOf: byName },
  presets: {
    one: 'preset',
    fields: presetFields,
    entriesMax: presetsMax,
    nameOf: presetName,
    why: 'a policy only names presets',
  },
  upstreams: {
    one: 'upstream',
    fields: upstreamFields,
    isCommon: true,
    nameOf: byName,
    why: 'a policy does not name it',
  },
  prices: {
    one: 'price',
    fields: priceFields,
    isCommon: true,
    nameOf: ({ model }) => String(model),
    why: 'a policy does not name it',
  },
  budgets: { one: 'budget', fields: budgetFields, nameOf: byName, why: 'a policy does not name it' },
  webhooks: { one: 'webhook', fields: webhookFields, nameOf: byName, why: 'a policy does not name it' },
} as const satisfies Record<string, KindRecord>

export type Kind = keyof typeof kindRecords
export const kinds = Object.keys(kindRecords) as Kind[]

function presetName({ workspace = 'default', slug }: Entry): string {
  return workspace === 'default' ? String(slug) : `${String(workspace)}/${String(slug)}`
}

export function recordOf(kind: Kind): KindRecord {
  return kindRecords[kind]
}

/** How many entries a document may have of a kind. */
export function entriesMaxOf(kind: Kind): number {
  return recordOf(kind).entriesMax ?? inputEntriesMax
}

/** What a field means that an entry leaves out; null if it is then not set. */
export function defaultOf(kind: Kind, field: string): unknown {
  return recordOf(kind).fields[field]?.default ?? null
}

/** The fields that a document may take from a file or the environment, by the name of a collection. */
export function sourcedIn(collection: string): string[] {
  const kind = kinds.find((each) => each === collection)
  const fields: Fields = kind === undefined ? {} : kindRecords[kind].fields
  const sourced = Object.entries(fields).filter(([, { isSourced }]) => isSourced === true)
  return sourced.map(([name]) => name)
}
