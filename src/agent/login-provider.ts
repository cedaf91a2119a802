// An identity provider as a client sees it: its metadata, requests that are bounded, and failures in sentences that say what to do.
// oauth4webapi speaks the protocol.
import * as oauth from 'oauth4webapi'
import { Fault } from '../fault.ts'
import { type Fetch, fetchText } from './bounded-fetch.ts'
import { isLoopback } from './identity-token.ts'

/** What a request to the provider needs beside its fields. */
export type ProviderOptions = { [oauth.customFetch]: typeof fetch; [oauth.allowInsecureRequests]: boolean }
export type Provider = { server: oauth.AuthorizationServer; options: ProviderOptions }
export type ClientSettings = { clientId: string; clientSecret?: string | undefined }

/** Clocks of laptops differ; the server that gets the token checks it by its own. */
const clockToleranceSeconds = 120
const textCharactersMax = 300

/** Reads the provider's metadata, whose issuer must equal the URL (OpenID Connect Discovery 1.0 §4.3). Throws a fault. */
export async function discoverProvider(issuer: string, fetch: Fetch): Promise<Provider> {
  const url = new URL(issuer)
  const options = optionsFor(url, fetch)
  return explained(`read the settings of ${issuer}`, async () => {
    const response = await oauth.discoveryRequest(url, options)
    return { server: await oauth.processDiscoveryResponse(url, response), options }
  })
}

/** HTTP is for a provider on this machine. The answer to a request is read whole, up to a bound and a time. */
function optionsFor(issuer: URL, send: Fetch): ProviderOptions {
  const ask = async (url: string | URL | Request, init: RequestInit = {}) => {
    const { status, headers, text } = await fetchText(send, String(url), init, `The identity provider ${issuer.host}`)
    const mediaType = headers.get('content-type')
    const kept = mediaType === null ? {} : { headers: { 'content-type': mediaType } }
    return new Response([204, 205, 304].includes(status) ? null : text, { status, ...kept })
  }
  return {
    [oauth.customFetch]: ask as typeof fetch,
    [oauth.allowInsecureRequests]: issuer.protocol === 'http:' && isLoopback(issuer.hostname),
  }
}

export function clientOf({ clientId }: ClientSettings): oauth.Client {
  return { client_id: clientId, [oauth.clockTolerance]: clockToleranceSeconds }
}

export function authenticationOf({ clientSecret }: ClientSettings): oauth.ClientAuth {
  return clientSecret === undefined ? oauth.None() : oauth.ClientSecretPost(clientSecret)
}

/** The error code of the provider, such as `invalid_grant` (RFC 6749 §5.2), if it sent one. */
export function errorCodeOf(error: unknown): string | undefined {
  const isSent = error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError
  return isSent ? shown(error.error) : undefined
}

/** Runs a step of a flow. Every failure is thrown as a fault, which never contains a token or a code. */
export async function explained<Result>(doing: string, step: () => Promise<Result>): Promise<Result> {
  try {
    return await step()
  } catch (error) {
    throw explain(doing, error)
  }
}

export function explain(doing: string, error: unknown): Fault {
  if (error instanceof Fault) return error
  const code = errorCodeOf(error)
  if (code !== undefined) {
    const { error_description: description } = error as { error_description?: string }
    const sentence = description === undefined ? '' : ` (${shown(description)})`
    return new Fault('forbidden', `Could not ${doing}: the identity provider responded with ${code}${sentence}`, {
      hint: adviceFor[code] ?? '',
    })
  }
  const { code: kind = '', message } = error as { code?: string; message: string }
  const advice =
    kind === oauth.JWT_TIMESTAMP_CHECK
      ? ': check the clock of this machine'
      : ': check the issuer URL and the client with an administrator'
  return new Fault('bad_gateway', `Could not ${doing}: ${shown(message)}`, { hint: advice, cause: error })
}

const adviceFor: Readonly<Record<string, string>> = {
  access_denied: ': the sign-in was refused or canceled; run latchkey login again',
  expired_token: ': the code has expired; run latchkey login again',
  invalid_client: ': the client needs a secret, or is unknown; ask an administrator for the settings of the login',
  unauthorized_client: ': ask an administrator to allow this flow for the client',
  invalid_scope: ': ask an administrator to check the scopes of the login',
}

/** A text of somebody else, in one line. */
function shown(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ').slice(0, textCharactersMax)
}
