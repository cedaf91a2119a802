// One token exchange at a Latchkey, as a client: the request (RFC 8693 §2.1), its bounds, and failures in sentences that
// say what to check.
import { Fault } from '../fault.ts'
import { type Fetch, fetchText } from './bounded-fetch.ts'
import { isLoopback } from './identity-token.ts'
import { parseObject, readClaims } from './unverified-claims.ts'

export type ExchangeRequest = { url: string; policy: string; subjectToken: string }
/** `now` is in milliseconds since 1970; `userAgent` is what the server sees. */
export type ExchangeDependencies = { fetch: Fetch; now: () => number; userAgent: string }
/** Times are in milliseconds since 1970. */
export type AccessToken = { text: string; issuedAt: number; expiresAt: number }

/**
 * Checks a base URL: https, or http to this machine, without credentials, query and fragment. Returns it without slashes
 * at its end. Throws a `usage` fault.
 */
export function checkBaseUrl(text: string, { allowsHttp }: { allowsHttp: boolean }): string {
  const rule = 'use the base URL of the service, for example https://llm.example.com/v1'
  // The text is not repeated where it can contain a password.
  if (!URL.canParse(text)) throw new Fault('usage', `The value of --url is not a URL: ${rule}`)
  const url = new URL(text)
  if (url.username !== '' || url.password !== '')
    throw new Fault('usage', `--url must not contain credentials: ${rule}`)
  if (url.search !== '' || url.hash !== '')
    throw new Fault('usage', `--url must not contain a query or fragment: ${rule}`)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new Fault('usage', `--url must be https: ${rule}`)
  if (url.protocol === 'http:' && !allowsHttp && !isLoopback(url.hostname))
    throw new Fault(
      'usage',
      `--url must start with https://, because ${url.hostname} is not this machine: tokens would cross the network unencrypted`,
      { hint: '; --insecure-http allows it' },
    )
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

/**
 * Exchanges a JWT for an access token. Throws a fault with the server's sentence, its request id, what the JWT says of
 * the workload, and what to check. The fault never contains the JWT.
 */
export async function exchangeToken(
  request: ExchangeRequest,
  dependencies: ExchangeDependencies,
): Promise<AccessToken> {
  const { fetch, now, userAgent } = dependencies
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    federation_policy_id: request.policy,
    subject_token: request.subjectToken,
  })
  const issuedAt = now()
  const headers = { accept: 'application/json', 'user-agent': userAgent }
  const init = { method: 'POST', headers, body }
  const { status, text } = await fetchText(fetch, `${request.url}/oauth/token`, init, 'The Latchkey server')
  const members = parseObject(text)
  if (status !== 200) throw refusalOf(status, members, request)
  const { access_token: token, token_type: type, expires_in: seconds } = members
  const isToken = typeof token === 'string' && /^[\w.~+/=-]{1,16384}$/.test(token)
  const isBearer = typeof type === 'string' && type.toLowerCase() === 'bearer'
  if (!isToken || !isBearer || typeof seconds !== 'number' || !(seconds > 0 && seconds <= 86_400))
    throw new Fault('bad_gateway', `The server at ${request.url} did not send an access token`, { hint: urlHint })
  return { text: token, issuedAt, expiresAt: issuedAt + seconds * 1000 }
}

const urlHint = ': check that LATCHKEY_URL is the base URL of a Latchkey server; it ends in /v1'

function refusalOf(status: number, members: Record<string, unknown>, { url, subjectToken }: ExchangeRequest): Fault {
  const { error, error_description: description, request_id: id } = members
  if (typeof error !== 'string')
    return new Fault('bad_gateway', `The server at ${url} responded with ${status}, not as Latchkey does`, {
      hint: urlHint,
    })
  const sentence = typeof description === 'string' ? description.slice(0, 1_000) : error.slice(0, 100)
  const request = typeof id === 'string' && /^[\w-]{1,64}$/.test(id) ? ` (request id ${id})` : ''
  const isRefused = error === 'invalid_grant' || error === 'invalid_target'
  const lines = isRefused
    ? [
        `The JWT of this workload has ${describeClaims(subjectToken)}`,
        'Check: the policy id is right, the policy is enabled, and its issuer, audience and subject or condition match the JWT',
        `The reason is in the audit log of the server: latchkey audit show${request === '' ? '' : ` ${String(id)}`}`,
      ]
    : [`Check: the policy id and the URL ${url}`]
  return new Fault(status >= 500 || status === 429 ? 'unavailable' : 'forbidden', `${sentence}${request}`, {
    hint: `\n${lines.join('\n')}`,
  })
}

/** What a policy compares, from the unverified JWT: `iss "…", sub "…", aud "…", exp …`. None of it is a secret. */
function describeClaims(jwt: string): string {
  const { iss, sub, aud, exp } = readClaims(jwt)
  const shown = (value: unknown) => (JSON.stringify(value) ?? 'nothing').slice(0, 300)
  const expiry = typeof exp === 'number' && Math.abs(exp) < 1e11 ? new Date(exp * 1000).toISOString() : shown(exp)
  return `iss ${shown(iss)}, sub ${shown(sub)}, aud ${shown(aud)}, exp ${expiry}`
}
