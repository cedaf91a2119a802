// Presets as files: what `latchkey presets export` prints and `import` reads, to keep presets in a repository or to move them.

import { isDeepStrictEqual } from 'node:util'
import { mapInSlices } from '../../../db/read/pace.ts'
import type { Preset as PresetRow } from '../../../db/schema/schema.ts'
import { updatePreset } from '../../../db/tables/presets.ts'
import type { Bulk, Statement } from '../../../db/write/rows.ts'
import { Fault } from '../../fault.ts'
import { findOrDraftUser, type UserDraft } from '../../keys/users.ts'
import { presetPageRowsMax, presetsAtOnceMax } from '../../limits.ts'
import type { Preset } from '../../presets/drafts.ts'
import { checkPresetCount, draftVersion, type NewVersion, saveVersion } from '../../presets/drafts.ts'
import { encodeConfig, type PresetContent, readPresetContent } from '../../presets/preset.ts'
import { checkPresetSlug } from '../../presets/reference.ts'
import { presetLabels } from '../../presets/shapes.ts'
import type { Version } from '../../presets/versions.ts'
import { type } from '../../values/shape.ts'
import { referenceShape } from '../../values/shapes.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { findVersion, findWorkspaceOf } from './find-preset.ts'
import { jsonText, within } from './presets.ts'

const exportInput = type({ ...within, 'presets?': referenceShape.array(), 'after?': referenceShape })
const importedShape = type({
  '+': 'reject',
  ...presetLabels,
  slug: 'string',
  'status?': "'active' | 'disabled'",
  content: jsonText,
})
const importInput = type({
  ...within,
  presets: importedShape.array().atMostLength(presetsAtOnceMax),
  'dry_run?': 'boolean',
  // The number of presets that earlier parts of the same file will create.
  'created_before?': 'number.integer >= 0',
})

export const presetFileOperations = {
  'presets.export': operation(exportInput, exportSome),
  'presets.import': operation(importInput, importAll, { mutates: true }),
}

/** The named presets (`support@3` for its third version), or all in the order of their slugs, by pages, in the format of `presets.import`. */
async function exportSome(context: Needs<'orm' | 'registry' | 'presets'>, input: typeof exportInput.infer) {
  const { id } = await findWorkspaceOf(context, input)
  const all = [...(context.registry.presetsOf.get(id)?.values() ?? [])].filter(({ status }) => status !== 'archived')
  const asked = input.presets ?? all.map(({ slug }) => slug)
  const left = [...new Set(asked)].toSorted().filter((text) => text > (input.after ?? ''))
  const data = await mapInSlices(left.slice(0, presetPageRowsMax), async (text) => {
    const { preset, version } = await findVersion(context, { ...input, preset: text })
    const { slug, name, description, status } = preset
    return { slug, name, description, status, system_prompt: version.systemPrompt, config: version.config }
  })
  return { data, ...(left.length > data.length ? { more_after: left[data.length - 1] } : {}) }
}

type PresetDescription = Partial<Pick<Preset, 'name' | 'description' | 'status' | 'managedBy'>>
type WantedPreset = { slug: string; described: PresetDescription; content: PresetContent }
/** What an import changes of a preset: a new version if the content differs, and the other fields that differ. */
export type PresetPlan = { before: Preset | undefined; after: Preset; version?: NewVersion; change: Partial<PresetRow> }
type ImportResult = { slug: string; version: number; outcome: 'created' | 'changed' | 'unchanged' }

/** Checks all presets, then commits them together unless it is a dry run. Presets that do not differ stay as they are. */
async function importAll(context: ChangeContext & Needs<'presets'>, input: typeof importInput.infer) {
  const { id: workspaceId, organizationId } = await findWorkspaceOf(context, input)
  const wanted = await readWanted(input.presets)
  const creator = await findOrDraftUser(context, organizationId, 'admin')
  const draft = { organizationId, workspaceId, creatorId: creator.user.id }
  const plans = await mapInSlices(wanted, (each) => planPreset(context, draft, each))
  const made = plans.filter(({ before }) => before === undefined).length
  const others = (context.registry.presetsOf.get(workspaceId)?.size ?? 0) + (input.created_before ?? 0)
  if (made > 0) checkPresetCount(others + made)
  if (input.dry_run !== true) await commitPlans(context, creator, plans)
  return { data: plans.map(showPlan) }
}

function readWanted(presets: (typeof importInput.infer)['presets']): Promise<WantedPreset[]> {
  const slugs = new Set<string>()
  return mapInSlices(presets, ({ slug, content, ...described }) => {
    checkPresetSlug(slug)
    if (slugs.has(slug))
      throw new Fault('invalid', `The preset ${JSON.stringify(slug)} is in the file twice: remove one of the two`)
    slugs.add(slug)
    return { slug, described, content: readPresetContent(slug, content) }
  })
}

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

async function commitPlans(context: ChangeContext, creator: UserDraft, plans: PresetPlan[]): Promise<void> {
  const changed = plans.filter(isChanged)
  if (changed.length === 0) return
  await commit(
    context,
    [...creator.statements, ...presetStatements(context, changed)],
    [...creator.touched, ...changed.map(({ after }) => ({ kind: 'preset' as const, id: after.id }))],
  )
}

/** What saves the changes of the plans. New versions share statements with those of other plans. */
export function presetStatements({ orm }: Needs<'orm'>, plans: PresetPlan[]): (Statement | Bulk)[] {
  // A new preset is inserted with its other fields.
  const updated = plans.filter(({ before, change }) => before !== undefined && Object.keys(change).length > 0)
  return [
    ...plans.flatMap(({ version }) => (version === undefined ? [] : [saveVersion(version)])),
    ...updated.map(({ after, change }) => updatePreset(orm, after.id, change)),
  ]
}

function isChanged({ version, change }: PresetPlan): boolean {
  return version !== undefined || Object.keys(change).length > 0
}

function showPlan(plan: PresetPlan): ImportResult {
  const { slug, designatedVersion } = plan.after
  const outcome = plan.before === undefined ? 'created' : isChanged(plan) ? 'changed' : 'unchanged'
  return { slug, version: designatedVersion, outcome }
}

function isSame(version: Version, { config, systemPrompt }: PresetContent): boolean {
  return version.systemPrompt === systemPrompt && isDeepStrictEqual(version.config, config)
}
