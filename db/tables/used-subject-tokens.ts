// Subject tokens used under replay protection. write.ts adds rows, and expired tokens are deleted.
import { and, eq, gt, lte, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { databaseTime } from '../schema/node-schema.ts'
import { type UsedSubjectToken, usedSubjectTokens } from '../schema/record-schema.ts'
import type { Statement } from '../write/rows.ts'

/** A response of a database server holds four times as many. */
const tokensAtOnce = 10_000

/** Lists the tokens that have not expired. `now` is in milliseconds since 1970 UTC. */
export async function listUsedSubjectTokens(orm: Orm, now: number): Promise<UsedSubjectToken[]> {
  const { issuerId, tokenIdSha256, expiresAt } = usedSubjectTokens
  const listed: UsedSubjectToken[] = []
  for (;;) {
    const last = listed.at(-1)
    const isAfter = last && sql`(${issuerId}, ${tokenIdSha256}) > (${last.issuerId}, ${last.tokenIdSha256})`
    const rows = await orm
      .select()
      .from(usedSubjectTokens)
      .where(and(gt(expiresAt, now), isAfter))
      .orderBy(issuerId, tokenIdSha256)
      .limit(tokensAtOnce)
    for (const row of rows) listed.push(row)
    if (rows.length < tokensAtOnce) return listed
  }
}

/** Returns one unexpired token, or undefined if it is not recorded. */
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

/**
 * Deletes tokens by primary key, so the cost depends only on the number of tokens. `isShared`: only those that have expired by the clock of
 * the database, because the clock of this node can be ahead.
 */
export function dropSubjectTokens(
  tokens: { issuerId: string; tokenIdSha256: string }[],
  { isShared = false } = {},
): Statement[] {
  const ofIssuers = Map.groupBy(tokens, ({ issuerId }) => issuerId)
  return [...ofIssuers].map(([issuerId, ofIssuer]) => {
    const sql = `delete from used_subject_tokens
      where issuer_id = ? and token_id_sha256 in (select value from json_each(?))
      ${isShared ? `and expires_at <= ${databaseTime}` : ''}`
    const params = [issuerId, JSON.stringify(ofIssuer.map(({ tokenIdSha256 }) => tokenIdSha256))]
    return { toSQL: () => ({ sql, params }) }
  })
}

/** `isShared`: as for `dropSubjectTokens`. */
export function dropExpiredSubjectTokens(orm: Orm, now: number, { isShared = false } = {}): Statement {
  const { expiresAt } = usedSubjectTokens
  const hasExpired = isShared ? lte(expiresAt, sql.raw(databaseTime)) : undefined
  return orm.delete(usedSubjectTokens).where(and(lte(expiresAt, now), hasExpired))
}
