// Federation policies (reference: Policy).
import { eq } from 'drizzle-orm'
import type { Orm } from './open.ts'
import type { Statement } from './rows.ts'
import { type Policy, policies } from './schema.ts'

export function insertPolicy(orm: Orm, row: Policy): Statement {
  return orm.insert(policies).values(row)
}

export function updatePolicy(orm: Orm, id: string, change: Partial<Policy>): Statement {
  return orm.update(policies).set(change).where(eq(policies.id, id))
}
