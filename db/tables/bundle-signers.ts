// Who may sign bundles of issuer keys, and the sequence of the newest bundle of each of their keys.
import { and, eq, type SQL } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type BundleSequence, type BundleSigner, bundleSequences, bundleSigners } from '../schema/bundle-schema.ts'
import type { Statement } from '../write/rows.ts'

/** Lists signers, including deleted ones. */
export function listBundleSigners(orm: Orm, where?: SQL): Promise<BundleSigner[]> {
  return orm.select().from(bundleSigners).where(where)
}

export function insertBundleSigner(orm: Orm, row: BundleSigner): Statement {
  return orm.insert(bundleSigners).values(row)
}

export function updateBundleSigner(orm: Orm, id: string, change: Partial<BundleSigner>): Statement {
  return orm.update(bundleSigners).set(change).where(eq(bundleSigners.id, id))
}

type SequenceKey = Pick<BundleSequence, 'organizationId' | 'keyId' | 'issuerUrl'>

/** The sequence of the newest bundle that this key signed for an issuer. */
export async function readBundleSequence(orm: Orm, key: SequenceKey): Promise<number | undefined> {
  const { organizationId, keyId, issuerUrl } = bundleSequences
  const isOne = and(eq(organizationId, key.organizationId), eq(keyId, key.keyId), eq(issuerUrl, key.issuerUrl))
  const [row] = await orm.select().from(bundleSequences).where(isOne)
  return row?.sequence
}

export function putBundleSequence(orm: Orm, row: BundleSequence): Statement {
  const { organizationId, keyId, issuerUrl } = bundleSequences
  return orm
    .insert(bundleSequences)
    .values(row)
    .onConflictDoUpdate({ target: [organizationId, keyId, issuerUrl], set: row })
}
