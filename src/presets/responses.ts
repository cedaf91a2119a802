// Presets on the wire (reference: Presets; Preset versions): the shapes for the OpenAPI document, and the functions that return them.
import { type PresetVersion, presetStatuses } from '../../db/schema/schema.ts'
import { type } from '../values/shape.ts'
import type { Preset } from './drafts.ts'
import type { Version } from './versions.ts'

/** ISO 8601 UTC. */
const time = type('string').configure({ format: 'date-time' })

export const versionResponse = type({
  id: 'string',
  preset_id: 'string',
  version: 'number.integer',
  config: 'object',
  system_prompt: 'string | null',
  creator_id: 'string',
  created_at: time,
  updated_at: time,
}).configure({ title: 'PresetVersion' })
const presetFields = {
  id: 'string',
  name: 'string',
  slug: 'string',
  description: 'string | null',
  status: type.enumerated(...presetStatuses),
  status_updated_at: time.or('null'),
  created_at: time,
  updated_at: time,
  creator_user_id: 'string',
  workspace_id: 'string',
  designated_version_id: 'string',
} as const
export const presetResponse = type(presetFields).configure({ title: 'Preset' })
export const designatedPresetResponse = type({ ...presetFields, designated_version: versionResponse }).configure({
  title: 'PresetWithDesignatedVersion',
})

export function showPreset(preset: Preset): typeof presetResponse.infer {
  return {
    id: preset.id,
    name: preset.name,
    slug: preset.slug,
    description: preset.description,
    status: preset.status,
    status_updated_at: preset.statusUpdatedAt === null ? null : timeOf(preset.statusUpdatedAt),
    created_at: timeOf(preset.createdAt),
    updated_at: timeOf(preset.updatedAt),
    creator_user_id: preset.creatorId,
    workspace_id: preset.workspaceId,
    designated_version_id: preset.designatedVersionId,
  }
}

/** A version never changes, so `updated_at` is its creation time. */
export function showVersion(version: Version): typeof versionResponse.infer {
  return {
    id: version.id,
    preset_id: version.presetId,
    version: version.version,
    config: version.config,
    system_prompt: version.systemPrompt,
    creator_id: version.creatorId,
    created_at: timeOf(version.createdAt),
    updated_at: timeOf(version.createdAt),
  }
}

/** The same as JSON text, from a row whose config is already JSON and may be long. */
export function versionText({ config, ...row }: PresetVersion): string {
  const { config: _config, ...shown } = showVersion({ ...row, config: {} })
  return `${JSON.stringify(shown).slice(0, -1)},"config":${config}}`
}

export function showDesignated(preset: Preset, version: Version): typeof designatedPresetResponse.infer {
  return { ...showPreset(preset), designated_version: showVersion(version) }
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
