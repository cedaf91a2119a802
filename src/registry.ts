// What the hot path looks up, in memory: organizations, keys, issuers and policies as immutable values, deleted ones included.
// It equals the database at every acknowledged change: it is loaded at the start and reloaded, row by row, by `commit` alone.
import { eq } from 'drizzle-orm'
import { type IssuerWithKeySet, listIssuers } from '../db/issuers.ts'
import type { Orm } from '../db/open.ts'
import { type ApiKey, apiKeys, type Organization, organizations, policies } from '../db/schema.ts'
import type { Statement, Writer } from '../db/write.ts'
import { compilePolicy, type Policy } from './federation/policy.ts'

/** An issuer with the last good key set that the database has for it. */
export type Issuer = Readonly<IssuerWithKeySet>

export type Registry = {
  organizations: Map<string, Readonly<Organization>>
  keys: Map<string, Readonly<ApiKey>>
  keysByHash: Map<string, Readonly<ApiKey>>
  issuers: Map<string, Issuer>
  policies: Map<string, Policy>
}

/** A row that a write touches and the registry holds. */
export type Touched = { kind: 'organization' | 'key' | 'issuer' | 'policy'; id: string }

export async function loadRegistry(orm: Orm): Promise<Registry> {
  const registry: Registry = {
    organizations: new Map(),
    keys: new Map(),
    keysByHash: new Map(),
    issuers: new Map(),
    policies: new Map(),
  }
  for (const row of await orm.select().from(organizations)) registry.organizations.set(row.id, Object.freeze(row))
  for (const row of await orm.select().from(apiKeys)) putKey(registry, row)
  for (const row of await listIssuers(orm)) registry.issuers.set(row.id, Object.freeze(row))
  for (const row of await orm.select().from(policies)) registry.policies.set(row.id, compilePolicy(row))
  return registry
}

/**
 * The way every admin change is made: commits the statements together, then replaces what they touched in the registry.
 * When it resolves, the change is durable and in force.
 */
export async function commit(
  { writer, orm, registry }: { writer: Writer; orm: Orm; registry: Registry },
  statements: Statement[],
  touched: Touched[],
): Promise<void> {
  await writer.write(statements)
  for (const entry of touched) await reload(registry, orm, entry)
}

async function reload(registry: Registry, orm: Orm, { kind, id }: Touched): Promise<void> {
  if (kind === 'organization') {
    for (const row of await orm.select().from(organizations).where(eq(organizations.id, id)))
      registry.organizations.set(id, Object.freeze(row))
  } else if (kind === 'key') {
    for (const row of await orm.select().from(apiKeys).where(eq(apiKeys.id, id))) putKey(registry, row)
  } else if (kind === 'issuer') {
    for (const row of await listIssuers(orm, id)) registry.issuers.set(id, Object.freeze(row))
  } else {
    for (const row of await orm.select().from(policies).where(eq(policies.id, id)))
      registry.policies.set(id, compilePolicy(row))
  }
}

function putKey(registry: Registry, row: ApiKey): void {
  const key = Object.freeze(row)
  registry.keys.set(key.id, key)
  registry.keysByHash.set(key.hash, key)
}
