// Which headers pass between callers and inference servers: those that inference needs, and those that an administrator
// names for one server. All others are dropped: a gateway may act on any header, and an inference server may reveal
// anything in one.
import { headerNameCharactersMax } from '../../limits.ts'
import { redactHeader } from './redaction.ts'

/** The request headers that inference needs. `content-type` is not listed: a body is always sent as JSON. */
const forwardedNames = [
  'accept',
  'user-agent',
  'traceparent',
  'tracestate',
  'idempotency-key',
  'openai-beta',
  'anthropic-version',
  'anthropic-beta',
  'x-session-id',
]
/** The response headers that the official SDKs act on, or show for support. */
const returnedNames = [
  'content-type',
  'content-language',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'request-id',
  'openai-processing-ms',
  'openai-version',
  'ratelimit',
  'ratelimit-limit',
  'ratelimit-policy',
  'ratelimit-remaining',
  'ratelimit-reset',
]
/** Remaining requests and tokens, so that a client can pace itself. */
const returnedPrefixes = ['x-ratelimit-', 'anthropic-ratelimit-']

/**
 * Headers that never pass, by lower-case name with hyphens. A name is only a hint at the purpose of a header, so these
 * err on the safe side.
 */
const refusals: [reason: string, names: RegExp][] = [
  [
    'it may carry a credential',
    /auth(?:enticat|oriz)|(?:^|-)auth(?:-|$)|cookie|credential|secret|passw|jwt|oidc|(?:^|-)cert(?:-|$)|api-?key|(?:^|-)(?<!^idempotency-)key$|token$|^dpop$/,
  ],
  [
    'it belongs to one connection',
    /^(?:connection|keep-alive|te|trailer|transfer-encoding|upgrade|http2-settings|expect|host|range)$|^(?:content-length|content-encoding|content-range|accept-encoding)$|^(?:proxy|if)-/,
  ],
  [
    'it describes the path of a request',
    /^(?:x-)?forwarded(?:-|$)|^via$|(?:^|-)(?:real|client|connecting|remote|originating)-(?:ip|addr)|^x-(?:original|rewrite|remote|envoy|host|http-method|method-override)(?:-|$)/,
  ],
  ['a proxy would act on it', /^x-(?:accel|sendfile|reproxy|lighttpd)(?:-|$)|^(?:surrogate|cdn|edge)-/],
  [
    'browsers would apply it to this service',
    /^(?:location|content-location|refresh|link|alt-svc|clear-site-data|strict-transport-security|x-frame-options|permissions-policy|sourcemap)$|^(?:nel|report-to|reporting-endpoints)$|^(?:access-control|content-security-policy|cross-origin|public-key-pins|service-worker)(?:-|$)/,
  ],
  ['Latchkey sets it', /^(?:x-request-id|content-type)$/],
]

export type HeaderDirection = 'forwarded' | 'returned'
export type HeaderFilter = (name: string) => boolean

/** Why a header cannot be added to those that are forwarded or returned; undefined when it can. */
export function headerProblem(name: string, doing: HeaderDirection): string | undefined {
  const quoted = JSON.stringify(name)
  if (!/^[\w-]+$/.test(name) || name.length > headerNameCharactersMax)
    return `${quoted} is not a header name: use 1 to ${headerNameCharactersMax} letters, digits, hyphens or underscores`
  const lower = name.toLowerCase()
  if (doing === 'forwarded' ? forwardedNames.includes(lower) : isNeededByCallers(lower)) return undefined
  // Some servers read an underscore as a hyphen.
  const hyphened = lower.replaceAll('_', '-')
  const reason = refusals.find(([, names]) => names.test(hyphened))?.[0]
  return reason === undefined ? undefined : `${quoted} can never be ${doing}: ${reason}; leave it out`
}

/** The names, in lower case, of the headers to forward to an upstream. */
export function compileForwardedHeaders(more: readonly string[]): readonly string[] {
  return [...new Set([...forwardedNames, ...passable(more, 'forwarded')])]
}

/** Whether a header of an upstream, by its name in lower case, is returned to the caller. */
export function compileReturnedHeaders(more: readonly string[]): HeaderFilter {
  const names = new Set([...returnedNames, ...passable(more, 'returned')])
  return (name) => names.has(name) || returnedPrefixes.some((prefix) => name.startsWith(prefix))
}

const isNeededByCallers = compileReturnedHeaders([])

/** The names that may pass by the current rules, which can be stricter than when the list was saved. */
function passable(names: readonly string[], doing: HeaderDirection): string[] {
  return names.filter((name) => headerProblem(name, doing) === undefined).map((name) => name.toLowerCase())
}

/** The headers to forward, by lower-case name. Looking up each allowed name costs less than reading every header. */
export function selectForwarded(from: Headers, names: readonly string[]): Record<string, string> {
  const ofConnection = namedByConnection(from)
  const headers: Record<string, string> = {}
  for (const name of names) {
    const value = from.get(name)
    if (value !== null && !ofConnection.includes(name)) headers[name] = value
  }
  return headers
}

/** The headers to return, by lower-case name, without the credentials that the upstream got. Not as `Headers`, which a collector frees slowly. */
export function selectReturned(
  from: Headers,
  isReturned: HeaderFilter,
  credentials: readonly string[],
): Record<string, string> {
  const ofConnection = namedByConnection(from)
  const headers: Record<string, string> = {}
  from.forEach((value, name) => {
    if (isReturned(name) && !ofConnection.includes(name)) headers[name] = redactHeader(value, credentials)
  })
  return headers
}

const none: readonly string[] = []

/** The headers that a sender limits to this connection (RFC 9110 §7.6.1). */
function namedByConnection(headers: Headers): readonly string[] {
  const connection = headers.get('connection')
  if (connection === null || connection === 'keep-alive') return none
  return connection
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
}
