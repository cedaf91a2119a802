// Presets and their versions (reference: Presets; Preset versions). A version never changes; a preset designates one of
// its versions.
import { and, eq, getTableColumns, inArray, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { readInParts } from '../read/fitting.ts'
import { type Preset, type PresetVersion, presets, presetVersions } from '../schema/schema.ts'
import type { Statement } from '../write/rows.ts'
import { inChunks, insertion, insertRows } from '../write/rows.ts'

/** A preset with the id of its designated version and the models that the version names. */
export type DesignatedPreset = Preset & { designatedVersionId: string; models: string[] }

const presetsAtOnce = 2_000

/** Reads all presets, including archived ones, many at a time. Texts that many presets have are one text in memory. */
export async function* readPresets(orm: Orm): AsyncGenerator<DesignatedPreset[]> {
  const known = new Map<string, string>()
  const share = (text: string) => {
    const shared = known.get(text) ?? text
    known.set(shared, shared)
    return shared
  }
  for await (const rows of readInParts(orm, presets, presetsAtOnce, (isInPart) => listPresets(orm, isInPart))) {
    yield rows.map((row) => ({
      ...row,
      organizationId: share(row.organizationId),
      workspaceId: share(row.workspaceId),
      creatorId: share(row.creatorId),
      name: row.name === row.slug ? row.slug : row.name,
      models: row.models.map(share),
    }))
  }
}

/** Lists the presets with these ids, or those that a condition selects, including archived ones. */
export async function listPresets(orm: Orm, wanted: string[] | SQL): Promise<DesignatedPreset[]> {
  const { config } = presetVersions
  const rows = await orm
    .select({
      ...getTableColumns(presets),
      designatedVersionId: presetVersions.id,
      model: sql<string | null>`json_extract(${config}, '$.model')`,
      fallbacks: sql<string | null>`json_extract(${config}, '$.models')`,
    })
    .from(presets)
    .innerJoin(
      presetVersions,
      and(eq(presetVersions.presetId, presets.id), eq(presetVersions.version, presets.designatedVersion)),
    )
    .where(Array.isArray(wanted) ? inArray(presets.id, wanted) : wanted)
  return rows.map(({ model, fallbacks, ...row }) => ({ ...row, models: modelsOf({ model, models: fallbacks }) }))
}

/** Returns the models that a config names. `models` is a list or its JSON. */
export function modelsOf({ model, models }: { model?: unknown; models?: unknown }): string[] {
  const fallbacks = (typeof models === 'string' ? JSON.parse(models) : (models ?? [])) as string[]
  return [...(typeof model === 'string' ? [model] : []), ...fallbacks]
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

/** How many versions each preset gains, by preset id, and the time of the change. */
export type Advance = { at: number; versionsMore: Map<string, number> }

/** Inserts the versions and any new presets. Existing presets designate their latest version. */
export function insertPresetVersions(
  made: Preset[],
  { at, versionsMore }: Advance,
  versions: PresetVersion[],
): Statement[] {
  const alike = Map.groupBy(versionsMore.keys(), (id) => versionsMore.get(id) ?? 0)
  return [
    ...inChunks(made).map((some) => insertRows(newPresets, some)),
    ...inChunks(versions).map((some) => insertRows(newVersions, some)),
    ...[...alike].flatMap(([more, ids]) => inChunks(ids).map((some) => advancePresets(some, more, at))),
  ]
}

/** Counts up in the presets table, because a lookup of each preset's version numbers is slower. */
function advancePresets(ids: string[], more: number, at: number): Statement {
  const sql = `update presets set designated_version = latest_version + ?, latest_version = latest_version + ?, updated_at = ?
    where id in (${ids.map(() => '?').join(',')})`
  return { toSQL: () => ({ sql, params: [more, more, at, ...ids] }) }
}

export function updatePreset(orm: Orm, id: string, change: Partial<Preset>): Statement {
  return orm.update(presets).set(change).where(eq(presets.id, id))
}
