// One token exchange at a Latchkey, for a workload: the base URL, and failures in sentences that say what to check.
import { Fault } from '../fault.ts'
import type { Fetch } from './bounded-fetch.ts'
import { isLoopback } from './identity-token.ts'
import { requestToken, type TokenResponse } from './token-request.ts'
import { readClaims } from './unverified-claims.ts'

export type ExchangeRequest = { url: string; policy: string; subjectToken: string }
/** `now` is in milliseconds since 1970; `userAgent` is what the server sees. */
export type ExchangeDependencies = { fetch: Fetch; now: () => number; userAgent: string }
type Refusal = TokenResponse & { token: undefined }
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
  const issuedAt = now()
  const init = { headers: { accept: 'application/json', 'user-agent': userAgent } }
  const options = { fetch, init, name: 'The Latchkey server' }
  const response = await requestToken(`${request.url}/oauth/token`, request, options)
  if (response.token === undefined) throw refusalOf(response, request)
  return { text: response.token, issuedAt, expiresAt: issuedAt + response.lifetimeSeconds * 1_000 }
}

const urlHint = ': check that LATCHKEY_URL is the base URL of a Latchkey server; it ends in /v1'

function refusalOf({ status, error, description, requestId }: Refusal, { url, subjectToken }: ExchangeRequest): Fault {
  if (status === 200)
    return new Fault('bad_gateway', `The server at ${url} did not send an access token`, { hint: urlHint })
  if (error === undefined)
    return new Fault('bad_gateway', `The server at ${url} responded with ${status}, not as Latchkey does`, {
      hint: urlHint,
    })
  const request = requestId === undefined ? '' : ` (request id ${requestId})`
  const isRefused = error === 'invalid_grant' || error === 'invalid_target'
  const lines = isRefused
    ? [
        `The JWT of this workload has ${describeClaims(subjectToken)}`,
        'Check: the policy id is right, the policy is enabled, and its issuer, audience and subject or condition match the JWT',
        `The reason is in the audit log of the server: latchkey audit show${requestId === undefined ? '' : ` ${requestId}`}`,
      ]
    : [`Check: the policy id and the URL ${url}`]
  const code = status >= 500 || status === 429 ? 'unavailable' : 'forbidden'
  return new Fault(code, `${description ?? error}${request}`, { hint: `\n${lines.join('\n')}` })
}

/** What a policy compares, from the unverified JWT: `iss "…", sub "…", aud "…", exp …`. None of it is a secret. */
function describeClaims(jwt: string): string {
  const { iss, sub, aud, exp } = readClaims(jwt)
  const shown = (value: unknown) => (JSON.stringify(value) ?? 'nothing').slice(0, 300)
  const expiry = typeof exp === 'number' && Math.abs(exp) < 1e11 ? new Date(exp * 1000).toISOString() : shown(exp)
  return `iss ${shown(iss)}, sub ${shown(sub)}, aud ${shown(aud)}, exp ${expiry}`
}
