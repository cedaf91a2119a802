// The in-memory copy of what requests look up: organizations, keys, issuers, policies, upstreams and presets as
// immutable values. It matches the database after every acknowledged change: it is loaded at startup, and
// what commits a change, or notices one of another node, replaces what changed.
import { inArray, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../../db/file/open.ts'
import { findFilled } from '../../db/read/filled-tables.ts'
import { readByIds, readInParts } from '../../db/read/fitting.ts'
import { type Webhook, webhooks } from '../../db/schema/alert-schema.ts'
import { type Budget, budgets } from '../../db/schema/budget-schema.ts'
import { type BundleSigner, bundleSigners } from '../../db/schema/bundle-schema.ts'
import { sessions } from '../../db/schema/record-schema.ts'
import {
  apiKeys,
  type ConfigDocument,
  configDocuments,
  issuers,
  type Organization,
  organizations,
  policies,
  presets,
  signingKeys,
  users,
  workspaces,
} from '../../db/schema/schema.ts'
import { prices, upstreams } from '../../db/schema/upstream-schema.ts'
import type { ChangeKind } from '../../db/tables/admin-changes.ts'
import { listBudgets } from '../../db/tables/budgets.ts'
import { listBundleSigners } from '../../db/tables/bundle-signers.ts'
import { listConfigDocuments } from '../../db/tables/config-documents.ts'
import { listPresets, readPresets } from '../../db/tables/presets.ts'
import { findPrices, listPrices } from '../../db/tables/upstreams.ts'
import { listWebhooks } from '../../db/tables/webhooks.ts'
import { compilePrices, type PriceList } from '../inference/prices.ts'
import { compileUpstream, type Upstream, upstreamsInOrder } from '../inference/upstream/targets.ts'
import { loadSessions, type SessionRows } from '../page/session-rows.ts'
import type { Preset } from '../presets/drafts.ts'
import { createTrustRows, loadIssuers, loadKeys, loadPolicies, type TrustRows } from './trust-rows.ts'

export type Registry = TrustRows & {
  organizations: Map<string, Readonly<Organization>>
  budgets: Map<string, Readonly<Budget>>
  /** Called after a change of what budgets count: of a budget, the labels of a key, or a time zone. */
  onBudgetsChanged: (() => Promise<void>)[]
  /** Where alerts are sent. */
  webhooks: Map<string, Readonly<Webhook>>
  bundleSigners: Map<string, Readonly<BundleSigner>>
  upstreams: Map<string, Upstream>
  /** The upstreams in use, in the order in which they are tried. */
  upstreamsInOrder: readonly Upstream[]
  priceOf: PriceList
  /** Sessions of the admin page. */
  sessions: SessionRows
  /** The configuration documents that were last applied. */
  configDocuments: Map<string, Readonly<ConfigDocument>>
  presets: Map<string, Preset>
  /** Presets by workspace and slug, including archived ones. */
  presetsOf: Map<string, Map<string, Preset>>
}

/** Loads everything from the database, and adds the upstream from the settings if they name one. */
export async function loadRegistry(orm: Orm, configured?: Upstream): Promise<Registry> {
  const registry: Registry = {
    ...createTrustRows(orm),
    organizations: new Map(),
    budgets: new Map(),
    onBudgetsChanged: [],
    webhooks: new Map(),
    bundleSigners: new Map(),
    upstreams: new Map(),
    upstreamsInOrder: [],
    priceOf: compilePrices([]),
    sessions: new Map(),
    configDocuments: new Map(),
    presets: new Map(),
    presetsOf: new Map(),
  }
  if (configured !== undefined) putUpstream(registry, configured)
  const loaders = Object.values(keeping)
  const tables = loaders.flatMap(({ table }) => (table === undefined ? [] : [table]))
  const filled = await findFilled(orm, tables)
  for (const { table, load } of loaders) if (table !== undefined && filled.has(table)) await load(registry, orm)
  return registry
}

/** How one kind of row is kept in memory. */
type RowLoader = {
  /** Its table; undefined where no row is kept in memory. */
  table: SQLiteTable | undefined
  /** Returns the current rows with these ids, by id. The map can contain other rows. */
  read: (
    registry: Registry,
    orm: Orm,
    ids: string[],
  ) => Promise<ReadonlyMap<string, object>> | ReadonlyMap<string, object>
  /** Reloads the rows with these ids, or all rows, from the database. */
  load: (registry: Registry, orm: Orm, ids?: string[]) => Promise<void>
}

export const keeping: Readonly<Record<ChangeKind, RowLoader>> = {
  organization: {
    table: organizations,
    read: ({ organizations }) => organizations,
    load: async (registry, orm, ids) => {
      const read = (wanted: SQL) => orm.select().from(organizations).where(wanted)
      for await (const row of readWanted(orm, organizations, ids, read))
        registry.organizations.set(row.id, Object.freeze(row))
      if (ids !== undefined) await budgetsChanged(registry)
    },
  },
  key: {
    table: apiKeys,
    read: ({ keys }) => keys,
    load: async (registry, orm, ids) => {
      const labelsOf = () => JSON.stringify(ids?.map((id) => registry.keys.get(id)?.labels ?? null))
      const before = labelsOf()
      await loadKeys(registry, orm, ids)
      if (ids !== undefined && labelsOf() !== before) await budgetsChanged(registry)
    },
  },
  budget: {
    table: budgets,
    read: ({ budgets }) => budgets,
    load: async (registry, orm, ids) => {
      for (const row of await listBudgets(orm, ids)) registry.budgets.set(row.id, Object.freeze(row))
      if (ids !== undefined) await budgetsChanged(registry)
    },
  },
  webhook: {
    table: webhooks,
    read: ({ webhooks }) => webhooks,
    load: async (registry, orm, ids) => {
      for (const row of await listWebhooks(orm, ids)) registry.webhooks.set(row.id, Object.freeze(row))
    },
  },
  issuer: { table: issuers, read: (registry) => registry.issuers, load: loadIssuers },
  policy: { table: policies, read: (registry) => registry.policies, load: loadPolicies },
  upstream: {
    table: upstreams,
    read: ({ upstreams }) => upstreams,
    load: async (registry, orm, ids) => {
      const read = (wanted: SQL) => orm.select().from(upstreams).where(wanted)
      for await (const row of readWanted(orm, upstreams, ids, read)) putUpstream(registry, compileUpstream(row))
    },
  },
  preset: {
    table: presets,
    read: ({ presets }) => presets,
    load: async (registry, orm, ids) => {
      if (ids === undefined) for await (const rows of readPresets(orm)) for (const row of rows) putPreset(registry, row)
      else
        for (const row of await readByIds(orm, presets, ids, (some) => listPresets(orm, some))) putPreset(registry, row)
    },
  },
  price: {
    table: prices,
    read: async (_registry, orm, ids) => new Map((await findPrices(orm, ids)).map((row) => [row.model, row])),
    load: async (registry, orm) => {
      registry.priceOf = compilePrices(await listPrices(orm))
    },
  },
  workspace: inDatabaseOnly(workspaces),
  signing_key: inDatabaseOnly(signingKeys),
  user: inDatabaseOnly(users),
  session: { ...inDatabaseOnly(sessions), table: sessions, load: loadSessions },
  document: {
    table: configDocuments,
    read: ({ configDocuments }) => configDocuments,
    load: async (registry, orm) => {
      for (const row of await listConfigDocuments(orm)) registry.configDocuments.set(row.id, Object.freeze(row))
    },
  },
  bundle_signer: {
    table: bundleSigners,
    read: (registry) => registry.bundleSigners,
    load: async (registry, orm, ids) => {
      const read = (wanted: SQL) => listBundleSigners(orm, wanted)
      for await (const row of readWanted(orm, bundleSigners, ids, read))
        registry.bundleSigners.set(row.id, Object.freeze(row))
    },
  },
  // Archive runs record their own changes.
  archive: { table: undefined, read: () => new Map(), load: async () => {} },
}

/** The sums of budgets are built again from the totals, which takes time only where there are budgets. */
async function budgetsChanged({ onBudgetsChanged }: Registry): Promise<void> {
  for (const act of onBudgetsChanged) await act()
}

const rowsAtOnce = 500

/** Reads the rows with these ids, or all rows, as many at a time as fit in a response of a database server. */
async function* readWanted<Row extends { id: string }>(
  orm: Orm,
  table: SQLiteTable & { id: SQLiteColumn },
  ids: string[] | undefined,
  read: (wanted: SQL) => Promise<Row[]>,
): AsyncGenerator<Row> {
  if (ids !== undefined) yield* await readByIds(orm, table, ids, (some) => read(inArray(table.id, some)))
  else for await (const rows of readInParts(orm, table, rowsAtOnce, read)) yield* rows
}

/** Describes rows that are not kept in memory. */
function inDatabaseOnly(table: typeof workspaces | typeof signingKeys | typeof users | typeof sessions): RowLoader {
  return {
    table: undefined,
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
