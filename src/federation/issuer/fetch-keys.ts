// Fetches the key set of an issuer from a fixed URL or from the URL in its discovery document. It stores nothing.
import { Fault } from '../../fault.ts'
import { issuerKeysFreshSecondsDefault, issuerKeysFreshSecondsMax, issuerKeysFreshSecondsMin } from '../../limits.ts'
import { hasStrings } from '../../values/json-members.ts'
import { fetchDocument, fetchTime, type Outbound } from './guarded-fetch.ts'
import type { Issuer } from './issuer.ts'
import { readKeySet, type VerificationKey } from './key-set.ts'

/**
 * Fetches the issuer's current keys and how many milliseconds they stay fresh.
 * @throws Fault `unavailable` or `invalid`, with the cause
 */
export async function fetchKeys(
  issuer: Issuer,
  outbound: Outbound,
): Promise<{ keys: VerificationKey[]; freshMilliseconds: number }> {
  const time = fetchTime()
  const jwksUrl = issuer.jwksUrl ?? (await discover(issuer, outbound, time))
  const { document, cacheControl } = await fetchDocument(outbound, jwksUrl, issuer.caPem, time)
  return { keys: readFetched(document, jwksUrl), freshMilliseconds: freshSeconds(cacheControl) * 1_000 }
}

/**
 * Returns the JWKS URL from the discovery document, which must name the requested issuer (OpenID Connect Discovery 1.0
 * §4).
 */
export async function discover(
  issuer: Pick<Issuer, 'issuerUrl' | 'caPem'>,
  outbound: Outbound,
  time?: AbortSignal,
): Promise<string> {
  const url = `${issuer.issuerUrl.replace(/\/$/, '')}/.well-known/openid-configuration`
  const { document: discovery } = await fetchDocument(outbound, url, issuer.caPem, time)
  if (!hasStrings(discovery, ['issuer', 'jwks_uri']))
    throw new Fault('invalid', `${JSON.stringify(url)} is not a discovery document: it lacks issuer or jwks_uri`)
  if (discovery.issuer !== issuer.issuerUrl) {
    throw new Fault(
      'unavailable',
      `${JSON.stringify(url)} names the issuer ${JSON.stringify(discovery.issuer.slice(0, 256))}, not ${JSON.stringify(issuer.issuerUrl)}`,
    )
  }
  return discovery.jwks_uri
}

function freshSeconds(cacheControl: string | null): number {
  const maxAge = /(?:^|[\s,])max-age="?(\d{1,9})/i.exec(cacheControl ?? '')?.[1]
  const seconds = maxAge === undefined ? issuerKeysFreshSecondsDefault : Number(maxAge)
  return Math.min(Math.max(seconds, issuerKeysFreshSecondsMin), issuerKeysFreshSecondsMax)
}

function readFetched(document: unknown, url: string): VerificationKey[] {
  try {
    return readKeySet(document)
  } catch (cause) {
    throw new Fault('unavailable', `${JSON.stringify(url)}: ${(cause as Error).message}`)
  }
}
