// Federation policies (reference: Policy).
import { eq } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type Policy, policies } from '../schema/schema.ts'
import { createRowBulks, type Statement } from '../write/rows.ts'

/** Of many policies at once. What never changes is left out of updates, for the reason given below. */
export const policyBulks = createRowBulks<Policy>(policies, ['organizationId'])

export function insertPolicy(orm: Orm, row: Policy): Statement {
  return orm.insert(policies).values(row)
}

/** Leaves out the id and the organization, which never change: SQLite would look for the old id in every recorded exchange. */
export function updatePolicy(
  orm: Orm,
  id: string,
  { id: _id, organizationId: _organizationId, ...change }: Partial<Policy>,
): Statement {
  return orm.update(policies).set(change).where(eq(policies.id, id))
}
