// Presets as the entries of a list of models (decisions §7).
import type { Context } from '../context.ts'
import { isAllowed, isLimited } from '../keys/admission.ts'
import type { Principal } from '../keys/bearer.ts'
import { presetMarker } from '../presets/reference.ts'
import type { Preset } from '../registry.ts'

export type PresetModel = {
  id: string
  object: 'model'
  created: number
  owned_by: 'preset'
  name: string
  description: string | null
}

/** The workspace's active presets that the caller may use, with the models that they name. */
export async function listPresetModels(principal: Principal, context: Context): Promise<PresetModel[]> {
  const mayUse = isAllowed(principal, 'allowedPresets')
  const listed: PresetModel[] = []
  for (const preset of context.registry.presetsOf.get(principal.key.workspaceId)?.values() ?? []) {
    if (preset.status !== 'active' || !mayUse(preset.slug)) continue
    if (await mayUseModelsOf(preset, principal, context)) listed.push(asModel(preset))
  }
  return listed
}

/** One without a model is for callers to name theirs. */
async function mayUseModelsOf(preset: Preset, principal: Principal, { presets }: Context): Promise<boolean> {
  if (!isLimited(principal, 'allowedModels')) return true
  const { model, models } = (await presets.versionOf(preset))?.config ?? {}
  const named = [...(typeof model === 'string' ? [model] : []), ...(Array.isArray(models) ? (models as string[]) : [])]
  return named.every(isAllowed(principal, 'allowedModels'))
}

function asModel({ slug, name, description, createdAt }: Preset): PresetModel {
  const created = Math.floor(createdAt / 1_000)
  return { id: `${presetMarker}${slug}`, object: 'model', created, owned_by: 'preset', name, description }
}
