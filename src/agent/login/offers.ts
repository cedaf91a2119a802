// The logins that a server offers: the issuer, the client and the policy of each, in its metadata (RFC 9728).
import { Fault } from '../../fault.ts'
import { type Fetch, fetchText } from '../bounded-fetch.ts'
import { isLoopback } from '../identity-token.ts'
import { parseObject } from '../unverified-claims.ts'

export type Offer = {
  policy: string
  policyName: string
  issuer: string
  clientId: string
  /** Null: the usual ones. */
  scopes: string | null
  /** Where the browser returns to; without a port, any free one. */
  redirectUri: string
}

const offersMax = 200

/** Reads what the server offers. `url` has passed `checkBaseUrl`. Throws a fault. */
export async function readOffers(url: string, fetch: Fetch): Promise<Offer[]> {
  const { origin, pathname } = new URL(url)
  const address = `${origin}/.well-known/oauth-protected-resource${pathname === '/' ? '' : pathname}`
  const headers = { accept: 'application/json' }
  const { status, text } = await fetchText(fetch, address, { headers }, 'The Latchkey server')
  const { resource, latchkey_logins: listed } = parseObject(text)
  if (status !== 200 || resource === undefined)
    throw new Fault('bad_gateway', `The server at ${url} does not describe its logins`, {
      hint: ': check that the URL is the base URL of a Latchkey server; it ends in /v1',
    })
  // A server that answers for another resource could lead the login to its own issuers (RFC 9728 §3.3).
  if (resource !== url)
    throw new Fault('bad_gateway', `The server at ${url} says that it is ${JSON.stringify(resource)}`, {
      hint: ': use that URL if you trust it',
    })
  return (Array.isArray(listed) ? listed.slice(0, offersMax) : []).flatMap((entry: unknown) => offerOf(entry) ?? [])
}

function offerOf(entry: unknown): Offer | undefined {
  if (typeof entry !== 'object' || entry === null) return undefined
  const { policy, policy_name, issuer, client_id, scopes, redirect_uri } = entry as Record<string, unknown>
  if (typeof policy !== 'string' || typeof issuer !== 'string' || typeof client_id !== 'string') return undefined
  if (typeof redirect_uri !== 'string' || !isIssuerUrl(issuer) || !isLoopbackUrl(redirect_uri)) return undefined
  const name = typeof policy_name === 'string' ? policy_name : policy
  return {
    policy,
    policyName: name,
    issuer,
    clientId: client_id,
    scopes: typeof scopes === 'string' ? scopes : null,
    redirectUri: redirect_uri,
  }
}

function isIssuerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname } = new URL(text)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
}

function isLoopbackUrl(text: string): boolean {
  return URL.canParse(text) && text.startsWith('http://') && isLoopback(new URL(text).hostname)
}

/** The offer of the policy with this id or name, or the only one. Throws a fault that names the choices. */
export function chooseOffer(offers: readonly Offer[], policy: string, url: string): Offer {
  const choices = offers.map(({ policy: id, policyName }) => `\n  ${id}  ${JSON.stringify(policyName)}`).join('')
  if (policy !== '') {
    const found = offers.filter((offer) => offer.policy === policy || offer.policyName === policy)
    const [only, ...others] = found
    if (only !== undefined && others.length === 0) return only
    throw new Fault('not_found', `The server at ${url} offers no login for the policy ${JSON.stringify(policy)}`, {
      hint: choices === '' ? '' : `; use --policy with one of these:${choices}`,
    })
  }
  const [only, ...others] = offers
  if (only === undefined)
    throw new Fault('not_found', `The server at ${url} offers no login`, {
      hint: ': ask an administrator to set a login client of the issuer (latchkey issuers update ISSUER --login-client-id ID)',
    })
  if (others.length > 0)
    throw new Fault('usage', `The server at ${url} offers several logins`, {
      hint: `: choose one with --policy:${choices}`,
    })
  return only
}
