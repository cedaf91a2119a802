// The keys that sign access tokens. Private keys are stored only as ciphertext.
import { eq, inArray } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type SigningKey, signingKeys } from '../schema/schema.ts'
import type { Statement } from '../write/rows.ts'

/** Lists all signing keys, oldest first. */
export function listSigningKeys(orm: Orm): Promise<SigningKey[]> {
  return orm.select().from(signingKeys).orderBy(signingKeys.activeAt)
}

export function insertSigningKey(orm: Orm, row: SigningKey): Statement {
  return orm.insert(signingKeys).values(row)
}

export function updatePrivateKey(orm: Orm, id: string, privateKeyEncrypted: string): Statement {
  return orm.update(signingKeys).set({ privateKeyEncrypted }).where(eq(signingKeys.id, id))
}

/** Revokes a key whose private key can no longer be decrypted, and deletes the ciphertext. */
export function dropPrivateKey(orm: Orm, id: string, retiredAt: number): Statement {
  return orm
    .update(signingKeys)
    .set({ privateKeyEncrypted: '', retiredAt, revoked: true })
    .where(eq(signingKeys.id, id))
}

/** Sets the time at which the keys retire. A revoked key is already invalid, whatever that time is. */
export function endSigningKeys(orm: Orm, ids: string[], end: Pick<SigningKey, 'retiredAt' | 'revoked'>): Statement {
  return orm.update(signingKeys).set(end).where(inArray(signingKeys.id, ids))
}
