// Fetches the key set of an issuer from a fixed URL or from the URL in its discovery document. It stores nothing.
import { Fault } from '../../fault.ts'
import { issuerKeysFreshSecondsDefault, issuerKeysFreshSecondsMax, issuerKeysFreshSecondsMin } from '../../limits.ts'
import { hasStrings } from '../../values/json-members.ts'
import { fetchDocument, fetchTime, type Outbound } from './guarded-fetch.ts'
import type { Issuer } from './issuer.ts'
import { readKeySet, spiffeRefreshHintOf, spiffeSequenceOf, type VerificationKey } from './key-set.ts'

type FetchedKeys = { keys: VerificationKey[]; freshMilliseconds: number; spiffeSequence: number | undefined }

/**
 * Fetches the issuer's current keys and how many milliseconds they stay fresh. A SPIFFE bundle document may state both
 * its sequence, which must not be less than the last one, and how long it stays fresh (SPIFFE Trust Domain and Bundle
 * §4.1).
 * @throws Fault `unavailable` or `invalid`, with the cause
 */
export async function fetchKeys(issuer: Issuer, outbound: Outbound, lastSequence?: number): Promise<FetchedKeys> {
  const time = fetchTime()
  const jwksUrl = issuer.jwksUrl ?? (await discover(issuer, outbound, time))
  const { document, cacheControl } = await fetchDocument(outbound, jwksUrl, issuer.caPem, time)
  const keys = readFetched(document, jwksUrl)
  const spiffeSequence = spiffeSequenceOf(document)
  if (lastSequence !== undefined && spiffeSequence !== undefined && spiffeSequence < lastSequence)
    throw new Fault(
      'unavailable',
      `${JSON.stringify(jwksUrl)} went back from spiffe_sequence ${lastSequence} to ${spiffeSequence}`,
    )
  const seconds = spiffeRefreshHintOf(document) ?? maxAgeOf(cacheControl) ?? issuerKeysFreshSecondsDefault
  const freshSeconds = Math.min(Math.max(seconds, issuerKeysFreshSecondsMin), issuerKeysFreshSecondsMax)
  return { keys, freshMilliseconds: freshSeconds * 1_000, spiffeSequence: spiffeSequence ?? lastSequence }
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

function maxAgeOf(cacheControl: string | null): number | undefined {
  const seconds = /(?:^|[\s,])max-age="?(\d{1,9})/i.exec(cacheControl ?? '')?.[1]
  return seconds === undefined ? undefined : Number(seconds)
}

function readFetched(document: unknown, url: string): VerificationKey[] {
  try {
    return readKeySet(document)
  } catch (cause) {
    throw new Fault('unavailable', `${JSON.stringify(url)}: ${(cause as Error).message}`)
  }
}
