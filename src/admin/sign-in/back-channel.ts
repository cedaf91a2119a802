// Back-channel logout (OpenID Connect Back-Channel Logout 1.0): an issuer ends the sessions of a person, or those of one of its own sessions.
import type { Issuer } from '../../federation/issuer/issuer.ts'
import { narrowSubjectToken } from '../../federation/subject-token/claims.ts'
import { isRefusal } from '../../federation/subject-token/refusal.ts'
import { hasMediaType, readBody } from '../../http/body.ts'
import { isSignedBy } from '../../tokens/jws.ts'
import type { JsonObject } from '../../tokens/jwt-text.ts'
import { parseJwtText } from '../../tokens/jwt-text.ts'
import { endSession } from '../sessions/begin-session.ts'
import type { SignInContext } from './sign-in-context.ts'

const event = 'http://schemas.openid.net/event/backchannel-logout'
const bodyBytesMax = 32_768
/** Logout tokens are sent at once (§2.4 recommends two minutes). */
const ageMillisecondsMax = 5 * 60_000

/** What a logout token names, or why it is refused. */
type LogoutSubject = { issuer: Issuer; sub: string | undefined; sid: string | undefined; issuedAt: number }

/** Ends the sessions that a logout token names, and returns how many, or why the token is refused. */
export async function logOut(request: Request, context: SignInContext): Promise<number | string> {
  if (!hasMediaType(request, 'application/x-www-form-urlencoded')) return 'the body is not a form'
  const form = new URLSearchParams(new TextDecoder().decode(await readBody(request, bodyBytesMax)))
  const text = form.get('logout_token') ?? ''
  const named = await readLogoutToken(text, context)
  if (typeof named === 'string') return named
  const { issuer, sub, sid, issuedAt } = named
  const { page, registry } = context
  const ended = [...registry.organizations.keys()]
    .flatMap((id) => page.sessions.list(id))
    .filter(({ row }) => {
      const isTheirs = row.issuerId === issuer.id && (sid === undefined || row.providerSession === sid)
      // A token that is sent again does not end a later session.
      return (
        isTheirs &&
        (sub === undefined || row.subject === sub) &&
        row.createdAt <= issuedAt + issuer.clockSkewSeconds * 1_000
      )
    })
  for (const { row } of ended)
    await endSession({ ...context, actor: { kind: 'server' }, operation: 'sessions.end' }, row.id)
  return ended.length
}

/** §2.6, in its order. */
async function readLogoutToken(text: string, context: SignInContext): Promise<LogoutSubject | string> {
  const { registry, issuerKeys, now } = context
  const jwt = parseJwtText(text)
  if (jwt === undefined) return 'logout_token is not a JWT'
  const { typ } = jwt.header
  if (typ !== undefined && typeof typ === 'string' && !/^(application\/)?(logout\+jwt|jwt)$/i.test(typ))
    return 'the token is of another type'
  // A logout token may name a session alone, and the checks of subject tokens want a subject.
  const token = narrowSubjectToken({ ...jwt, payload: { ...jwt.payload, sub: jwt.payload.sub ?? 'nobody' } })
  if (isRefusal(token)) return token.refused
  const issuers = [...registry.issuers.values()].filter((each) => isFor(each, token.issuer, token.audience))
  for (const issuer of issuers) {
    const key = await issuerKeys.find(issuer, token)
    if (isRefusal(key) || !(await isSignedBy(text, token.algorithm, key))) continue
    const problem = problemOf(jwt.payload, now(), issuer)
    if (problem !== undefined) return problem
    const { sub, sid, iat } = jwt.payload
    return { issuer, sub: textOf(sub), sid: textOf(sid), issuedAt: Number(iat) * 1_000 }
  }
  return 'no issuer of the page has signed it'
}

function isFor({ deletedAt, issuerUrl, pageClientId }: Issuer, iss: string, audience: readonly string[]): boolean {
  return deletedAt === null && issuerUrl === iss && pageClientId !== null && audience.includes(pageClientId)
}

function problemOf(payload: JsonObject, now: number, { clockSkewSeconds }: Issuer): string | undefined {
  const { iat, exp, events, nonce, sub, sid, jti } = payload
  const skew = clockSkewSeconds * 1_000
  if (typeof iat !== 'number' || iat * 1_000 > now + skew || iat * 1_000 < now - ageMillisecondsMax - skew)
    return 'iat is too old, in the future or missing'
  if (exp !== undefined && (typeof exp !== 'number' || exp * 1_000 <= now - skew)) return 'the token has expired'
  if (typeof jti !== 'string') return 'jti is missing'
  const isLogout = typeof events === 'object' && events !== null && Object.hasOwn(events, event)
  if (!isLogout) return 'events does not name a logout'
  // An ID token must not pass for a logout token.
  if (nonce !== undefined) return 'nonce is not allowed'
  return textOf(sub) === undefined && textOf(sid) === undefined ? 'sub and sid are missing' : undefined
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
