// Presets as files: what `latchkey presets export` prints and `import` takes, so that they can be kept in a repository or moved.
import { isDeepStrictEqual } from 'node:util'
import type { AdminContext } from '../context.ts'
import { Fault } from '../fault.ts'
import { presetPageRowsMax, presetsAtOnceMax } from '../limits.ts'
import { type PresetContent, readPresetContent } from '../presets/preset.ts'
import { checkPresetSlug } from '../presets/reference.ts'
import type { Version } from '../presets/versions.ts'
import { type } from '../shape.ts'
import { type OperationContext, operation } from './operation.ts'
import { change, described, findPreset, findWorkspaceOf, jsonText, saveContent, within } from './presets.ts'
import { referenceShape } from './references.ts'

const exportInput = type({ ...within, 'presets?': referenceShape.array(), 'after?': referenceShape })
const importedShape = type({ '+': 'reject', ...described, slug: 'string', content: jsonText })
const importInput = type({ ...within, presets: importedShape.array().atMostLength(presetsAtOnceMax) })

export const presetFileOperations = {
  'presets.export': operation(exportInput, exportSome, { runsAlone: false }),
  // Waits for a turn together with the posts of others.
  'presets.import': operation(importInput, importAll, { runsAlone: false }),
}

/** In the order of their slugs, by pages: what `presets.import` takes. */
async function exportSome(context: AdminContext, input: typeof exportInput.infer) {
  const { registry, presets } = context
  const named = input.presets?.map((preset) => findPreset(context, { ...input, preset }))
  const { id } = await findWorkspaceOf(context, input)
  const all = named === undefined ? (registry.presetsOf.get(id)?.values() ?? []) : await Promise.all(named)
  const left = [...all]
    .filter(({ status, slug }) => status !== 'archived' && slug > (input.after ?? ''))
    .toSorted((one, other) => (one.slug < other.slug ? -1 : 1))
  const data = []
  for (const preset of left.slice(0, presetPageRowsMax)) {
    const { slug, name, description } = preset
    const { systemPrompt, config } = (await presets.versionOf(preset)) as Version
    data.push({ slug, name, description, system_prompt: systemPrompt, config })
  }
  return { data, ...(left.length > data.length ? { more_after: data.at(-1)?.slug } : {}) }
}

/** All are checked before one is saved. What is there already as it should be stays as it is. */
async function importAll(context: OperationContext, input: typeof importInput.infer) {
  const { organization, workspace } = input
  const wanted = input.presets.map(({ slug, content, ...described }) => {
    checkPresetSlug(slug)
    return { slug, described, content: readPresetContent(slug, content) }
  })
  const { id: workspaceId } = await findWorkspaceOf(context, input)
  const archived = wanted.find(
    ({ slug }) => context.registry.presetsOf.get(workspaceId)?.get(slug)?.status === 'archived',
  )
  if (archived !== undefined)
    throw new Fault('conflict', `The preset ${JSON.stringify(archived.slug)} is archived; restore it first`)
  const data: { slug: string; version: number; outcome: 'created' | 'changed' | 'unchanged' }[] = []
  for (const { slug, described, content } of wanted) {
    const before = context.registry.presetsOf.get(workspaceId)?.get(slug)
    const known = before === undefined ? undefined : await context.presets.versionOf(before)
    if (known === undefined || !isSame(known, content))
      await saveContent(context, { organization, workspace }, slug, content)
    const saved = context.registry.presetsOf.get(workspaceId)?.get(slug)
    if (saved === undefined) throw new Error(`The preset ${slug} was not saved`)
    const isDescribed =
      (described.name ?? saved.name) === saved.name &&
      (described.description === undefined || described.description === saved.description)
    if (!isDescribed) await context.takeTurn(() => change(context, saved, { ...described, updatedAt: context.now() }))
    const outcome =
      before === undefined
        ? 'created'
        : before.designatedVersion === saved.designatedVersion && isDescribed
          ? 'unchanged'
          : 'changed'
    data.push({ slug, version: saved.designatedVersion, outcome })
  }
  return { data }
}

function isSame(version: Version, { config, systemPrompt }: PresetContent): boolean {
  return version.systemPrompt === systemPrompt && isDeepStrictEqual(version.config, config)
}
