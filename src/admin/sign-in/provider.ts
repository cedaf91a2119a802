// An issuer as the admin page sees it when people sign in: its endpoints, the page as its client, and requests within the limits of all
// fetches from issuers. oauth4webapi speaks the protocol.
import * as oauth from 'oauth4webapi'
import { Fault } from '../../fault.ts'
import { type Outbound, sendToIssuer } from '../../federation/issuer/guarded-fetch.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import { openCredential } from '../../inference/upstream/credentials.ts'
import type { SigningKeys } from '../../tokens/signing-keys.ts'

export type ProviderContext = {
  outbound: Outbound
  signingKeys: SigningKeys
  masterKey: CryptoKey
  now: () => number
}

export type Provider = {
  server: oauth.AuthorizationServer
  client: oauth.Client
  authentication: oauth.ClientAuth
  options: { [oauth.customFetch]: typeof fetch; [oauth.allowInsecureRequests]: boolean }
}

const keptMilliseconds = 10 * 60_000

/** The endpoints that were found or are on their way, by the issuer as last saved. Those who wait for an issuer share one request. */
const found = new WeakMap<Issuer, { server: Promise<oauth.AuthorizationServer>; at: number }>()

/** @throws Fault `unavailable` if the issuer cannot be reached, `bad_gateway` if its metadata is not valid */
export async function openProvider(issuer: Issuer, clientId: string, context: ProviderContext): Promise<Provider> {
  const { outbound, now } = context
  const send = async (url: string | URL | Request, init: RequestInit = {}) =>
    sendToIssuer(outbound, String(url), issuer.caPem, init)
  const options = {
    [oauth.customFetch]: send as typeof fetch,
    // The guard decides about HTTP.
    [oauth.allowInsecureRequests]: true,
  }
  let kept = found.get(issuer)
  if (kept === undefined || Math.abs(now() - kept.at) >= keptMilliseconds) {
    kept = { server: discover(new URL(issuer.issuerUrl), options), at: now() }
    found.set(issuer, kept)
    kept.server.catch(() => found.delete(issuer))
  }
  const server = await kept.server
  const client = { client_id: clientId, [oauth.clockTolerance]: issuer.clockSkewSeconds }
  return { server, client, authentication: await authenticate(issuer, server, context), options }
}

async function discover(issuer: URL, options: Provider['options']): Promise<oauth.AuthorizationServer> {
  const response = await oauth.discoveryRequest(issuer, options)
  return oauth.processDiscoveryResponse(issuer, response)
}

async function authenticate(
  { id, pageAuthentication, pageSecretEncrypted }: Issuer,
  server: oauth.AuthorizationServer,
  { signingKeys, masterKey, now }: ProviderContext,
): Promise<oauth.ClientAuth> {
  if (pageAuthentication === 'none') return oauth.None()
  if (pageAuthentication === 'private_key_jwt') {
    const { privateKey, kid } = signingKeys.current(now())
    return oauth.PrivateKeyJwt({ key: privateKey, kid })
  }
  const secret = await openCredential(masterKey, id, pageSecretEncrypted ?? '')
  const isPostOnly = server.token_endpoint_auth_methods_supported?.includes('client_secret_basic') === false
  return isPostOnly ? oauth.ClientSecretPost(secret) : oauth.ClientSecretBasic(secret)
}

/** What failed, for the log; and whether the person canceled, the issuer is away, or it says no, with its error code. */
export type SignInFailure = {
  reason: 'canceled' | 'unavailable' | 'refused_by_issuer' | 'invalid'
  detail: string
  errorCode?: string
}

export function failureOf(error: unknown): SignInFailure {
  if (error instanceof Fault) return { reason: 'unavailable', detail: `${error.message}${error.hint ?? ''}` }
  if (error instanceof oauth.AuthorizationResponseError || error instanceof oauth.ResponseBodyError) {
    const detail = `${error.error} ${error.error_description ?? ''}`.replaceAll(/\p{Cc}+/gu, ' ').slice(0, 300)
    return {
      reason: error.error === 'access_denied' ? 'canceled' : 'refused_by_issuer',
      detail,
      errorCode: error.error,
    }
  }
  return { reason: 'invalid', detail: error instanceof Error ? error.message.slice(0, 300) : String(error) }
}
