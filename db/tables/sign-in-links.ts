// One-time links to the admin page. Whether one is valid is decided by the clock of the database, the same for all nodes.
import { sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { databaseTime } from '../schema/node-schema.ts'
import { signInLinks } from '../schema/record-schema.ts'
import type { Statement } from '../write/rows.ts'

/** What a link signs in to. `openedBy`: the operating system's user who asked for it. */
export type LinkGrant = { keyId: string; readOnly: boolean; openedBy: string | null }

/** Adds a link that is valid for so many milliseconds, and removes the expired ones. */
export function insertSignInLink(
  codeSha256: string,
  { keyId, readOnly, openedBy }: LinkGrant,
  milliseconds: number,
): Statement[] {
  const insert = `insert into sign_in_links (code_sha256, key_id, read_only, opened_by, created_at, expires_at)
    values (?, ?, ?, ?, ${databaseTime}, ${databaseTime} + ?)`
  const params = [codeSha256, keyId, readOnly ? 1 : 0, openedBy, milliseconds]
  return [
    { toSQL: () => ({ sql: `delete from sign_in_links where expires_at <= ${databaseTime}`, params: [] }) },
    { toSQL: () => ({ sql: insert, params }) },
  ]
}

/** What a link grants, while it is valid and unused. A clock that is set back ends it. */
export async function findSignInLink(orm: Orm, codeSha256: string): Promise<LinkGrant | undefined> {
  const { keyId, readOnly, openedBy } = signInLinks
  const isValid = `used_at is null and created_at <= ${databaseTime} and ${databaseTime} < expires_at`
  const [found] = await orm
    .select({ keyId, readOnly, openedBy })
    .from(signInLinks)
    .where(sql`${signInLinks.codeSha256} = ${codeSha256} and ${sql.raw(isValid)}`)
  return found
}

const notTaken = 'a sign-in link is used once'

/**
 * Uses a link. The commit fails with an error that is `isLinkUsed` if the link was used before, or has expired since it
 * was found: a commit can be repeated for minutes.
 */
export function useSignInLink(codeSha256: string): Statement[] {
  const update = `update sign_in_links set used_at = ${databaseTime}
    where code_sha256 = ? and used_at is null and ${databaseTime} < expires_at`
  // SQLite reports an invalid path as an error that contains it.
  const check = `select case when changes() = 1 then 1 else json_extract('{}', '${notTaken}') end`
  return [{ toSQL: () => ({ sql: update, params: [codeSha256] }) }, { toSQL: () => ({ sql: check, params: [] }) }]
}

/** Reports whether a commit failed because the link cannot be used any longer. */
export function isLinkUsed(error: unknown): boolean {
  return error instanceof Error && error.message.includes(notTaken)
}
