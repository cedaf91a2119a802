// A preset in use: finds the one that a request names, in the workspace of its key, and completes the body with it.
import { Fault } from '../fault.ts'
import { applyPreset, type Target } from './apply.ts'
import type { PresetReference } from './reference.ts'
import type { Fields } from './schema/fields.ts'
import type { PresetRegistry, Presets } from './versions.ts'

export type Completed = {
  fields: Fields
  /** Which version it was, as `slug@3`. */
  presetVersion: string
}

/**
 * An absent preset, another workspace's, a disabled and an archived one are all the same to the caller (reference: Using a preset).
 * @throws Fault `not_found` naming it, and as `applyPreset`
 */
export async function completeBody(
  target: Target,
  body: Fields,
  { slug, version: pinned }: PresetReference,
  workspaceId: string,
  { registry, presets }: { registry: PresetRegistry; presets: Presets },
): Promise<Completed> {
  const preset = registry.presetsOf.get(workspaceId)?.get(slug)
  if (preset?.status !== 'active')
    throw new Fault('not_found', `There is no preset ${JSON.stringify(slug)}`, {
      reason: preset === undefined ? 'preset_unknown' : `preset_${preset.status}`,
    })
  const version = await presets.versionOf(preset, pinned)
  if (version === undefined)
    throw new Fault('not_found', `There is no version ${pinned} of the preset ${JSON.stringify(slug)}`)
  return { fields: applyPreset(target, version, body), presetVersion: `${slug}@${version.version}` }
}
