// What the hot path looks up, in memory: organizations, keys, issuers, policies, upstreams and presets as immutable values, deleted ones
// included. It equals the database at every acknowledged change: it is loaded at the start, and changed by `commit` and `commitPresets` alone.
import { inArray, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { type Actor, type ChangeKind, recordChanges, recordKnownChanges, type Touched } from '../db/admin-changes.ts'
import { listIssuers } from '../db/issuers.ts'
import type { Orm } from '../db/open.ts'
import { type DesignatedPreset, listPresets } from '../db/presets.ts'
import {
  type ApiKey,
  apiKeys,
  type Organization,
  organizations,
  policies,
  signingKeys,
  upstreams,
  users,
  workspaces,
} from '../db/schema.ts'
import { findPrices, listPrices } from '../db/upstreams.ts'
import type { Statement, Writer } from '../db/write.ts'
import { Fault } from './fault.ts'
import type { Issuer } from './federation/issuer/issuer.ts'
import type { Policy } from './federation/policy.ts'
import { compilePrices, type PriceList } from './inference/prices.ts'
import { compileUpstream, type Upstream, upstreamsInOrder } from './inference/upstream/targets.ts'
import { compileKey, type Key } from './keys/api-key.ts'
import type { Preset, PresetChange } from './presets/drafts.ts'

export type Registry = {
  organizations: Map<string, Readonly<Organization>>
  keys: Map<string, Key>
  keysByHash: Map<string, Key>
  issuers: Map<string, Issuer>
  policies: Map<string, Policy>
  upstreams: Map<string, Upstream>
  /** Those in use, in the order in which they are tried. */
  upstreamsInOrder: readonly Upstream[]
  priceOf: PriceList
  presets: Map<string, Preset>
  /** Of each workspace by slug, archived ones included. */
  presetsOf: Map<string, Map<string, Preset>>
}

export type Changing = {
  writer: Writer
  orm: Orm
  registry: Registry
  now: () => number
  actor: Actor
  operation: string
}

/** Everything from the database, and the upstream that the settings name, if they do. */
export async function loadRegistry(orm: Orm, configured?: Upstream): Promise<Registry> {
  const registry: Registry = {
    organizations: new Map(),
    keys: new Map(),
    keysByHash: new Map(),
    issuers: new Map(),
    policies: new Map(),
    upstreams: new Map(),
    upstreamsInOrder: [],
    priceOf: compilePrices([]),
    presets: new Map(),
    presetsOf: new Map(),
  }
  if (configured !== undefined) putUpstream(registry, configured)
  for (const { load } of Object.values(kept)) await load(registry, orm)
  return registry
}

/**
 * The way every admin change is made: commits the statements together with a record of who changed what, then replaces what they
 * touched in the registry, each kind once. When it resolves, the change is durable and in force.
 */
export async function commit(
  { writer, orm, registry, now, actor, operation }: Changing,
  statements: Statement[],
  touched: Touched[],
): Promise<void> {
  const by = { at: now(), ...columnsOf(actor), operation }
  const byKind = [...Map.groupBy(touched, ({ kind }) => kind)]
  const idsByKind = byKind.map(([kind, rows]) => ({ kind, ids: rows.map(({ id }) => id) }))
  const records: Statement[] = []
  for (const { kind, ids } of idsByKind)
    records.push(recordChanges({ ...by, kind, targets: await rowsOf(kind, registry, orm, ids) }))
  await writer.write([...statements, ...records])
  await takeOver(writer, async () => {
    for (const { kind, ids } of idsByKind) await kept[kind].load(registry, orm, ids)
  })
}

/**
 * Loads into memory what was just committed. When that fails, memory holds what is true no more, such as a key that is disabled by
 * now: nothing is written or answered after that, and the process ends.
 * @throws Fault `internal`, which says that the change is saved
 */
export async function takeOver(writer: Writer, load: () => Promise<void>): Promise<void> {
  try {
    await load()
  } catch (cause) {
    writer.giveUp(new Error('The change is saved, but could not be loaded', { cause }))
    throw new Fault('internal', 'The change is saved, but the server could not load it and stops', { cause })
  }
}

/** The same for presets, whose rows are known beforehand: several changes, each with its own actor, in one commit. */
export async function commitPresets(
  { writer, registry, now }: Pick<Changing, 'writer' | 'registry' | 'now'>,
  statements: Statement[],
  changes: PresetChange[],
): Promise<void> {
  const at = now()
  const records = changes.map(({ before, after, actor, operation }) => {
    const { id: targetId, organizationId } = after
    const told = { before: before && versionsOf(before), after: versionsOf(after) }
    return { at, ...columnsOf(actor), operation, kind: 'preset' as const, targetId, organizationId, ...told }
  })
  await writer.write([...statements, recordKnownChanges(records)])
  for (const { after } of changes) putPreset(registry, after)
}

/** What a new version changes; the version itself is kept for ever. */
function versionsOf({ slug, designatedVersion, latestVersion }: Preset) {
  return { slug, designated_version: designatedVersion, latest_version: latestVersion }
}

function columnsOf(actor: Actor) {
  const { keyId, requestId } = actor.kind === 'key' ? actor : { keyId: null, requestId: null }
  const { osUser = null, sudoUser = null } = actor.kind === 'local' ? actor : {}
  return { actor: actor.kind, actorKeyId: keyId, requestId, osUser, sudoUser }
}

/** The rows as they are before a change, by id; undefined for those that are new. */
async function rowsOf(
  kind: ChangeKind,
  registry: Registry,
  orm: Orm,
  ids: string[],
): Promise<Map<string, object | undefined>> {
  const known = await kept[kind].find(registry, orm, ids)
  return new Map(ids.map((id) => [id, known.get(id)]))
}

/** How the rows of one kind are found before a change, and what is loaded into memory after it, or at the start. */
type Kept = {
  find: (
    registry: Registry,
    orm: Orm,
    ids: string[],
  ) => Promise<ReadonlyMap<string, object>> | ReadonlyMap<string, object>
  /** These rows, or all of them. */
  load: (registry: Registry, orm: Orm, ids?: string[]) => Promise<void>
}

const kept: Record<ChangeKind, Kept> = {
  organization: {
    find: ({ organizations }) => organizations,
    load: async (registry, orm, ids) => {
      for (const row of await orm.select().from(organizations).where(isOneOf(organizations.id, ids)))
        registry.organizations.set(row.id, Object.freeze(row))
    },
  },
  key: {
    find: ({ keys }) => keys,
    load: async (registry, orm, ids) => {
      for (const row of await orm.select().from(apiKeys).where(isOneOf(apiKeys.id, ids))) putKey(registry, row)
    },
  },
  issuer: {
    find: ({ issuers }) => issuers,
    load: async (registry, orm, ids) => {
      for (const row of await listIssuers(orm, ids)) registry.issuers.set(row.id, Object.freeze(row))
    },
  },
  policy: {
    find: ({ policies }) => policies,
    load: async (registry, orm, ids) => {
      for (const row of await orm.select().from(policies).where(isOneOf(policies.id, ids)))
        registry.policies.set(row.id, Object.freeze(row))
    },
  },
  upstream: {
    find: ({ upstreams }) => upstreams,
    load: async (registry, orm, ids) => {
      for (const row of await orm.select().from(upstreams).where(isOneOf(upstreams.id, ids)))
        putUpstream(registry, compileUpstream(row))
    },
  },
  preset: {
    find: ({ presets }) => presets,
    load: async (registry, orm, ids) => {
      for (const row of await listPresets(orm, ids)) putPreset(registry, row)
    },
  },
  price: {
    find: async (_registry, orm, ids) => new Map((await findPrices(orm, ids)).map((row) => [row.model, row])),
    load: async (registry, orm) => {
      registry.priceOf = compilePrices(await listPrices(orm))
    },
  },
  workspace: onlyStored(workspaces),
  signing_key: onlyStored(signingKeys),
  user: onlyStored(users),
}

/** All rows where no ids are given. */
function isOneOf(column: SQLiteColumn, ids: string[] | undefined): SQL | undefined {
  return ids === undefined ? undefined : inArray(column, ids)
}

/** Rows of which memory keeps nothing. */
function onlyStored(table: typeof workspaces | typeof signingKeys | typeof users): Kept {
  return {
    find: async (_registry, orm, ids) => {
      const rows: { id: string }[] = await orm.select().from(table).where(inArray(table.id, ids))
      return new Map(rows.map((row) => [row.id, row]))
    },
    load: async () => {},
  }
}

function putUpstream(registry: Registry, upstream: Upstream): void {
  registry.upstreams.set(upstream.id, upstream)
  registry.upstreamsInOrder = upstreamsInOrder(registry.upstreams.values())
}

function putPreset(registry: Registry, row: DesignatedPreset): void {
  const preset = Object.freeze(row)
  registry.presets.set(preset.id, preset)
  const ofWorkspace = registry.presetsOf.get(preset.workspaceId) ?? new Map<string, Preset>()
  registry.presetsOf.set(preset.workspaceId, ofWorkspace.set(preset.slug, preset))
}

function putKey(registry: Registry, row: ApiKey): void {
  const key = compileKey(row)
  registry.keys.set(key.id, key)
  registry.keysByHash.set(key.hash, key)
}
