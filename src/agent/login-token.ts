// The ID token of a person who has signed in, renewed with the refresh token before it expires. Refresh tokens rotate, and a provider ends
// the login when one is used twice, so all processes of a user share one renewal.
import * as oauth from 'oauth4webapi'
import { Fault } from '../fault.ts'
import type { Fetch } from './bounded-fetch.ts'
import { withFileLock } from './file-lock.ts'
import type { Environment } from './identity.ts'
import { type Login, loginPath, openLoginFolder, readLogin, removeLogin, writeLogin } from './login-files.ts'
import { authenticationOf, clientOf, discoverProvider, errorCodeOf, explain } from './login-provider.ts'
import { readClaims } from './unverified-claims.ts'

/** `now` is in milliseconds since 1970. */
export type LoginDependencies = { environment: Environment; fetch: Fetch; now: () => number }
type Place = Pick<Login, 'url' | 'policy'>

/** An access token lives at most 15 minutes, and never longer than the ID token. */
const remainingMillisecondsMax = 15 * 60_000

/** Returns an ID token with at least half of its life left, or 15 minutes. Throws a fault that says what to run. */
export async function findIdToken(place: Place, dependencies: LoginDependencies): Promise<string> {
  const { environment, now } = dependencies
  const path = loginPath(environment, place)
  const login = readLogin(path)
  if (login === undefined) throw signedOut(place)
  if (isFresh(login, now())) return login.idToken
  await openLoginFolder(environment)
  return withFileLock(`${path}.lock`, async () => {
    const current = readLogin(path)
    if (current === undefined) throw signedOut(place)
    return isFresh(current, now()) ? current.idToken : (await renew(current, dependencies)).idToken
  })
}

/** False also if the clock was set to a time before the token was issued. */
function isFresh({ issuedAt, expiresAt }: Login, now: number): boolean {
  return now >= issuedAt && expiresAt - now >= Math.min(remainingMillisecondsMax, (expiresAt - issuedAt) / 2)
}

/** Uses the refresh token once. The new tokens are on disk before anybody gets them. */
async function renew(login: Login, dependencies: LoginDependencies): Promise<Login> {
  const { environment, now } = dependencies
  const isUsable = now() >= login.issuedAt && now() < login.expiresAt
  if (login.refreshToken === undefined) {
    if (isUsable) return login
    throw await endLogin(login, environment, 'and the identity provider gave no refresh token')
  }
  try {
    const renewed = await refresh(login, login.refreshToken, dependencies)
    await writeLogin(environment, renewed)
    return renewed
  } catch (error) {
    const code = errorCodeOf(error)
    if (code === 'invalid_grant') throw await endLogin(login, environment, 'because the identity provider ended it')
    // The provider is away, and the token still counts.
    if (error instanceof Fault && error.code !== 'forbidden' && isUsable) return login
    throw explain('renew the login', error)
  }
}

async function refresh(login: Login, refreshToken: string, { fetch, now }: LoginDependencies): Promise<Login> {
  const { server, options } = await discoverProvider(login.issuer, fetch)
  const client = clientOf(login)
  const sent = await oauth.refreshTokenGrantRequest(server, client, authenticationOf(login), refreshToken, options)
  const tokens = await oauth.processRefreshTokenResponse(server, client, sent)
  const idToken = tokens.id_token
  if (idToken === undefined)
    throw new Fault('forbidden', 'The identity provider does not send an ID token when a login is renewed', {
      hint: `: run latchkey login ${login.url} again; ask an administrator to add the scope openid`,
    })
  // A login stays with the person who began it (OpenID Connect Core 1.0 §12.2).
  if (readClaims(idToken).sub !== login.subject)
    throw new Fault('forbidden', 'The identity provider renewed the login for another person', {
      hint: `: run latchkey logout, then latchkey login ${login.url}`,
    })
  const { refresh_token: rotated = refreshToken } = tokens
  return { ...login, idToken, ...lifetimeOf(idToken, now()), refreshToken: rotated }
}

/** By the clock of this machine, which may differ from that of the provider. */
export function lifetimeOf(idToken: string, now: number): Pick<Login, 'issuedAt' | 'expiresAt'> {
  const { iat, exp } = readClaims(idToken)
  return { issuedAt: now, expiresAt: now + Math.max(0, Number(exp) - Number(iat)) * 1_000 }
}

async function endLogin(login: Login, environment: Environment, why: string): Promise<Fault> {
  await removeLogin(environment, login)
  return new Fault('forbidden', `The login of ${login.name} at ${login.url} has ended, ${why}`, {
    hint: `: run latchkey login ${login.url}`,
  })
}

function signedOut({ url }: Place): Fault {
  return new Fault('unavailable', `Nobody is signed in to ${url}`, { hint: `: run latchkey login ${url}` })
}
