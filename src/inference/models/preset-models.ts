// Presets as the entries of a list of models (reference: Model list).
import { isAllowed } from '../../keys/admission.ts'
import type { Principal } from '../../keys/bearer.ts'
import type { Preset } from '../../presets/drafts.ts'
import type { PresetRegistry } from '../../presets/versions.ts'
import { presetMarker } from '../../values/preset-text.ts'

export type PresetModel = {
  id: string
  object: 'model'
  created: number
  owned_by: 'preset'
  name: string
  description: string | null
}

/**
 * The active presets of the workspace that the caller may use, with every model that they name. With a preset without a
 * model, callers name one.
 */
export function listPresetModels(principal: Principal, { registry }: { registry: PresetRegistry }): PresetModel[] {
  const presets = [...(registry.presetsOf.get(principal.key.workspaceId)?.values() ?? [])]
  return presets.filter((preset) => isUsable(preset, principal)).map(toModel)
}

/** The preset that is listed as `@preset/slug`. */
export function findPresetModel(
  id: string,
  principal: Principal,
  { registry }: { registry: PresetRegistry },
): PresetModel | undefined {
  const preset = registry.presetsOf.get(principal.key.workspaceId)?.get(id.slice(presetMarker.length))
  const isFound = id.startsWith(presetMarker) && preset !== undefined && isUsable(preset, principal)
  return isFound ? toModel(preset) : undefined
}

function isUsable({ status, slug, models }: Preset, principal: Principal): boolean {
  const isActive = status === 'active' && isAllowed(principal, 'presets', slug)
  return isActive && models.every((model) => isAllowed(principal, 'models', model))
}

function toModel({ slug, name, description, createdAt }: Preset): PresetModel {
  const created = Math.floor(createdAt / 1_000)
  return { id: `${presetMarker}${slug}`, object: 'model', created, owned_by: 'preset', name, description }
}
