// Admin operations on the presets of one workspace (reference: Presets), for commands and preset endpoints.

import { isDeepStrictEqual } from 'node:util'
import { createPace } from '../../../db/read/pace.ts'
import type { Preset as PresetRow } from '../../../db/schema/schema.ts'
import { readPresetVersion, updatePreset } from '../../../db/tables/presets.ts'
import { Fault } from '../../fault.ts'
import { parseJsonObject } from '../../http/body.ts'
import { checkUnchanged } from '../../http/entity-tag.ts'
import { findOrDraftUser } from '../../keys/users.ts'
import { presetPageRowsDefault } from '../../limits.ts'
import { applyPreset, targets } from '../../presets/apply.ts'
import type { Preset } from '../../presets/drafts.ts'
import { dialects, readPreset } from '../../presets/preset.ts'
import { checkPresetSlug, readPresetReference } from '../../presets/reference.ts'
import { showDesignated, showPreset, showVersion } from '../../presets/responses.ts'
import type { Fields } from '../../presets/schema/fields.ts'
import { presetList, presetPage } from '../../presets/shapes.ts'
import type { Version } from '../../presets/versions.ts'
import { type } from '../../values/shape.ts'
import { referenceShape } from '../../values/shapes.ts'
import { columnsOf, given } from '../kinds/fields.ts'
import { presetFields } from '../kinds/preset.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { checkDocumentLock } from '../operation/document-lock.ts'
import { type LastUse, withLastUse } from '../operation/last-use-response.ts'
import { containsText } from '../operation/list-page.ts'
import { operation } from '../operation/operation.ts'
import { checkChanges, organizationInput } from '../operation/references.ts'
import { findPreset, findVersion, findWorkspaceOf, type VersionContext } from './find-preset.ts'

export const within = { '+': 'reject', ...organizationInput, 'workspace?': referenceShape } as const
/** Only commands see archived presets. */
const one = { ...within, preset: referenceShape, 'archived?': 'boolean' } as const
/** Bodies and settings are sent as JSON text: they nest deeper than any other input, and their order matters. */
export const jsonText = 'string'

const listInput = type({ ...within, ...presetList, 'archived?': 'boolean', 'last_use?': 'boolean' })
const diffInput = type({ ...within, from: referenceShape, to: referenceShape })
const oneInput = type(one)
/** Only commands see the last use, and the owner of a configuration document. */
type ForCommands = LastUse & { managed_by?: string | null }

const shownInput = type({ ...one, 'last_use?': 'boolean' })
const versionsInput = type({ ...one, ...presetPage })
const applyInput = type({ ...one, target: type.enumerated(...targets), body: jsonText })
const saveInput = type({ ...within, preset: referenceShape, dialect: type.enumerated(...dialects), body: jsonText })
const updateInput = type({
  ...within,
  ...given(presetFields, 'change'),
  preset: referenceShape,
  'if_match?': 'string',
})

export const presetOperations = {
  'presets.list': operation(listInput, list),
  'presets.show': operation(shownInput, show),
  'presets.versions': operation(versionsInput, listVersions),
  'presets.version': operation(oneInput, async (context: VersionContext, input) =>
    showVersion((await findVersion(context, input)).version),
  ),
  'presets.diff': operation(diffInput, diff),
  'presets.apply': operation(applyInput, apply),
  'presets.save': operation(saveInput, save, { mutates: true }),
  'presets.update': operation(updateInput, update, { mutates: true }),
  'presets.archive': operation(oneInput, setArchived(true), { mutates: true }),
  'presets.restore': operation(oneInput, setArchived(false), { mutates: true }),
}

async function list(context: Needs<'orm' | 'registry' | 'lastUses'>, input: typeof listInput.infer) {
  const { id } = await findWorkspaceOf(context, input)
  const fits = containsText(input.contains)
  const all = [...(context.registry.presetsOf.get(id)?.values() ?? [])]
    .filter(
      ({ slug, name, status }) => (status !== 'archived' || input.archived === true) && (fits(slug) || fits(name)),
    )
    .toSorted((one, other) => other.updatedAt - one.updatedAt || (one.slug < other.slug ? -1 : 1))
  const { offset, limit } = pageOf(input)
  const page = all.slice(offset, offset + limit)
  const data: (ReturnType<typeof showPreset> & ForCommands)[] = page.map(showPreset)
  if (input.last_use !== true) return { data, total_count: all.length }
  const managed = data.map((row, index) => ({ ...row, managed_by: page[index]?.managedBy ?? null }))
  return { data: await withLastUse(context, managed), total_count: all.length }
}

function pageOf({ offset = 0, limit = presetPageRowsDefault }: { offset?: number; limit?: number }) {
  return { offset, limit }
}

async function show(context: VersionContext & Needs<'lastUses'>, input: typeof shownInput.infer) {
  const preset = await findPreset(context, input)
  const shown: Awaited<ReturnType<typeof showWhole>> & ForCommands = await showWhole(context, preset)
  if (input.last_use !== true) return shown
  const [used] = await withLastUse(context, [{ ...shown, managed_by: preset.managedBy }])
  return used ?? shown
}

async function showWhole({ presets }: Needs<'presets'>, preset: Preset) {
  const version = await presets.versionOf(preset)
  if (version === undefined) throw new Error(`The preset ${preset.id} has no designated version`)
  return showDesignated({ ...preset, designatedVersionId: version.id }, version)
}

/** Reads one at a time, since a page of long versions has many megabytes. */
async function listVersions(context: Needs<'orm' | 'registry'>, input: typeof versionsInput.infer) {
  const { id, latestVersion, designatedVersion } = await findPreset(context, input)
  const { offset, limit } = pageOf(input)
  const last = Math.min(offset + limit, latestVersion)
  const pace = createPace()
  const data = []
  for (let number = offset + 1; number <= last; number++) {
    const row = await readPresetVersion(context.orm, id, number)
    if (row !== undefined) data.push(showVersion({ ...row, config: JSON.parse(row.config) as Fields }))
    await pace()
  }
  return { data, total_count: latestVersion, designated_version: designatedVersion }
}

/** The fields in which two versions differ, of one preset or of two. A field that a version lacks is absent on its side. */
async function diff(context: VersionContext, { from, to, ...within }: typeof diffInput.infer) {
  const one = await findVersion(context, { ...within, preset: from, archived: true })
  const other = await findVersion(context, { ...within, preset: to, archived: true })
  const [before, after] = [fieldsOf(one.version), fieldsOf(other.version)]
  const changes = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((field) => !isDeepStrictEqual(before[field], after[field]))
    .map((field) => ({ field, from: before[field], to: after[field] }))
  return { from: showFound(one), to: showFound(other), changes }
}

function fieldsOf({ config, systemPrompt }: Version): Fields {
  return { ...(systemPrompt === null ? {} : { system_prompt: systemPrompt }), ...config }
}

function showFound({ preset, version }: { preset: Preset; version: Version }) {
  const { version: number, config, systemPrompt } = version
  return { preset_version: `${preset.slug}@${number}`, system_prompt: systemPrompt, config }
}

/** Completes a caller's body with the preset. The body need not name it. */
async function apply(context: VersionContext, input: typeof applyInput.infer) {
  const { preset, version } = await findVersion(context, input)
  const { fields: asked } = await parseJsonObject(new TextEncoder().encode(input.body))
  const named = readPresetReference(asked)
  const isAnother = named !== undefined && named.slug !== preset.slug
  if (isAnother || (named?.version ?? version.version) !== version.version)
    throw new Fault('invalid', 'The request names a different preset or version: remove the name, or name this one')
  const body = applyPreset(input.target, version, asked)
  return { preset_version: `${preset.slug}@${version.version}`, target: input.target, body }
}

async function save(
  context: VersionContext & Needs<'now' | 'actor' | 'operation' | 'warn'>,
  input: typeof saveInput.infer,
) {
  const { fields } = await parseJsonObject(new TextEncoder().encode(input.body))
  const content = readPreset(input.dialect, fields)
  if (content.systemPrompt === null && Object.keys(content.config).length === 0)
    throw new Fault('invalid', 'The body has no model, settings or system prompt: add what the preset should store')
  checkPresetSlug(input.preset)
  const { id: workspaceId, organizationId } = await findWorkspaceOf(context, input)
  checkDocumentLock(context, 'preset', context.registry.presetsOf.get(workspaceId)?.get(input.preset))
  const creator = await findOrDraftUser(context, organizationId, 'admin')
  const { actor, operation } = context
  const names = { organizationId, workspaceId, slug: input.preset, creatorId: creator.user.id }
  const { preset, version } = await context.presets.save({ ...names, content, actor, operation, creator })
  return showDesignated(preset, version)
}

async function update(context: ChangeContext & Needs<'presets'>, input: typeof updateInput.infer) {
  checkChanges(input, ['organization', 'workspace', 'preset', 'if_match'])
  const preset = await findPreset(context, input)
  checkUnchanged(preset, input.if_match)
  const { status, designated_version: designated } = input
  if (designated !== undefined && designated > preset.latestVersion)
    throw new Fault(
      'invalid',
      `Version ${designated} does not exist: designated_version must be at most ${preset.latestVersion}`,
    )
  const now = context.now()
  const saved = await change(context, preset, {
    ...columnsOf<PresetRow>(presetFields, input),
    ...(status === undefined || status === preset.status ? {} : { statusUpdatedAt: now }),
    updatedAt: now,
  })
  return showWhole(context, saved)
}

/** Repeating it succeeds. A disabled preset conflicts with both (reference: Preset endpoints). */
function setArchived(isArchived: boolean) {
  return async (context: ChangeContext & Needs<'presets'>, input: typeof oneInput.infer) => {
    const preset = await findPreset(context, { ...input, archived: true })
    const { slug, status: before } = preset
    if (before === 'disabled')
      throw new Fault('conflict', `Resource conflict: the preset ${JSON.stringify(slug)} is disabled; enable it first`)
    const status = isArchived ? 'archived' : 'active'
    if (before === status) return showWhole(context, preset)
    const now = context.now()
    return showWhole(context, await change(context, preset, { status, statusUpdatedAt: now, updatedAt: now }))
  }
}

/** Returns what the change made, which another node can have changed again by now. `designatedVersionId` and `models` are as before. */
async function change(context: ChangeContext, preset: Preset, fields: Partial<PresetRow>): Promise<Preset> {
  await commit(context, [updatePreset(context.orm, preset.id, fields)], [{ kind: 'preset', id: preset.id }])
  return { ...preset, ...fields }
}
