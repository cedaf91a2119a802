// Webhooks as entries of a document: what is saved, and what an entry would save. The secret is compared, but never shown.

import type { Webhook } from '../../../db/schema/alert-schema.ts'
import { listSigningKeys } from '../../../db/tables/signing-keys.ts'
import { insertWebhook, updateWebhook } from '../../../db/tables/webhooks.ts'
import { Fault } from '../../fault.ts'
import { openSecrets } from '../../monitoring/alerts/outbox.ts'
import { openMasterKey } from '../../tokens/keyring.ts'
import { isSame } from '../../values/same-json.ts'
import { entryOf } from '../kinds/fields.ts'
import type { Entry } from '../kinds/kinds.ts'
import { webhookFields } from '../kinds/webhook.ts'
import type { Needs } from '../operation/context.ts'
import { checkWebhook, draftWebhook, sealSecret } from '../webhooks/webhooks.ts'
import type { EntryOf } from './document.ts'
import { type Draft, type DraftState, ownerOf } from './drafts.ts'
import { oursIn } from './entries.ts'
import type { SavedEntry } from './plan.ts'

export function readWebhooks({ registry }: Needs<'registry'>, organizationId: string): SavedEntry[] {
  return oursIn(registry.webhooks.values(), organizationId).map((row) => {
    const { id, name, managedBy, updatedAt } = row
    return { id, name, managedBy, updatedAt, entry: webhookEntry(row) }
  })
}

function webhookEntry(row: Readonly<Webhook>): Entry {
  return entryOf(webhookFields, row, {})
}

/** An entry without a secret keeps the saved one. */
export async function draftWebhookEntry(
  drafting: DraftState,
  { enabled, secret, ...wanted }: EntryOf<'webhooks'>,
  saved: SavedEntry | undefined,
): Promise<Draft> {
  const { context, organizationId, now } = drafting
  const { registry, orm } = context
  const before = saved && registry.webhooks.get(saved.id)
  if (before === undefined && secret === undefined)
    throw new Fault('invalid', 'A new webhook needs a secret that its receiver knows: add secret')
  const isChanged = secret !== undefined && (await secretOf(context, before)) !== secret
  const kept = before && {
    id: before.id,
    createdAt: before.createdAt,
    credentialEncrypted: before.credentialEncrypted,
  }
  const drafted: Webhook = {
    ...draftWebhook(wanted, organizationId, now),
    ...kept,
    enabled: enabled ?? true,
    managedBy: ownerOf(drafting, saved),
  }
  const sealed = isChanged ? { credentialEncrypted: await sealSecret(context, drafted, secret) } : {}
  const row = { ...drafted, ...sealed }
  const entry = { ...webhookEntry(row), ...(isChanged ? { secret: 'changed' } : {}) }
  if (!isSame(entry, saved?.entry)) checkWebhook(context, row)
  return { entry, id: row.id, save: () => [before ? updateWebhook(orm, row.id, row) : insertWebhook(orm, row)] }
}

async function secretOf(
  { config, orm, now }: Needs<'config' | 'orm' | 'now'>,
  before: Readonly<Webhook> | undefined,
): Promise<string | undefined> {
  if (before === undefined) return undefined
  const masterKey = await openMasterKey(config.masterKey, await listSigningKeys(orm))
  return (await openSecrets(masterKey, before, now()))?.[0]
}
