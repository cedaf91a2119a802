// Uses a preset: finds the one that a request names, in the workspace of its key, and completes the body with it.
import { Fault } from '../fault.ts'
import type { JsonTarget } from '../values/inference-paths.ts'
import { applyPreset } from './apply.ts'
import type { PresetReference } from './reference.ts'
import type { Fields } from './schema/fields.ts'
import type { PresetRegistry, Presets } from './versions.ts'

export type CompletedRequest = {
  fields: Fields
  /** The version that was used, as `slug@3`. */
  presetVersion: string
}

/**
 * Missing, disabled and archived presets, and those of other workspaces, look the same to the caller (reference: Using a preset).
 * @throws Fault `not_found` that names the preset, and as `applyPreset`
 */
export async function completeBody(
  target: JsonTarget,
  body: Fields,
  { slug, version: pinned }: PresetReference,
  workspaceId: string,
  { registry, presets }: { registry: PresetRegistry; presets: Presets },
): Promise<CompletedRequest> {
  const preset = registry.presetsOf.get(workspaceId)?.get(slug)
  if (preset?.status !== 'active')
    throw new Fault(
      'not_found',
      `The preset ${JSON.stringify(slug)} does not exist or is not active: use one of GET /presets`,
      {
        reason: `preset_${preset?.status ?? 'unknown'}`,
        subject: preset && { kind: 'preset', id: preset.id },
      },
    )
  const version = await presets.versionOf(preset, pinned)
  if (version === undefined)
    throw new Fault(
      'not_found',
      `The preset ${JSON.stringify(slug)} has no version ${pinned}: use one of GET /presets/${slug}/versions`,
      {
        reason: 'preset_version_unknown',
      },
    )
  return { fields: applyPreset(target, version, body), presetVersion: `${slug}@${version.version}` }
}
