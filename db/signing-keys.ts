// The keys that sign access tokens; the private half is here only as ciphertext.
import { and, isNull, ne } from 'drizzle-orm'
import type { Orm } from './open.ts'
import { type SigningKey, signingKeys } from './schema.ts'
import type { Statement } from './write.ts'

/** All signing keys, oldest first. */
export function listSigningKeys(orm: Orm): Promise<SigningKey[]> {
  return orm.select().from(signingKeys).orderBy(signingKeys.activeAt)
}

export function insertSigningKey(orm: Orm, row: SigningKey): Statement {
  return orm.insert(signingKeys).values(row)
}

/** Ends all keys but one at a time, unless their end is set already. */
export function retireOtherSigningKeys(orm: Orm, id: string, retiredAt: number): Statement {
  return orm
    .update(signingKeys)
    .set({ retiredAt })
    .where(and(ne(signingKeys.id, id), isNull(signingKeys.retiredAt)))
}

/** Ends all keys but one at once, whatever was planned. */
export function revokeOtherSigningKeys(orm: Orm, id: string, now: number): Statement {
  return orm.update(signingKeys).set({ retiredAt: now }).where(ne(signingKeys.id, id))
}
