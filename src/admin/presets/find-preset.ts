// Finds a workspace, a preset or a version by the names that an operation was given.

import type { Workspace } from '../../../db/schema/schema.ts'
import { findWorkspace } from '../../../db/tables/organizations.ts'
import { Fault } from '../../fault.ts'
import type { Preset } from '../../presets/drafts.ts'
import { parsePresetReference } from '../../presets/reference.ts'
import type { Version } from '../../presets/versions.ts'
import type { Needs } from '../operation/context.ts'
import { findOrganization, notFound } from '../operation/references.ts'

export type WorkspaceInput = { organization?: string; workspace?: string }

/** What reading a version needs. */
export type VersionContext = Needs<'orm' | 'registry' | 'presets'>

export async function findWorkspaceOf(
  { orm, registry }: Needs<'orm' | 'registry'>,
  { organization, workspace = 'default' }: WorkspaceInput,
): Promise<Workspace> {
  const { id } = findOrganization(registry, organization)
  const found = await findWorkspace(orm, id, workspace)
  if (found === undefined) throw notFound('workspace', workspace)
  return found
}

type PresetInput = WorkspaceInput & { preset: string; archived?: boolean | undefined }

/** A preset as a whole. */
export async function findPreset(context: Needs<'orm' | 'registry'>, input: PresetInput): Promise<Preset> {
  const { slug, version } = parsePresetReference(input.preset)
  if (version !== undefined)
    throw new Fault('invalid', `This applies to a whole preset: write ${slug} instead of ${slug}@${version}`)
  return find(context, input, slug)
}

/** `slug` is the designated version, `slug@3` the third. */
export async function findVersion(
  context: VersionContext,
  input: PresetInput,
): Promise<{ preset: Preset; version: Version }> {
  const { slug, version: number } = parsePresetReference(input.preset)
  const preset = await find(context, input, slug)
  const version = await context.presets.versionOf(preset, number)
  if (version === undefined)
    throw new Fault(
      'not_found',
      `There is no version ${number} of the preset ${JSON.stringify(slug)}; the latest is ${preset.latestVersion}`,
    )
  return { preset, version }
}

async function find(context: Needs<'orm' | 'registry'>, { archived, ...within }: PresetInput, slug: string) {
  const { id } = await findWorkspaceOf(context, within)
  const preset = context.registry.presetsOf.get(id)?.get(slug)
  if (preset === undefined) throw notFound('preset', slug)
  if (preset.status === 'archived' && archived !== true)
    throw new Fault(
      'not_found',
      `The preset ${JSON.stringify(slug)} is archived; to restore it: latchkey presets restore ${slug}`,
    )
  return preset
}
