// The users of keys, who also create presets. An unknown name creates a user, in the same commit as the key or preset.

import type { Orm } from '../../db/file/open.ts'
import type { User } from '../../db/schema/schema.ts'
import type { TouchedRow } from '../../db/tables/admin-changes.ts'
import { findUser, insertUser } from '../../db/tables/organizations.ts'
import type { Statement } from '../../db/write/rows.ts'

/** A user, and what the commit must also contain when the user is new. */
export type UserDraft = { user: User; statements: Statement[]; touched: TouchedRow[] }

/** The user with this id or name, or a new one of that name. Call it and commit within one `runExclusive`. */
export async function findOrDraftUser(
  { orm, now }: { orm: Orm; now: () => number },
  organizationId: string,
  idOrName: string,
): Promise<UserDraft> {
  const known = await findUser(orm, organizationId, idOrName)
  if (known !== undefined) return { user: known, statements: [], touched: [] }
  const user = createUserRow(organizationId, idOrName, now())
  return { user, statements: [insertUser(orm, user)], touched: [{ kind: 'user', id: user.id }] }
}

/** A user id is `user_` and 24 letters or digits (reference: Credentials). */
export function createUserRow(organizationId: string, name: string, now: number): User {
  const digits = Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString('hex')
  return { id: `user_${digits}`, organizationId, name, createdAt: now }
}
