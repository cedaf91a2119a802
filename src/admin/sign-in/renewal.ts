// Asks the issuers again who people with a session are, before their ID tokens expire. Refresh tokens stay in the memory of the node that
// began the session, and nowhere else: after a restart, a session lasts as long as its ID token.
import * as oauth from 'oauth4webapi'
import { putSessionValidity } from '../../../db/tables/sessions.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import type { Session } from '../../page/sessions.ts'
import { endSession } from '../sessions/begin-session.ts'
import { judgePerson } from './judge-person.ts'
import { failureOf, openProvider } from './provider.ts'
import { type SignInContext, validUntilOf } from './sign-in-context.ts'

/** Other nodes read the new time within a minute. */
const earlyMillisecondsMax = 5 * 60_000
const earlyMillisecondsMin = 2 * 60_000

/** Renews the sessions that are due, one after the other. */
export async function renewSessions(context: SignInContext): Promise<void> {
  const { page, refreshTokens } = context
  for (const [id, refreshToken] of refreshTokens) {
    const session = page.sessions.get(id)
    if (session === undefined) refreshTokens.delete(id)
    else if (isDue(session.row, context.now())) await renewOne(session, refreshToken, context)
  }
}

/** At half of the time, but two to five minutes before the end. */
function isDue({ validUntil, createdAt }: Session['row'], now: number): boolean {
  if (validUntil === null) return false
  const early = Math.min(Math.max((validUntil - createdAt) / 2, earlyMillisecondsMin), earlyMillisecondsMax)
  return validUntil - now <= early
}

async function renewOne({ row, trust }: Session, refreshToken: string, context: SignInContext): Promise<void> {
  const { refreshTokens, registry, writer, orm, log, now } = context
  if (trust === undefined) return
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
    if (accepted === undefined || accepted.token.subject !== row.subject) return await end(row.id, refused, context)
    const validUntil = validUntilOf(accepted.token.payload, now())
    await writer.write([putSessionValidity(orm, row.id, validUntil)])
    const kept = registry.sessions.get(row.tokenSha256)
    if (kept !== undefined) registry.sessions.set(row.tokenSha256, { ...kept, row: { ...kept.row, validUntil } })
  } catch (error) {
    const { reason, detail } = failureOf(error)
    if (reason === 'refused_by_issuer') return await end(row.id, detail, context)
    log('warn', 'session_not_renewed', { session: row.id, reason, detail })
  }
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
