// Trusted issuers and the last good key set of each.
import { eq, inArray, type SQL, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { readByIds, readInParts } from '../read/fitting.ts'
import { type Issuer, type IssuerKeySet, issuerKeySets, issuers } from '../schema/schema.ts'
import type { Statement } from '../write/rows.ts'

export type IssuerWithKeySet = Issuer & { lastKeySet: IssuerKeySet | null }

const issuersAtOnce = 500

/**
 * Lists the issuers with these ids, or those that a condition selects, including deleted ones, each with its last good key set, in the order in which they were
 * inserted.
 */
export async function listIssuers(orm: Orm, wanted: string[] | SQL): Promise<IssuerWithKeySet[]> {
  if (Array.isArray(wanted)) return readByIds(orm, issuers, wanted, (ids) => findIssuers(orm, inArray(issuers.id, ids)))
  const listed: IssuerWithKeySet[] = []
  const parts = readInParts(orm, issuers, issuersAtOnce, (isInPart) => findIssuers(orm, sql`${isInPart} and ${wanted}`))
  for await (const part of parts) listed.push(...part)
  return listed
}

async function findIssuers(orm: Orm, where: SQL): Promise<IssuerWithKeySet[]> {
  const rows = await orm
    .select()
    .from(issuers)
    .leftJoin(issuerKeySets, eq(issuerKeySets.issuerId, issuers.id))
    .where(where)
    .orderBy(sql`${issuers}.rowid`)
  return rows.map((row) => ({ ...row.issuers, lastKeySet: row.issuer_key_sets }))
}

export function insertIssuer(orm: Orm, row: Issuer): Statement {
  return orm.insert(issuers).values(row)
}

/** Leaves out the id and the organization, which never change: SQLite would look for the old ones in policies and recorded exchanges. */
export function updateIssuer(
  orm: Orm,
  id: string,
  { id: _id, organizationId: _organizationId, ...change }: Partial<Issuer>,
): Statement {
  return orm.update(issuers).set(change).where(eq(issuers.id, id))
}

export async function readIssuerKeySet(orm: Orm, issuerId: string): Promise<IssuerKeySet | undefined> {
  const [row] = await orm.select().from(issuerKeySets).where(eq(issuerKeySets.issuerId, issuerId))
  return row
}

/** Stores the newest good key set of an issuer. */
export function putIssuerKeySet(orm: Orm, row: IssuerKeySet): Statement {
  return orm.insert(issuerKeySets).values(row).onConflictDoUpdate({ target: issuerKeySets.issuerId, set: row })
}
