// The rows of a new preset version: its number follows the previous one, and presets are limited in number. It reads nothing.
import type { Actor } from '../../db/admin-changes.ts'
import { type DesignatedPreset, insertPresetVersions, modelsOf } from '../../db/presets.ts'
import type { PresetVersion } from '../../db/schema.ts'
import type { Statement } from '../../db/write.ts'
import { Fault } from '../fault.ts'
import { presetsMax } from '../limits.ts'
import type { PresetContent } from './preset.ts'

/** A preset with the models that its designated version names. */
export type Preset = Readonly<DesignatedPreset>
export type PresetChange = { before: Preset | undefined; after: Preset; actor: Actor; operation: string }

/** `config` is the JSON text that `encodeConfig` makes. */
export type VersionDraft = {
  organizationId: string
  workspaceId: string
  slug: string
  creatorId: string
  content: PresetContent
  config: string
}

/** A preset before and after a new version, and the version's row. */
export type NewVersion = { before: Preset | undefined; after: Preset; row: PresetVersion }

/** @throws Fault `invalid` when a workspace would have too many presets */
export function checkPresetCount(count: number): void {
  if (count > presetsMax) throw new Fault('invalid', `A workspace holds at most ${presetsMax} presets`)
}

/**
 * The next version after `before`, designated; `at` in milliseconds.
 * @throws Fault `conflict` while the preset is archived
 */
export function draftVersion(draft: VersionDraft, before: Preset | undefined, at: number): NewVersion {
  const { organizationId, workspaceId, slug, creatorId, content, config } = draft
  if (before?.status === 'archived')
    throw new Fault(
      'conflict',
      `Resource conflict: the preset ${JSON.stringify(slug)} is archived; restore it, or choose another slug`,
    )
  const version = (before?.latestVersion ?? 0) + 1
  const id = crypto.randomUUID()
  const after: Preset = Object.freeze({
    ...(before ?? {
      id: crypto.randomUUID(),
      organizationId,
      workspaceId,
      slug,
      name: slug,
      description: null,
      status: 'active',
      statusUpdatedAt: null,
      creatorId,
      createdAt: at,
    }),
    designatedVersion: version,
    latestVersion: version,
    updatedAt: at,
    designatedVersionId: id,
    models: modelsOf(content.config),
  })
  const { systemPrompt } = content
  return { before, after, row: { id, presetId: after.id, version, config, systemPrompt, creatorId, createdAt: at } }
}

/** The statements that commit these versions, in their order. A new preset may have several. */
export function versionStatements(versions: NewVersion[], at: number): Statement[] {
  const made = new Map<string, Preset>()
  const versionsMore = new Map<string, number>()
  for (const { before, after } of versions) {
    if (before === undefined || made.has(after.id)) made.set(after.id, after)
    else versionsMore.set(after.id, (versionsMore.get(after.id) ?? 0) + 1)
  }
  return insertPresetVersions(
    [...made.values()],
    { at, versionsMore },
    versions.map(({ row }) => row),
  )
}
