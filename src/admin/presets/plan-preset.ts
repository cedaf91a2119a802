// What saving a preset would change: a new version only if its content differs, and the other fields that differ.

import { isDeepStrictEqual } from 'node:util'
import type { Preset as PresetRow } from '../../../db/schema/schema.ts'
import { updatePreset } from '../../../db/tables/presets.ts'
import type { Bulk, Statement } from '../../../db/write/rows.ts'
import { Fault } from '../../fault.ts'
import { draftVersion, type NewVersion, type Preset, saveVersion } from '../../presets/drafts.ts'
import { encodeConfig, type PresetContent } from '../../presets/preset.ts'
import type { Version } from '../../presets/versions.ts'
import type { Needs } from '../operation/context.ts'

type PresetDescription = Partial<Pick<Preset, 'name' | 'description' | 'status' | 'managedBy'>>
type WantedPreset = { slug: string; described: PresetDescription; content: PresetContent }
export type PresetPlan = { before: Preset | undefined; after: Preset; version?: NewVersion; change: Partial<PresetRow> }

/** What saving a preset with this content would change. @throws Fault `conflict` if it is archived */
export async function planPreset(
  { registry, presets, now }: Needs<'registry' | 'presets' | 'now'>,
  draft: { organizationId: string; workspaceId: string; creatorId: string },
  { slug, described, content }: WantedPreset,
): Promise<PresetPlan> {
  const before = registry.presetsOf.get(draft.workspaceId)?.get(slug)
  if (before?.status === 'archived')
    throw new Fault('conflict', `The preset ${JSON.stringify(slug)} is archived; restore it first`)
  const known = before === undefined ? undefined : await presets.versionOf(before)
  const at = now()
  const isKept = before !== undefined && known !== undefined && isSame(known, content)
  const version = isKept
    ? undefined
    : draftVersion({ ...draft, slug, content, config: encodeConfig(content) }, before, at)
  const saved = version?.after ?? (before as Preset)
  const after = { ...saved, ...described }
  if (isDeepStrictEqual(after, saved)) return { before, after: saved, ...(version && { version }), change: {} }
  const status = after.status === saved.status ? {} : { statusUpdatedAt: at }
  const change = { ...described, ...status, updatedAt: at }
  return { before, after, ...(version && { version: { ...version, after: { ...after, ...change } } }), change }
}

/** What saves the changes of the plan. A new version shares statements with those of other plans; a new preset has its other fields in it. */
export function savePlan({ orm }: Needs<'orm'>, { before, after, version, change }: PresetPlan): (Statement | Bulk)[] {
  const isUpdated = before !== undefined && Object.keys(change).length > 0
  return [
    ...(version === undefined ? [] : [saveVersion(version)]),
    ...(isUpdated ? [updatePreset(orm, after.id, change)] : []),
  ]
}

function isSame(version: Version, { config, systemPrompt }: PresetContent): boolean {
  return version.systemPrompt === systemPrompt && isDeepStrictEqual(version.config, config)
}
