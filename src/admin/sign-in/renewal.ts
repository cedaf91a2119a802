// Asks the issuers again who people with a session are, before their ID tokens expire. Refresh tokens stay in the memory of the node that
// began the session, and nowhere else: after a restart, a session lasts as long as its ID token.
import * as oauth from 'oauth4webapi'
import { putSessionValidity } from '../../../db/tables/sessions.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import type { Session } from '../../page/sessions.ts'
import { endSession } from '../sessions/begin-session.ts'
import { judgePerson } from './judge-person.ts'
import { failureOf, openProvider } from './provider.ts'
import { authenticatedUntil, type SignInContext, validUntilOf } from './sign-in-context.ts'

/** Other nodes read the new time within a minute. */
const earlyMillisecondsMax = 5 * 60_000
const earlyMillisecondsMin = 2 * 60_000

/** Renews the sessions that are due, one after the other. An issuer that is away is not asked for each: others would wait too long. */
export async function renewSessions(context: SignInContext): Promise<void> {
  const { page, refreshTokens } = context
  const away = new Set<string>()
  for (const [id, refreshToken] of refreshTokens) {
    const session = page.sessions.get(id)
    if (session === undefined) refreshTokens.delete(id)
    else if (isDue(session.row, context.now()) && !away.has(session.row.issuerId ?? '')) {
      const isAway = await renewOne(session, refreshToken, context)
      if (isAway) away.add(session.row.issuerId ?? '')
    }
  }
}

/** At half of the time, but two to five minutes before the end. */
function isDue({ validUntil, createdAt }: Session['row'], now: number): boolean {
  if (validUntil === null) return false
  const early = Math.min(Math.max((validUntil - createdAt) / 2, earlyMillisecondsMin), earlyMillisecondsMax)
  return validUntil - now <= early
}

/** Returns whether the issuer is away. */
async function renewOne({ row, trust }: Session, refreshToken: string, context: SignInContext): Promise<boolean> {
  const { refreshTokens, log } = context
  if (trust === undefined) return false
  try {
    const tokens = await refresh(trust.issuer, refreshToken, context)
    // A refresh token is used once.
    refreshTokens.set(row.id, tokens.refresh_token ?? refreshToken)
    const { accepted, refused = 'another person' } = await judgePerson(
      tokens.id_token ?? '',
      trust.issuer,
      context,
      trust.policy,
    )
    if (accepted === undefined || accepted.token.subject !== row.subject) await end(row.id, refused, context)
    else await prolong(row, trust.issuer, accepted.token.payload, context)
    return false
  } catch (error) {
    const { reason, detail, errorCode } = failureOf(error)
    // Of what an issuer refuses, only this is about the person (RFC 6749 §5.2), and not about the page as its client.
    if (errorCode === 'invalid_grant') await end(row.id, detail, context)
    else log('warn', 'session_not_renewed', { session: row.id, reason, detail })
    return reason === 'unavailable'
  }
}

async function prolong(
  row: Session['row'],
  issuer: Issuer,
  claims: Readonly<Record<string, unknown>>,
  { refreshTokens, registry, writer, orm, now }: SignInContext,
): Promise<void> {
  // The person must sign in again by then, so the issuer need not be asked before.
  if (authenticatedUntil(claims, issuer) <= (row.validUntil ?? 0)) return void refreshTokens.delete(row.id)
  const validUntil = validUntilOf(claims, issuer, now())
  await writer.write([putSessionValidity(orm, row.id, validUntil)])
  const kept = registry.sessions.get(row.tokenSha256)
  if (kept !== undefined) registry.sessions.set(row.tokenSha256, { ...kept, row: { ...kept.row, validUntil } })
}

async function end(id: string, detail: string, context: SignInContext): Promise<void> {
  context.refreshTokens.delete(id)
  context.log('info', 'session_ended_by_issuer', { session: id, detail })
  await endSession({ ...context, actor: { kind: 'server' }, operation: 'sessions.end' }, id)
}

async function refresh(
  issuer: Issuer,
  refreshToken: string,
  context: SignInContext,
): Promise<oauth.TokenEndpointResponse> {
  const { server, client, authentication, options } = await openProvider(issuer, issuer.pageClientId ?? '', context)
  const response = await oauth.refreshTokenGrantRequest(server, client, authentication, refreshToken, options)
  return oauth.processRefreshTokenResponse(server, client, response)
}
