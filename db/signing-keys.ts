// The keys that sign access tokens; the private half is here only as ciphertext.
import { eq, inArray } from 'drizzle-orm'
import type { Orm } from './open.ts'
import type { Statement } from './rows.ts'
import { type SigningKey, signingKeys } from './schema.ts'

/** All signing keys, oldest first. */
export function listSigningKeys(orm: Orm): Promise<SigningKey[]> {
  return orm.select().from(signingKeys).orderBy(signingKeys.activeAt)
}

export function insertSigningKey(orm: Orm, row: SigningKey): Statement {
  return orm.insert(signingKeys).values(row)
}

export function updatePrivateKey(orm: Orm, id: string, privateKeyEncrypted: string): Statement {
  return orm.update(signingKeys).set({ privateKeyEncrypted }).where(eq(signingKeys.id, id))
}

/** Revokes a key whose private half nobody can decrypt any more, and drops that. */
export function dropPrivateKey(orm: Orm, id: string, retiredAt: number): Statement {
  return orm
    .update(signingKeys)
    .set({ privateKeyEncrypted: '', retiredAt, revoked: true })
    .where(eq(signingKeys.id, id))
}

/** Sets the time at which keys end; a revoked one has ended whatever the time. */
export function endSigningKeys(orm: Orm, ids: string[], end: Pick<SigningKey, 'retiredAt' | 'revoked'>): Statement {
  return orm.update(signingKeys).set(end).where(inArray(signingKeys.id, ids))
}
