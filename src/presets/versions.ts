// Preset versions: creates new ones, numbered in the order of their commit, and caches those in use.

import type { Orm } from '../../db/file/open.ts'
import type { PresetVersion } from '../../db/schema/schema.ts'
import type { Actor } from '../../db/tables/admin-changes.ts'
import { readPresetVersion } from '../../db/tables/presets.ts'
import { checkUnchanged } from '../http/entity-tag.ts'
import { checkKeyState } from '../keys/api-key.ts'
import type { KeyRegistry } from '../keys/bearer.ts'
import type { UserDraft } from '../keys/users.ts'
import { presetCacheCharactersMax, presetValueCharacters } from '../limits.ts'
import {
  type CommitVersion,
  checkPresetCount,
  draftVersion,
  type PlannedVersion,
  type Preset,
  saveVersion,
  type VersionDraft,
} from './drafts.ts'
import { encodeConfig } from './preset.ts'
import type { Fields } from './schema/fields.ts'

/** The part of the registry that has presets: by workspace and slug, archived ones included. */
export type PresetRegistry = { readonly presetsOf: ReadonlyMap<string, ReadonlyMap<string, Preset>> }

/** A version with its config as a value. */
export type Version = Readonly<Omit<PresetVersion, 'config'>> & { readonly config: Fields }

/** `creator`: a new user, created in the same commit. */
export type Draft = Omit<VersionDraft, 'config'> & {
  actor: Actor
  operation: string
  creator?: Pick<UserDraft, 'statements' | 'touched'>
  /** Only over this version (http/entity-tag.ts). */
  ifMatch?: string | undefined
}
export type SavedVersion = { preset: Preset; version: Version }

export type Presets = {
  /**
   * Creates the next version of the preset with this slug, or the preset with its first version, and designates it. Resolves after the commit.
   * Call it within a turn of the mutex, shared or exclusive.
   * @throws Fault `precondition_failed` if the preset is not as `ifMatch` says, `conflict` while it is archived, `invalid` when it is too long or the workspace has too many presets
   */
  save: (draft: Draft) => Promise<SavedVersion>
  /** A version, by default the designated one; undefined when the preset does not have it. */
  versionOf: (preset: Preset, version?: number) => Promise<Version | undefined>
}

type Dependencies = {
  orm: Orm
  registry: PresetRegistry & Pick<KeyRegistry, 'keys'>
  now: () => number
  commit: CommitVersion
}
/** When a transaction is planned, the presets as its plans leave them, by workspace and slug, and how many are new, by workspace. */
type PendingVersions = { at: number; presets: Map<string, Preset>; created: Map<string, number> }

export function createPresets({ orm, registry, now, commit }: Dependencies): Presets {
  const pendingIn = new WeakMap<object, PendingVersions>()
  const cache = createVersionCache()

  /** The version that a draft makes, after those planned before it in the same transaction. */
  function plan(draft: Draft, config: string, transaction: object): PlannedVersion {
    const { workspaceId, slug, actor, operation, creator, ifMatch } = draft
    const pending = pendingIn.get(transaction) ?? { at: now(), presets: new Map(), created: new Map() }
    pendingIn.set(transaction, pending)
    const { at } = pending
    // The key was in force when its request began; what it asks for happens now.
    if (actor.kind === 'key') checkKeyState(registry.keys.get(actor.keyId), at)
    const saved = registry.presetsOf.get(workspaceId)
    const before = pending.presets.get(`${workspaceId} ${slug}`) ?? saved?.get(slug)
    const created = (pending.created.get(workspaceId) ?? 0) + (before === undefined ? 1 : 0)
    checkUnchanged(before, ifMatch)
    if (before === undefined) checkPresetCount((saved?.size ?? 0) + created)
    const version = draftVersion({ ...draft, config }, before, at)
    pending.created.set(workspaceId, created)
    pending.presets.set(`${workspaceId} ${slug}`, version.after)
    const statements = [...(creator?.statements ?? []), saveVersion(version)]
    return { version, statements, touched: creator?.touched ?? [], actor, operation }
  }

  return {
    save: async (draft) => {
      const config = encodeConfig(draft.content)
      const { version } = await commit((transaction) => plan(draft, config, transaction))
      const { after: preset, row } = version
      return { preset, version: Object.freeze({ ...row, config: draft.content.config }) }
    },
    versionOf: async (preset, number = preset.designatedVersion) => {
      const known = cache.find(preset.id, number)
      if (known !== undefined || number > preset.latestVersion) return known
      const row = await readPresetVersion(orm, preset.id, number)
      if (row === undefined) return undefined
      const version = Object.freeze({ ...row, config: JSON.parse(row.config) as Fields })
      cache.keep(version, sizeOf(row))
      return version
    },
  }
}

/** What a version takes up, in characters: that of its texts, and of each value in its settings. */
function sizeOf({ config, systemPrompt }: PresetVersion): number {
  let values = 0
  for (let at = 0; at < config.length; at++) if (',[{'.includes(config[at] ?? '')) values += 1
  return config.length + (systemPrompt?.length ?? 0) + presetValueCharacters * values
}

type VersionCache = {
  find: (presetId: string, version: number) => Version | undefined
  keep: (version: Version, characters: number) => void
}

/** Bounded in size; what was not used for longest goes first. A version never changes, so that none is ever out of date. */
function createVersionCache(): VersionCache {
  const kept = new Map<string, { version: Version; characters: number }>()
  let characters = 0
  return {
    find: (presetId, version) => {
      const name = `${presetId} ${version}`
      const found = kept.get(name)
      if (found === undefined) return undefined
      kept.delete(name)
      kept.set(name, found)
      return found.version
    },
    keep: (version, length) => {
      const name = `${version.presetId} ${version.version}`
      characters += length - (kept.get(name)?.characters ?? 0)
      kept.delete(name)
      kept.set(name, { version, characters: length })
      for (const [oldest, { characters: freed }] of kept) {
        if (characters <= presetCacheCharactersMax || kept.size === 1) break
        kept.delete(oldest)
        characters -= freed
      }
    },
  }
}
