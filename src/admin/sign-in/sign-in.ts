// Sign-in to the admin page with an issuer: to its page with PKCE, `state` and `nonce`, and back with a code that becomes a session. Nothing
// of it is part of an address of the page, a log line or a row but issuer, subject and name of the person.
import * as oauth from 'oauth4webapi'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import type { RequestInfo } from '../../http/endpoint.ts'
import type { Page } from '../../page/page.ts'
import { readCookie, setCookie } from '../../page/session-cookie.ts'
import { lifetimeSecondsMax } from '../../page/sessions.ts'
import { beginSession, endAsItself, type SignedIn } from '../sessions/begin-session.ts'
import { type Attempt, attemptCookie, createAttempt, endedAttemptCookie, readAttempt } from './attempt.ts'
import { judgePerson } from './judge-person.ts'
import { failureOf, openProvider, type Provider } from './provider.ts'
import { nameOf, type SignInContext, validUntilOf } from './sign-in-context.ts'

/** Why a person is not signed in. The page has a sentence for each. */
type Failure = 'canceled' | 'unavailable' | 'refused_by_issuer' | 'invalid' | 'expired' | 'not_allowed' | 'too_many'

const usualScopes = 'openid profile email'

/** Where the issuer sends the browser back. */
export function redirectUriOf({ url }: Pick<Page, 'url'>): string {
  return `${url}sign-in/callback`
}

/** Sends the browser to the issuer. */
export async function beginSignIn(
  issuer: Issuer,
  clientId: string,
  context: SignInContext,
  info: RequestInfo,
): Promise<Response> {
  const { page, masterKey, now } = context
  const attempt = createAttempt(issuer.id, now())
  try {
    const { server } = await openProvider(issuer, clientId, context)
    if (server.authorization_endpoint === undefined) throw new Error('The issuer has no authorization endpoint')
    const url = new URL(server.authorization_endpoint)
    const fields = {
      ...{ response_type: 'code', client_id: clientId, redirect_uri: redirectUriOf(page) },
      ...{ scope: issuer.loginScopes ?? usualScopes, state: attempt.state, nonce: attempt.nonce },
      code_challenge: await oauth.calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: 'S256',
      ...(issuer.pageMaxAgeSeconds === null ? {} : { max_age: String(issuer.pageMaxAgeSeconds) }),
    }
    for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value)
    return redirect(url.href, [await attemptCookie(page.origin, attempt, masterKey)])
  } catch (error) {
    const { reason, detail } = failureOf(error)
    return fail(reason, detail, context, info)
  }
}

/** Begins the session of the person whom the issuer sends back, and shows the page. */
export async function finishSignIn(request: Request, context: SignInContext, info: RequestInfo): Promise<Response> {
  const { page, registry, masterKey, now } = context
  const attempt = await readAttempt(request, page.origin, { masterKey, now: now() })
  if (attempt === undefined)
    return fail('expired', 'this browser began no sign-in, or did so too long ago', context, info)
  const issuer = registry.issuers.get(attempt.issuerId)
  if (issuer === undefined || issuer.deletedAt !== null || issuer.pageClientId === null)
    return fail('invalid', 'the issuer signs nobody in any longer', context, info)
  const wait = page.signInRate.takeReturn(info.clientAddress, now())
  if (wait > 0) return fail('too_many', `${wait} s to wait`, context, info)
  try {
    const provider = await openProvider(issuer, issuer.pageClientId, context)
    const tokens = await exchangeCode(request, attempt, { ...provider, issuer }, redirectUriOf(page))
    const idToken = tokens.id_token ?? ''
    const verdict = await judgePerson(idToken, issuer, context)
    if (verdict.accepted === undefined) return fail('not_allowed', verdict.refused, context, info)
    return await begin(request, { ...verdict, issuer, refreshToken: tokens.refresh_token }, context, info)
  } catch (error) {
    const { reason, detail } = failureOf(error)
    return fail(reason, detail, context, info)
  }
}

/** Checks `state` and `iss` (RFC 9207), then `nonce`, `azp` and times (`auth_time` too) of the ID token. Its signature is judged with the policies. */
async function exchangeCode(
  request: Request,
  { state, nonce, verifier }: Attempt,
  { server, client, authentication, options, issuer }: Provider & { issuer: Issuer },
  redirectUri: string,
): Promise<oauth.TokenEndpointResponse> {
  const parameters = oauth.validateAuthResponse(server, client, new URL(request.url), state)
  const sent = [server, client, authentication, parameters, redirectUri, verifier, options] as const
  const response = await oauth.authorizationCodeGrantRequest(...sent)
  return oauth.processAuthorizationCodeResponse(server, client, response, {
    expectedNonce: nonce,
    requireIdToken: true,
    ...(issuer.pageMaxAgeSeconds === null ? {} : { maxAge: issuer.pageMaxAgeSeconds }),
  })
}

type Admission = {
  accepted: NonNullable<Awaited<ReturnType<typeof judgePerson>>['accepted']>
  issuer: Issuer
  refreshToken: string | undefined
}

async function begin(
  request: Request,
  { accepted, issuer, refreshToken }: Admission,
  context: SignInContext,
  { clientAddress, requestId }: RequestInfo,
): Promise<Response> {
  const { page, registry, now, refreshTokens } = context
  const { token: person, binding } = accepted
  const key = registry.keys.get(binding.key.id)
  if (key === undefined) throw new Error('The management key was deleted meanwhile')
  const signedIn: SignedIn = {
    policy: binding.policy,
    issuer,
    subject: person.subject,
    name: nameOf(person.payload),
    providerSession: typeof person.payload.sid === 'string' ? person.payload.sid.slice(0, 512) : null,
    validUntil: validUntilOf(person.payload, issuer, now()),
  }
  const cookie = readCookie(request, page.origin)
  const before = cookie === undefined ? undefined : page.sessions.find(cookie, { isUse: false })
  const fields = { key, role: key.role, openedBy: null, clientAddress, requestId, person: signedIn }
  const { row, token } = await beginSession(context, page, fields)
  if (before !== undefined) await endAsItself(before.row, context, requestId)
  if (refreshToken !== undefined) refreshTokens.set(row.id, refreshToken)
  context.lastUses.noteUse(binding.policy.id, now())
  context.log('info', 'signed_in', {
    request_id: requestId,
    issuer_id: issuer.id,
    subject: person.subject,
    policy: binding.policy.name,
  })
  return redirect(page.url, [setCookie(page.origin, token, lifetimeSecondsMax), endedAttemptCookie(page.origin)])
}

/** The log says why, and the page what to do. */
function fail(
  reason: Failure,
  detail: string,
  context: SignInContext,
  { requestId, clientAddress }: RequestInfo,
): Response {
  const { page, log, now } = context
  page.signInRate.takeRefused(clientAddress, now())
  log('warn', 'sign_in_refused', { request_id: requestId, client_address: clientAddress ?? undefined, reason, detail })
  const query = new URLSearchParams({ failed: reason, request: requestId })
  return redirect(`${page.url}#/?${query}`, [endedAttemptCookie(page.origin)])
}

function redirect(location: string, cookies: readonly string[]): Response {
  const headers = new Headers({ location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  for (const each of cookies) headers.append('set-cookie', each)
  return new Response(null, { status: 303, headers })
}
