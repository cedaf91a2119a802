// One token request (RFC 8693 §2), of a workload at a Latchkey and of a Latchkey at an upstream: the form, its bounds, and what the response
// is. It knows neither whose tokens they are nor how a refusal is reported.
import { type Fetch, fetchText } from './bounded-fetch.ts'
import { parseObject } from './unverified-claims.ts'

/** What is null is not sent. */
export type TokenRequest = {
  subjectToken: string
  policy: string | null
  audience?: string | null
  scope?: string | null
}

/** A token; or a refusal, which has the members of the response that were sent and are fit to be shown. */
export type TokenResponse =
  | { token: string; lifetimeSeconds: number }
  | { token: undefined; status: number; error?: string; description?: string; requestId?: string }

/** `name` begins the sentence of a failure. `init` has what is particular to the caller. */
export type TokenRequestOptions = { fetch: Fetch; name: string; init: RequestInit; milliseconds?: number }

/** `expires_in` is only recommended (RFC 6749 §5.1). */
const lifetimeSecondsDefault = 300
const lifetimeSecondsMax = 24 * 60 * 60
/** RFC 6750 §2.1. */
const bearerToken = /^[\w.~+/-]{1,16384}=*$/

/** Sends the request. Redirects are not followed: the subject token reaches one host only. @throws Fault without a response */
export async function requestToken(
  url: string,
  { subjectToken, policy, audience = null, scope = null }: TokenRequest,
  { fetch, name, init, milliseconds }: TokenRequestOptions,
): Promise<TokenResponse> {
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    subject_token: subjectToken,
    ...(policy === null ? {} : { federation_policy_id: policy }),
    ...(audience === null ? {} : { audience }),
    ...(scope === null ? {} : { scope }),
  })
  const { status, text } = await fetchText(fetch, url, { ...init, method: 'POST', body }, name, milliseconds)
  const members = parseObject(text)
  const { access_token: token, token_type: type, expires_in: seconds = lifetimeSecondsDefault } = members
  const isToken = typeof token === 'string' && bearerToken.test(token)
  const isBearer = typeof type === 'string' && type.toLowerCase() === 'bearer'
  if (status === 200 && isToken && isBearer && typeof seconds === 'number' && seconds > 0)
    return { token, lifetimeSeconds: Math.min(seconds, lifetimeSecondsMax) }
  const { error, error_description: description, request_id: requestId } = members
  return {
    token: undefined,
    status,
    ...(typeof error === 'string' ? { error: error.slice(0, 100) } : {}),
    ...(typeof description === 'string' ? { description: description.slice(0, 1_000) } : {}),
    ...(typeof requestId === 'string' && /^[\w-]{1,64}$/.test(requestId) ? { requestId } : {}),
  }
}
