// The presets, upstreams and prices that the entries of a document would save. The credential of an upstream is compared, but never shown.
import { insertUpstream, putPrices, updateUpstream } from '../../../db/tables/upstreams.ts'
import { Fault } from '../../fault.ts'
import { configuredUpstreamName } from '../../inference/upstream/targets.ts'
import { checkPresetCount } from '../../presets/drafts.ts'
import { readPresetContent } from '../../presets/preset.ts'
import { checkPresetSlug } from '../../presets/reference.ts'
import { checkCertificates } from '../issuers/issuer-input.ts'
import { planPreset, savePlan } from '../presets/plan-preset.ts'
import { draftPrice } from '../upstreams/prices.ts'
import { exchangeColumn } from '../upstreams/upstream-input.ts'
import { credentialColumn, draftUpstream } from '../upstreams/upstreams.ts'
import type { EntryOf } from './document.ts'
import { type Draft, type DraftState, ownerOf, userIdOf, workspaceIdOf } from './drafts.ts'
import { presetEntry, priceEntry, upstreamEntry } from './entries.ts'
import { isOtherSecret } from './other-secret.ts'
import type { SavedEntry } from './plan.ts'

export async function draftPresetEntry(
  drafting: DraftState,
  wanted: EntryOf<'presets'>,
  saved: SavedEntry | undefined,
): Promise<Draft> {
  const { context, organizationId } = drafting
  const { slug, workspace = 'default', config, system_prompt } = wanted
  checkPresetSlug(slug)
  const content = readPresetContent(slug, JSON.stringify({ config, system_prompt }))
  const creatorId = await userIdOf(drafting, 'admin')
  const names = { organizationId, workspaceId: workspaceIdOf(drafting, workspace), creatorId }
  const described = {
    name: wanted.name ?? slug,
    description: wanted.description ?? null,
    status: wanted.status ?? 'active',
    managedBy: ownerOf(drafting, saved),
  }
  const plan = await planPreset(context, names, { slug, described, content })
  if (plan.before === undefined) countPreset(drafting, names.workspaceId)
  const entry = presetEntry(plan.after, workspace, content)
  return { entry, id: plan.after.id, save: () => savePlan(context, plan) }
}

/** @throws Fault `invalid` when the workspace would have too many presets. Archived ones count: their slugs stay taken. */
function countPreset({ context, presetCounts }: DraftState, workspaceId: string): void {
  const before = presetCounts.get(workspaceId) ?? context.registry.presetsOf.get(workspaceId)?.size ?? 0
  checkPresetCount(before + 1)
  presetCounts.set(workspaceId, before + 1)
}

export async function draftUpstreamEntry(
  drafting: DraftState,
  wanted: EntryOf<'upstreams'>,
  saved: SavedEntry | undefined,
): Promise<Draft> {
  const { context, now } = drafting
  if (wanted.name === configuredUpstreamName)
    throw new Fault('conflict', 'this upstream comes from LATCHKEY_UPSTREAM_URL; change it there')
  if (typeof wanted.ca_pem === 'string') checkCertificates(wanted.ca_pem)
  const before = saved && context.registry.upstreams.get(saved.id)
  const drafted = draftUpstream(wanted, now)
  const { id, createdAt, credentialEncrypted } = before ?? drafted
  const sealed = { id, sealed: credentialEncrypted }
  const isChanged = await isOtherSecret(context, sealed, wanted.credential)
  const row = {
    ...{ ...drafted, id, createdAt, credentialEncrypted, managedBy: ownerOf(drafting, saved) },
    ...(isChanged ? await credentialColumn(context, id, wanted.credential) : {}),
    ...exchangeColumn(wanted, drafted.baseUrl),
  }
  const entry = { ...upstreamEntry(row), ...(isChanged ? { credential: 'changed' } : {}) }
  const { orm } = context
  return { entry, id, save: () => [before ? updateUpstream(orm, id, row) : insertUpstream(orm, row)] }
}

export function draftPriceEntry(drafting: DraftState, wanted: EntryOf<'prices'>, saved?: SavedEntry): Draft {
  const row = { ...draftPrice(wanted, drafting.now), managedBy: ownerOf(drafting, saved) }
  return { entry: priceEntry(row), id: row.model, save: () => putPrices([row]) }
}
