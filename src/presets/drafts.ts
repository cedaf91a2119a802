// The rows of a new preset version: its number follows the previous one, and presets are limited in number. It reads nothing.

import type { PresetVersion } from '../../db/schema/schema.ts'
import type { Actor, TouchedRow } from '../../db/tables/admin-changes.ts'
import { type DesignatedPreset, insertPresetVersions, modelsOf } from '../../db/tables/presets.ts'
import { type Bulk, createBulk, type Statement } from '../../db/write/rows.ts'
import { Fault } from '../fault.ts'
import { presetsMax } from '../limits.ts'
import type { PresetContent } from './preset.ts'

/** A preset with the models that its designated version names. */
export type Preset = Readonly<DesignatedPreset>

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

/** A version to be committed, and who creates it. `touched` are the other rows that the statements create. */
export type PlannedVersion = {
  version: NewVersion
  statements: (Statement | Bulk)[]
  touched: TouchedRow[]
  actor: Actor
  operation: string
}
/** Commits what the plan returns with a record of it, and loads it. When a transaction with others fails, it plans again. */
export type CommitVersion = (plan: (transaction: object) => PlannedVersion) => Promise<PlannedVersion>

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
      managedBy: null,
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

/** The statements of new versions, in their order. They were planned at the same time; a new preset may have several of them. */
function versionStatements(versions: NewVersion[]): Statement[] {
  const created = new Map<string, Preset>()
  const versionsMore = new Map<string, number>()
  for (const { before, after } of versions) {
    if (before === undefined || created.has(after.id)) created.set(after.id, after)
    else versionsMore.set(after.id, (versionsMore.get(after.id) ?? 0) + 1)
  }
  return insertPresetVersions(
    [...created.values()],
    { at: versions[0]?.after.updatedAt ?? 0, versionsMore },
    versions.map(({ row }) => row),
  )
}

/** A new version as part of a change. */
export const saveVersion = createBulk(versionStatements)
