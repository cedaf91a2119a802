// What a document does with the objects of each kind: reads what is saved, drafts what an entry would save, and removes.

import type { Orm } from '../../../db/file/open.ts'
import { apiKeyBulks } from '../../../db/tables/api-keys.ts'
import { updateBudget } from '../../../db/tables/budgets.ts'
import { updateIssuer } from '../../../db/tables/issuers.ts'
import { policyBulks } from '../../../db/tables/policies.ts'
import { updatePreset } from '../../../db/tables/presets.ts'
import { deletePrice, updateUpstream } from '../../../db/tables/upstreams.ts'
import { updateWebhook } from '../../../db/tables/webhooks.ts'
import type { Bulk, Statement } from '../../../db/write/rows.ts'
import type { Entry, Kind } from '../kinds/kinds.ts'
import type { Needs } from '../operation/context.ts'
import { draftBudgetEntry, readBudgets } from './budget-entries.ts'
import type { EntryOf } from './document.ts'
import { type Draft, type DraftState, draftIssuerEntry, draftKeyEntry, draftPolicyEntry } from './drafts.ts'
import { readIssuers, readKeys, readPolicies, readPresets, readPrices, readUpstreams } from './entries.ts'
import { draftPresetEntry, draftPriceEntry, draftUpstreamEntry } from './inference-drafts.ts'
import type { SavedEntry } from './plan.ts'
import { draftWebhookEntry, readWebhooks } from './webhook-entries.ts'

type ReadContext = Needs<'orm' | 'registry' | 'presets'>
type Collection = {
  /** In no order. */
  read: (context: ReadContext, organizationId: string) => Promise<SavedEntry[]> | SavedEntry[]
  /** The shape of the document has checked that the entry is one of this kind. */
  draft: (drafting: DraftState, entry: Entry, saved: SavedEntry | undefined) => Promise<Draft> | Draft
  /** As the operation on one object does. */
  remove: (orm: Orm, id: string, now: number) => Statement | Bulk
}

const deleted = (now: number) => ({ deletedAt: now, updatedAt: now })

export const collections: Readonly<Record<Kind, Collection>> = {
  issuers: {
    read: readIssuers,
    draft: (drafting, entry, saved) => draftIssuerEntry(drafting, entry as EntryOf<'issuers'>, saved),
    remove: (orm, id, now) => updateIssuer(orm, id, deleted(now)),
  },
  keys: {
    read: readKeys,
    draft: (drafting, entry, saved) => draftKeyEntry(drafting, entry as EntryOf<'keys'>, saved),
    remove: (_orm, id, now) => apiKeyBulks.update({ id, ...deleted(now) }),
  },
  policies: {
    read: readPolicies,
    draft: (drafting, entry, saved) => draftPolicyEntry(drafting, entry as EntryOf<'policies'>, saved),
    remove: (_orm, id, now) => policyBulks.update({ id, ...deleted(now) }),
  },
  presets: {
    read: readPresets,
    draft: (drafting, entry, saved) => draftPresetEntry(drafting, entry as EntryOf<'presets'>, saved),
    remove: (orm, id, now) => updatePreset(orm, id, { status: 'archived', statusUpdatedAt: now, updatedAt: now }),
  },
  upstreams: {
    read: readUpstreams,
    draft: (drafting, entry, saved) => draftUpstreamEntry(drafting, entry as EntryOf<'upstreams'>, saved),
    remove: (orm, id, now) => updateUpstream(orm, id, { ...deleted(now), credentialEncrypted: null }),
  },
  prices: {
    read: readPrices,
    draft: (drafting, entry, saved) => draftPriceEntry(drafting, entry as EntryOf<'prices'>, saved),
    remove: (orm, id, now) => deletePrice(orm, id, now),
  },
  budgets: {
    read: readBudgets,
    draft: (drafting, entry, saved) => draftBudgetEntry(drafting, entry as EntryOf<'budgets'>, saved),
    remove: (orm, id, now) => updateBudget(orm, id, deleted(now)),
  },
  webhooks: {
    read: readWebhooks,
    draft: (drafting, entry, saved) => draftWebhookEntry(drafting, entry as EntryOf<'webhooks'>, saved),
    remove: (orm, id, now) => updateWebhook(orm, id, { ...deleted(now), credentialEncrypted: null }),
  },
}
