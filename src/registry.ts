// The in-memory copy of what requests look up: organizations, keys, issuers, policies, upstreams and presets as
// immutable values, including deleted ones. It matches the database after every acknowledged change: it is loaded at
// startup, and only admin/commit.ts changes it. A key or policy stays packed as text until it is first used.
import { inArray, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { ChangeKind } from '../db/admin-changes.ts'
import { listIssuers } from '../db/issuers.ts'
import type { Orm } from '../db/open.ts'
import { packedValue, packing } from '../db/packed-rows.ts'
import { listPresets } from '../db/presets.ts'
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
import type { Issuer } from './federation/issuer/issuer.ts'
import type { Policy } from './federation/policy.ts'
import { compilePrices, type PriceList } from './inference/prices.ts'
import { compileUpstream, type Upstream, upstreamsInOrder } from './inference/upstream/targets.ts'
import { compileKey, type Key } from './keys/api-key.ts'
import type { Preset } from './presets/drafts.ts'
import { createPackedMap, type PackedMap } from './values/packed-map.ts'

export type Registry = {
  organizations: Map<string, Readonly<Organization>>
  keys: PackedMap<Key>
  /** Finds a key by the hash of its text. */
  keysByHash: { get: (hash: string) => Key | undefined }
  keyIdsByHash: Map<string, string>
  issuers: Map<string, Issuer>
  policies: PackedMap<Policy>
  upstreams: Map<string, Upstream>
  /** The upstreams in use, in the order in which they are tried. */
  upstreamsInOrder: readonly Upstream[]
  priceOf: PriceList
  presets: Map<string, Preset>
  /** Presets by workspace and slug, including archived ones. */
  presetsOf: Map<string, Map<string, Preset>>
}

const packedKeys = packing(apiKeys, ['id', 'hash'])
const packedPolicies = packing(policies)

/** Loads everything from the database, and adds the upstream from the settings if they name one. */
export async function loadRegistry(orm: Orm, configured?: Upstream): Promise<Registry> {
  const keys = createPackedMap((text) => compileKey(packedKeys.unpack(text)))
  const keyIdsByHash = new Map<string, string>()
  const registry: Registry = {
    organizations: new Map(),
    keys,
    keysByHash: { get: (hash) => keys.get(keyIdsByHash.get(hash) ?? '') },
    keyIdsByHash,
    issuers: new Map(),
    policies: createPackedMap((text) => Object.freeze(packedPolicies.unpack(text))),
    upstreams: new Map(),
    upstreamsInOrder: [],
    priceOf: compilePrices([]),
    presets: new Map(),
    presetsOf: new Map(),
  }
  if (configured !== undefined) putUpstream(registry, configured)
  for (const { load } of Object.values(keeping)) await load(registry, orm)
  return registry
}

/** How one kind of row is kept in memory. */
type Keeping = {
  /** Returns the current rows with these ids, by id. The map can contain other rows. */
  read: (
    registry: Registry,
    orm: Orm,
    ids: string[],
  ) => Promise<ReadonlyMap<string, object>> | ReadonlyMap<string, object>
  /** Reloads the rows with these ids, or all rows, from the database. */
  load: (registry: Registry, orm: Orm, ids?: string[]) => Promise<void>
}

export const keeping: Readonly<Record<ChangeKind, Keeping>> = {
  organization: {
    read: ({ organizations }) => organizations,
    load: async (registry, orm, ids) => {
      for (const row of await orm.select().from(organizations).where(isOneOf(organizations.id, ids)))
        registry.organizations.set(row.id, Object.freeze(row))
    },
  },
  key: {
    read: ({ keys }) => keys,
    load: async (registry, orm, ids) => {
      if (ids === undefined)
        for await (const rows of packedKeys.read(orm)) for (const text of rows) putPackedKey(registry, text)
      else for (const row of await orm.select().from(apiKeys).where(inArray(apiKeys.id, ids))) putKey(registry, row)
    },
  },
  issuer: {
    read: ({ issuers }) => issuers,
    load: async (registry, orm, ids) => {
      for (const row of await listIssuers(orm, ids)) registry.issuers.set(row.id, Object.freeze(row))
    },
  },
  policy: {
    read: ({ policies }) => policies,
    load: async (registry, orm, ids) => {
      if (ids === undefined)
        for await (const rows of packedPolicies.read(orm))
          for (const text of rows) registry.policies.setPacked(packedValue(text), text)
      else
        for (const row of await orm.select().from(policies).where(inArray(policies.id, ids)))
          registry.policies.set(row.id, Object.freeze(row))
    },
  },
  upstream: {
    read: ({ upstreams }) => upstreams,
    load: async (registry, orm, ids) => {
      for (const row of await orm.select().from(upstreams).where(isOneOf(upstreams.id, ids)))
        putUpstream(registry, compileUpstream(row))
    },
  },
  preset: {
    read: ({ presets }) => presets,
    load: async (registry, orm, ids) => {
      for (const row of await listPresets(orm, ids)) putPreset(registry, row)
    },
  },
  price: {
    read: async (_registry, orm, ids) => new Map((await findPrices(orm, ids)).map((row) => [row.model, row])),
    load: async (registry, orm) => {
      registry.priceOf = compilePrices(await listPrices(orm))
    },
  },
  workspace: inDatabaseOnly(workspaces),
  signing_key: inDatabaseOnly(signingKeys),
  user: inDatabaseOnly(users),
}

/** Returns no condition, and so matches all rows, if no ids are given. */
function isOneOf(column: SQLiteColumn, ids: string[] | undefined): SQL | undefined {
  return ids === undefined ? undefined : inArray(column, ids)
}

/** Describes rows that are not kept in memory. */
function inDatabaseOnly(table: typeof workspaces | typeof signingKeys | typeof users): Keeping {
  return {
    read: async (_registry, orm, ids) => {
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

export function putPreset(registry: Registry, row: Preset): void {
  const preset = Object.freeze(row)
  registry.presets.set(preset.id, preset)
  const ofWorkspace = registry.presetsOf.get(preset.workspaceId) ?? new Map<string, Preset>()
  registry.presetsOf.set(preset.workspaceId, ofWorkspace.set(preset.slug, preset))
}

function putKey(registry: Registry, row: ApiKey): void {
  const key = compileKey(row)
  registry.keys.set(key.id, key)
  registry.keyIdsByHash.set(key.hash, key.id)
}

function putPackedKey(registry: Registry, text: string): void {
  const id = packedValue(text)
  registry.keys.setPacked(id, text)
  registry.keyIdsByHash.set(packedValue(text, 1), id)
}
