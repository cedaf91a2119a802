// Preset versions: creates new ones, all that wait in one commit, and caches those in use.
import { setImmediate } from 'node:timers'
import type { Actor } from '../../db/admin-changes.ts'
import { isBusy, type Orm } from '../../db/open.ts'
import { readPresetVersion } from '../../db/presets.ts'
import type { PresetVersion } from '../../db/schema.ts'
import type { Statement } from '../../db/write.ts'
import { checkKeyState } from '../keys/api-key.ts'
import type { KeyRegistry } from '../keys/bearer.ts'
import { presetCacheCharactersMax, presetsPerCommitMax, presetValueCharacters } from '../limits.ts'
import type { RunExclusive } from '../scheduling/mutex.ts'
import {
  checkPresetCount,
  draftVersion,
  type NewVersion,
  type Preset,
  type PresetChange,
  type VersionDraft,
  versionStatements,
} from './drafts.ts'
import { encodeConfig } from './preset.ts'
import type { Fields } from './schema/fields.ts'

/** What of the registry tells presets: those of each workspace by slug, archived ones included. */
export type PresetRegistry = { readonly presetsOf: ReadonlyMap<string, ReadonlyMap<string, Preset>> }

/** A version with its config as a value. */
export type Version = Readonly<Omit<PresetVersion, 'config'>> & { readonly config: Fields }

export type Draft = Omit<VersionDraft, 'config'> & { actor: Actor; operation: string }
export type Saved = { preset: Preset; version: Version }

export type Presets = {
  /**
   * Makes the next version of the preset with this slug, or the preset and its first one, and designates it. Resolves after the commit.
   * @throws Fault `conflict` while the preset is archived, `invalid` when there is too much in it or there are too many
   */
  save: (draft: Draft) => Promise<Saved>
  /** What a version says; the designated one where none is named. Undefined when there is no such version. */
  versionOf: (preset: Preset, version?: number) => Promise<Version | undefined>
}

type Dependencies = {
  orm: Orm
  registry: PresetRegistry & Pick<KeyRegistry, 'keys'>
  now: () => number
  runExclusive: RunExclusive
  /** Makes the changes durable with their record, and puts them in force. */
  commit: (statements: Statement[], changes: PresetChange[]) => Promise<void>
}
type Waiting = { draft: Draft; config: string; done: (saved: Saved) => void; failed: (error: unknown) => void }
/** A draft with the rows that it makes. */
type Planned = { waiting: Waiting; change: PresetChange; version: NewVersion }

export function createPresets({ orm, registry, now, runExclusive, commit }: Dependencies): Presets {
  const queue: Waiting[] = []
  let isScheduled = false
  const atHand = createVersionCache()

  /** Whoever comes in the same turn of the event loop is taken along. */
  function scheduleCommit(): void {
    if (isScheduled) return
    isScheduled = true
    setImmediate(() => void runExclusive(commitNext))
  }

  async function commitNext(): Promise<void> {
    isScheduled = false
    const group = queue.splice(0, presetsPerCommitMax)
    if (queue.length > 0) scheduleCommit()
    await commitTogether(group)
  }

  /** One that the database refuses fails alone: the others belong to other callers. */
  async function commitTogether(group: Waiting[]): Promise<void> {
    const at = now()
    const planned = plan(group, at)
    if (planned.length === 0) return
    const changes = planned.map(({ change }) => change)
    try {
      const versions = planned.map(({ version }) => version)
      await commit(versionStatements(versions, at), changes)
    } catch (error) {
      if (planned.length === 1 || isBusy(error)) for (const { waiting } of planned) waiting.failed(error)
      else for (const { waiting } of planned) await commitTogether([waiting])
      return
    }
    for (const { waiting, version } of planned) {
      const { after: preset, row } = version
      waiting.done({ preset, version: Object.freeze({ ...row, config: waiting.draft.content.config }) })
    }
  }

  /** What each draft makes, after those before it. */
  function plan(group: Waiting[], at: number): Planned[] {
    const latest = new Map<string, Preset>()
    /** Presets that this group makes, by workspace. */
    const made = new Map<string, number>()
    const planned: Planned[] = []
    for (const waiting of group) {
      const { workspaceId, slug } = waiting.draft
      try {
        const ofWorkspace = registry.presetsOf.get(workspaceId)
        const before = latest.get(`${workspaceId} ${slug}`) ?? ofWorkspace?.get(slug)
        const madeBefore = made.get(workspaceId) ?? 0
        if (before === undefined) checkPresetCount((ofWorkspace?.size ?? 0) + madeBefore + 1)
        const one = planOne(waiting, before, at)
        if (before === undefined) made.set(workspaceId, madeBefore + 1)
        latest.set(`${workspaceId} ${slug}`, one.change.after)
        planned.push(one)
      } catch (error) {
        waiting.failed(error)
      }
    }
    return planned
  }

  function planOne(waiting: Waiting, before: Preset | undefined, at: number): Planned {
    const { draft, config } = waiting
    const { actor, operation } = draft
    // The key was in force when its request began; what it asks for happens now.
    if (actor.kind === 'key') checkKeyState(registry.keys.get(actor.keyId), at)
    const version = draftVersion({ ...draft, config }, before, at)
    return { waiting, version, change: { before, after: version.after, actor, operation } }
  }

  return {
    save: async (draft) => {
      const config = encodeConfig(draft.content)
      return new Promise((done, failed) => {
        queue.push({ draft, config, done, failed })
        scheduleCommit()
      })
    },
    versionOf: async (preset, number = preset.designatedVersion) => {
      const known = atHand.find(preset.id, number)
      if (known !== undefined || number > preset.latestVersion) return known
      const row = await readPresetVersion(orm, preset.id, number)
      if (row === undefined) return undefined
      const version = Object.freeze({ ...row, config: JSON.parse(row.config) as Fields })
      atHand.keep(version, sizeOf(row))
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
