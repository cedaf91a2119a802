// Presets and their versions (interface §2.6, §2.7). A version never changes; a preset says which of its versions counts.
import { and, asc, count, desc, eq, getTableColumns, ne } from 'drizzle-orm'
import type { Orm } from './open.ts'
import { insertion, insertRows } from './rows.ts'
import { type Preset, type PresetVersion, presets, presetVersions } from './schema.ts'
import type { Statement } from './write.ts'

/** A preset with the id of its designated version. */
export type DesignatedPreset = Preset & { designatedVersionId: string }
export type Page = { offset: number; limit: number }

function selectDesignated(orm: Orm) {
  return orm
    .select({ ...getTableColumns(presets), designatedVersionId: presetVersions.id })
    .from(presets)
    .innerJoin(
      presetVersions,
      and(eq(presetVersions.presetId, presets.id), eq(presetVersions.version, presets.designatedVersion)),
    )
}

/** All presets, archived ones included. */
export function listAllPresets(orm: Orm): Promise<DesignatedPreset[]> {
  return selectDesignated(orm)
}

export async function readPreset(orm: Orm, id: string): Promise<DesignatedPreset | undefined> {
  const [row] = await selectDesignated(orm).where(eq(presets.id, id))
  return row
}

type Shown = { withArchived: boolean }

function shownIn(workspaceId: string, { withArchived }: Shown) {
  return and(eq(presets.workspaceId, workspaceId), withArchived ? undefined : ne(presets.status, 'archived'))
}

/** The presets of a workspace, most recently updated first. */
export function listPresets(
  orm: Orm,
  workspaceId: string,
  { offset, limit, ...shown }: Page & Shown,
): Promise<DesignatedPreset[]> {
  return selectDesignated(orm)
    .where(shownIn(workspaceId, shown))
    .orderBy(desc(presets.updatedAt), asc(presets.slug))
    .limit(limit)
    .offset(offset)
}

export async function countPresets(orm: Orm, workspaceId: string, shown: Shown): Promise<number> {
  const [row] = await orm.select({ count: count() }).from(presets).where(shownIn(workspaceId, shown))
  return row?.count ?? 0
}

/** Oldest first. */
export function listPresetVersions(orm: Orm, presetId: string, { offset, limit }: Page): Promise<PresetVersion[]> {
  return orm
    .select()
    .from(presetVersions)
    .where(eq(presetVersions.presetId, presetId))
    .orderBy(asc(presetVersions.version))
    .limit(limit)
    .offset(offset)
}

export async function readPresetVersion(
  orm: Orm,
  presetId: string,
  version: number,
): Promise<PresetVersion | undefined> {
  const [row] = await orm
    .select()
    .from(presetVersions)
    .where(and(eq(presetVersions.presetId, presetId), eq(presetVersions.version, version)))
  return row
}

const newPresets = insertion(presets)
const newVersions = insertion(presetVersions)

/** Makes the versions, and the presets that are new with them; the others designate their latest version from then on. */
export function insertPresetVersions(made: Preset[], changedIds: string[], versions: PresetVersion[]): Statement[] {
  const latest = `select version, version, created_at from preset_versions where preset_id = presets.id order by version desc limit 1`
  const sql = `update presets set (designated_version, latest_version, updated_at) = (${latest}) where id in (${changedIds.map(() => '?').join(',')})`
  return [
    ...(made.length === 0 ? [] : [insertRows(newPresets, made)]),
    insertRows(newVersions, versions),
    ...(changedIds.length === 0 ? [] : [{ toSQL: () => ({ sql, params: changedIds }) }]),
  ]
}

export function updatePreset(orm: Orm, id: string, change: Partial<Preset>): Statement {
  return orm.update(presets).set(change).where(eq(presets.id, id))
}
