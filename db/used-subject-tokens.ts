// Which subject tokens were used under replay protection. Rows are written by write.ts and dropped once the token has expired.
import { and, eq, gt, lte } from 'drizzle-orm'
import type { Orm } from './open.ts'
import type { Statement } from './rows.ts'
import { type UsedSubjectToken, usedSubjectTokens } from './schema.ts'

/** Those that have not expired; `now` in milliseconds. */
export function listUsedSubjectTokens(orm: Orm, now: number): Promise<UsedSubjectToken[]> {
  return orm.select().from(usedSubjectTokens).where(gt(usedSubjectTokens.expiresAt, now))
}

/** One of them, if it is there. */
export async function findUsedSubjectToken(
  orm: Orm,
  issuerId: string,
  tokenIdSha256: string,
  now: number,
): Promise<UsedSubjectToken | undefined> {
  const { issuerId: issuer, tokenIdSha256: id, expiresAt } = usedSubjectTokens
  const [row] = await orm
    .select()
    .from(usedSubjectTokens)
    .where(and(eq(issuer, issuerId), eq(id, tokenIdSha256), gt(expiresAt, now)))
  return row
}

/** Found by their key, so that the cost is that of these rows alone. */
export function dropSubjectTokens(tokens: { issuerId: string; tokenIdSha256: string }[]): Statement[] {
  const ofIssuers = Map.groupBy(tokens, ({ issuerId }) => issuerId)
  return [...ofIssuers].map(([issuerId, ofIssuer]) => {
    const sql = `delete from used_subject_tokens
      where issuer_id = ? and token_id_sha256 in (select value from json_each(?))`
    const params = [issuerId, JSON.stringify(ofIssuer.map(({ tokenIdSha256 }) => tokenIdSha256))]
    return { toSQL: () => ({ sql, params }) }
  })
}

export function dropExpiredSubjectTokens(orm: Orm, now: number): Statement {
  return orm.delete(usedSubjectTokens).where(lte(usedSubjectTokens.expiresAt, now))
}
