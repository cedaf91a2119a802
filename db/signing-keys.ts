// The keys that sign access tokens; the private half is here only as ciphertext.
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
