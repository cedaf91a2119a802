// The keys, issuers and policies that are in force, as the registry holds them, and how they are loaded. Deleted rows are
// not here, except keys and issuers that a policy names: it is refused for them, and shows their names.
import { and, eq, inArray, isNotNull, isNull, or, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Orm } from '../../db/file/open.ts'
import { readByIds } from '../../db/read/fitting.ts'
import { type CommonValues, type PackedRow, packing } from '../../db/read/packed-rows.ts'
import { type ApiKey, apiKeys, issuers, policies } from '../../db/schema/schema.ts'
import { listIssuers } from '../../db/tables/issuers.ts'
import type { Issuer } from '../federation/issuer/issuer.ts'
import type { Policy } from '../federation/policy.ts'
import { compileKey, type Key } from '../keys/api-key.ts'
import { createPackedMap, type PackedMap } from '../values/packed-map.ts'
import { isPacked } from '../values/text-rows.ts'

/** A key or policy stays packed as text until it is first used. */
export type TrustRows = {
  keys: PackedMap<Key, CommonValues<ApiKey>>
  /** Finds a key by the hash of its text. */
  keysByHash: { get: (hash: string) => Key | undefined }
  /** Of the keys that were loaded one by one, since they were created or changed. */
  keyIdsByHash: Map<string, string>
  issuers: Map<string, Issuer>
  policies: PackedMap<Policy, CommonValues<Policy>>
  deleted: DeletedRows
  /** Called with the id of each key, issuer and policy that is deleted. */
  onDeleted: ((id: string) => void)[]
  /** Called with each policy that was created or changed. */
  onPolicyLoaded: ((policy: Policy) => void)[]
}

/** Finds rows in the database, where deleted ones are as well. */
export type DeletedRows = {
  policy: (id: string) => Promise<Policy | undefined>
  issuer: (id: string) => Promise<Issuer | undefined>
  key: (id: string) => Promise<Key | undefined>
  keyWithHash: (hash: string) => Promise<Key | undefined>
}

const packedKeys = packing(apiKeys, {
  first: ['id', 'hash', 'previousHash'],
  own: ['name', 'label', 'createdAt', 'updatedAt'],
  shortened: ['label'],
})
const hashPlaces = [1, 2]
const packedPolicies = packing(policies, {
  first: ['id', 'keyId'],
  own: ['name', 'subject', 'condition', 'conditionEnvironment', 'createdAt', 'updatedAt'],
})
export type ReferenceColumn = 'keyId' | 'issuerId'

export function createTrustRows(orm: Orm): TrustRows {
  const keys = createPackedMap((row: PackedRow<ApiKey>) => compileKey(packedKeys.unpack(row)), hashPlaces)
  const keyIdsByHash = new Map<string, string>()
  return {
    keys,
    keyIdsByHash,
    keysByHash: {
      get: (hash) => {
        const key = keys.get(keyIdsByHash.get(hash) ?? keys.packedKeyWith(hash) ?? '')
        // A packed row is found by the hashes that it was loaded with, which a rotation replaces.
        return key !== undefined && hashesOf(key).includes(hash) ? key : undefined
      },
    },
    issuers: new Map(),
    policies: createPackedMap<Policy, CommonValues<Policy>>(toPolicy),
    deleted: readDeletedFrom(orm),
    onDeleted: [],
    onPolicyLoaded: [],
  }
}

/** A value of a key, which stays packed if it is. */
export const valueOfKey = <Field extends keyof ApiKey>(held: Key | PackedRow<ApiKey>, field: Field): ApiKey[Field] =>
  isPacked(held) ? packedKeys.valueOf(held, field) : held[field]

/** A policy that may be packed, which it stays. */
export const toPolicy = (held: Policy | PackedRow<Policy>): Policy =>
  isPacked(held) ? Object.freeze(packedPolicies.unpack(held)) : held

/** A value of a policy, which stays packed if it is. */
export const valueOfPolicy = <Field extends keyof Policy>(held: Policy | PackedRow<Policy>, field: Field) =>
  isPacked(held) ? packedPolicies.valueOf(held, field) : held[field]

/** Reloads the keys with these ids, or all. */
export async function loadKeys(trust: TrustRows, orm: Orm, ids?: string[]): Promise<void> {
  if (ids === undefined) return loadAllKeys(trust, orm)
  const rows = await readByIds(orm, apiKeys, ids, (some) => orm.select().from(apiKeys).where(inArray(apiKeys.id, some)))
  for (const row of rows) putKey(trust, row)
  letGo(trust, 'keyId', rows)
}

/** Reloads the issuers with these ids, or all. */
export async function loadIssuers(trust: TrustRows, orm: Orm, ids?: string[]): Promise<void> {
  const rows = await listIssuers(
    orm,
    ids ?? sql`(${isNull(issuers.deletedAt)} or ${isNamed(issuers.id, policies.issuerId)})`,
  )
  for (const row of rows) trust.issuers.set(row.id, Object.freeze(row))
  if (ids !== undefined) letGo(trust, 'issuerId', rows)
}

/** Reloads the policies with these ids, or all. */
export async function loadPolicies(trust: TrustRows, orm: Orm, ids?: string[]): Promise<void> {
  if (ids === undefined) return loadAllPolicies(trust, orm)
  const before = ids.flatMap((id) => trust.policies.get(id) ?? [])
  const rows = await readByIds(orm, policies, ids, (some) =>
    orm.select().from(policies).where(inArray(policies.id, some)),
  )
  for (const row of rows)
    if (row.deletedAt === null) putPolicy(trust, Object.freeze(row))
    else {
      trust.policies.delete(row.id)
      for (const forget of trust.onDeleted) forget(row.id)
    }
  dropUnnamed(
    trust,
    'keyId',
    before.flatMap(({ keyId }) => trust.keys.get(keyId) ?? []),
  )
  dropUnnamed(
    trust,
    'issuerId',
    before.flatMap(({ issuerId }) => trust.issuers.get(issuerId) ?? []),
  )
}

function putPolicy(trust: TrustRows, policy: Policy): void {
  trust.policies.set(policy.id, policy)
  for (const note of trust.onPolicyLoaded) note(policy)
}

function putKey(trust: TrustRows, row: ApiKey): void {
  const key = compileKey(row)
  const before = trust.keys.get(key.id)
  for (const hash of before === undefined ? [] : hashesOf(before)) trust.keyIdsByHash.delete(hash)
  trust.keys.set(key.id, key)
  for (const hash of hashesOf(key)) trust.keyIdsByHash.set(hash, key.id)
}

/** A key that was rotated is found by the text before, too. */
const hashesOf = ({ hash, previousHash }: ApiKey) => (previousHash === '' ? [hash] : [hash, previousHash])

async function loadAllKeys({ keys }: TrustRows, orm: Orm): Promise<void> {
  const { id, deletedAt } = apiKeys
  // Looks through all policies, which is too much for each of the statements that read keys.
  const isDeletedAndNamed = and(isNotNull(deletedAt), isNamed(id, policies.keyId))
  const [named] = await orm
    .select({ ids: sql<string>`json_group_array(${id})` })
    .from(apiKeys)
    .where(isDeletedAndNamed)
  const isInUse = or(isNull(deletedAt), sql`${id} in (select value from json_each(${named?.ids ?? '[]'}))`)
  for await (const rows of packedKeys.read(orm, isInUse)) keys.addPacked(rows)
}

async function loadAllPolicies(trust: TrustRows, orm: Orm): Promise<void> {
  for await (const rows of packedPolicies.read(orm, isNull(policies.deletedAt))) trust.policies.addPacked(rows)
}

/** Matches rows that a policy names. The plus keeps SQLite from beginning with the policies where few rows are looked at. */
function isNamed(id: SQLiteColumn, naming: SQLiteColumn): SQL {
  return sql`+${id} in (select ${naming} from ${policies} where ${policies.deletedAt} is null)`
}

/** The policies that name one of these keys or issuers. */
export function* policiesNaming(
  { policies }: Pick<TrustRows, 'policies'>,
  field: ReferenceColumn,
  ids: ReadonlySet<string>,
): Generator<Policy> {
  const [only = ''] = ids
  if (ids.size === 1) {
    for (const policy of policies.valuesContaining(only)) if (policy[field] === only) yield policy
    return
  }
  for (const id of policies.keys()) {
    const held = policies.held(id)
    if (held !== undefined && ids.has(valueOfPolicy(held, field))) yield toPolicy(held)
  }
}

type DeletedRow = { id: string; hash?: string; previousHash?: string; deletedAt: number | null }

/** Forgets what is known of those of the rows that are deleted, and the rows themselves if no policy names them. */
function letGo(trust: TrustRows, field: ReferenceColumn, rows: readonly DeletedRow[]): void {
  for (const { id, deletedAt } of rows) if (deletedAt !== null) for (const forget of trust.onDeleted) forget(id)
  dropUnnamed(trust, field, rows)
}

/** Forgets those of the rows that are deleted and that no policy names any longer. */
function dropUnnamed(trust: TrustRows, field: ReferenceColumn, rows: readonly DeletedRow[]): void {
  const deleted = new Map(rows.flatMap((row) => (row.deletedAt === null ? [] : [[row.id, row]])))
  if (deleted.size === 0) return
  for (const policy of policiesNaming(trust, field, new Set(deleted.keys()))) deleted.delete(policy[field])
  for (const { id, hash, previousHash = '' } of deleted.values()) {
    trust[field === 'keyId' ? 'keys' : 'issuers'].delete(id)
    if (hash !== undefined) trust.keyIdsByHash.delete(hash)
    trust.keyIdsByHash.delete(previousHash)
  }
}

function readDeletedFrom(orm: Orm): DeletedRows {
  const keyWhere = async (column: SQLiteColumn, value: string) => {
    const [row] = await orm.select().from(apiKeys).where(eq(column, value))
    return row && compileKey(row)
  }
  return {
    policy: async (id) => (await orm.select().from(policies).where(eq(policies.id, id)))[0],
    issuer: async (id) => (await listIssuers(orm, [id]))[0],
    key: (id) => keyWhere(apiKeys.id, id),
    keyWithHash: (hash) => keyWhere(apiKeys.hash, hash),
  }
}
