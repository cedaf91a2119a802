// Presets as files: what `latchkey presets export` prints and `import` takes, so that they can be kept in a repository or moved.
import { isDeepStrictEqual } from 'node:util'
import type { AdminContext } from '../context.ts'
import { Fault } from '../fault.ts'
import { presetPageRowsMax, presetsAtOnceMax } from '../limits.ts'
import { type PresetContent, readPresetContent } from '../presets/preset.ts'
import { checkPresetSlug } from '../presets/reference.ts'
import type { Version } from '../presets/versions.ts'
import type { Preset } from '../registry.ts'
import { type } from '../shape.ts'
import { type OperationContext, operation } from './operation.ts'
import {
  change,
  described,
  findVersion,
  findWorkspaceOf,
  jsonText,
  saveContent,
  type Within,
  within,
} from './presets.ts'
import { referenceShape } from './references.ts'

const exportInput = type({ ...within, 'presets?': referenceShape.array(), 'after?': referenceShape })
const importedShape = type({
  '+': 'reject',
  ...described,
  slug: 'string',
  'status?': "'active' | 'disabled'",
  content: jsonText,
})
const importInput = type({
  ...within,
  presets: importedShape.array().atMostLength(presetsAtOnceMax),
  'dry_run?': 'boolean',
})

export const presetFileOperations = {
  'presets.export': operation(exportInput, exportSome, { runsAlone: false }),
  // Waits for a turn together with the posts of others.
  'presets.import': operation(importInput, importAll, { runsAlone: false }),
}

/** Those that are named (`support@3` for its third version), or all in the order of their slugs, by pages: what `presets.import` takes. */
async function exportSome(context: AdminContext, input: typeof exportInput.infer) {
  const { id } = await findWorkspaceOf(context, input)
  const all = [...(context.registry.presetsOf.get(id)?.values() ?? [])].filter(({ status }) => status !== 'archived')
  const asked = input.presets ?? all.map(({ slug }) => slug)
  const left = [...new Set(asked)].toSorted().filter((text) => text > (input.after ?? ''))
  const data = []
  for (const text of left.slice(0, presetPageRowsMax)) {
    const { preset, version } = await findVersion(context, { ...input, preset: text })
    const { slug, name, description, status } = preset
    data.push({ slug, name, description, status, system_prompt: version.systemPrompt, config: version.config })
  }
  return { data, ...(left.length > data.length ? { more_after: left[data.length - 1] } : {}) }
}

type Wanted = {
  slug: string
  described: Partial<Pick<Preset, 'name' | 'description' | 'status'>>
  content: PresetContent
}
type Imported = { slug: string; version: number; outcome: 'created' | 'changed' | 'unchanged' }

/** All are checked before one is saved; with `dry_run` that is all. What is there already as it should be stays as it is. */
async function importAll(context: OperationContext, input: typeof importInput.infer) {
  const { id: workspaceId } = await findWorkspaceOf(context, input)
  const slugs = new Set<string>()
  const wanted = input.presets.map(({ slug, content, ...described }): Wanted => {
    checkPresetSlug(slug)
    if (slugs.has(slug)) throw new Fault('invalid', `The preset ${JSON.stringify(slug)} is in the file twice`)
    slugs.add(slug)
    if (context.registry.presetsOf.get(workspaceId)?.get(slug)?.status === 'archived')
      throw new Fault('conflict', `The preset ${JSON.stringify(slug)} is archived; restore it first`)
    return { slug, described, content: readPresetContent(slug, content) }
  })
  const data: Imported[] = []
  if (input.dry_run === true) return { data }
  for (const each of wanted) data.push(await importOne(context, input, workspaceId, each))
  return { data }
}

async function importOne(
  context: OperationContext,
  { organization, workspace }: Within,
  workspaceId: string,
  { slug, described, content }: Wanted,
): Promise<Imported> {
  const before = context.registry.presetsOf.get(workspaceId)?.get(slug)
  const known = before === undefined ? undefined : await context.presets.versionOf(before)
  const made =
    known !== undefined && isSame(known, content)
      ? undefined
      : (await saveContent(context, { organization, workspace }, slug, content)).preset
  const saved = made ?? (before as Preset)
  const after = { ...saved, ...described }
  if (!isDeepStrictEqual(after, saved)) {
    const now = context.now()
    const status = after.status === saved.status ? {} : { statusUpdatedAt: now }
    await context.takeTurn(() => change(context, saved, { ...described, ...status, updatedAt: now }))
  }
  const isChanged = made !== undefined || !isDeepStrictEqual(after, saved)
  const outcome = made?.latestVersion === 1 ? 'created' : isChanged ? 'changed' : 'unchanged'
  return { slug, version: saved.designatedVersion, outcome }
}

function isSame(version: Version, { config, systemPrompt }: PresetContent): boolean {
  return version.systemPrompt === systemPrompt && isDeepStrictEqual(version.config, config)
}
