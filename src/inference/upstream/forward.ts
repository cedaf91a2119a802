// Forwards a request to one inference server, with that server's credential. Without ledger, keys or routing.
import { Fault } from '../../fault.ts'
import { parseTraceparent } from '../../http/traceparent.ts'
import type { Fetch, FetchInit } from '../../runtime/outbound.ts'
import { clearDeadline, setDeadline } from '../../scheduling/deadlines.ts'
import type { Credentials } from './credentials.ts'
import { selectForwarded, selectReturned } from './headers.ts'
import { sendAgainIfClosed } from './kept-connection.ts'
import type { Reachability } from './reachability.ts'
import { redactBody, removable } from './redaction.ts'
import type { Upstream } from './targets.ts'

/** What forwarding needs. */
export type UpstreamContext = {
  /** How this installation names itself to upstreams. */
  via: string
  credentials: Credentials
  reachability: Reachability
  fetch: Fetch
}

export type UpstreamResponse = {
  upstream: Upstream
  response: Response
  /** Those to return, by lower-case name. */
  headers: Record<string, string>
  /** Aborts the upstream call at once. */
  abort: () => void
  /** Sets what happens when the client leaves, instead of aborting the call. */
  whenClientLeaves: (act: () => void) => void
}

/** A body in bytes, or one that passes as it arrives and can be sent once: `onProgress` is called for each chunk. */
export type OutgoingBody = {
  contentType: string
  bytes?: Uint8Array<ArrayBuffer> | undefined
  stream?: (onProgress: () => void) => ReadableStream<Uint8Array>
  /** Why the rest of what passes was refused, which says nothing of the upstream. */
  failure?: () => Fault | undefined
}

/** `besideVersion`: the path is relative to the base URL without its last segment, if that is a version. */
export type OutgoingRequest = {
  /** GET serves HEAD too: the runtime leaves out the body of the response. */
  method: string
  path: string
  besideVersion?: boolean
  /** Names of the parameters that are passed on. */
  query?: readonly string[]
  body: OutgoingBody | undefined
  requestId: string
  sessionId?: string
  /** Headers of this service. */
  moreHeaders?: Readonly<Record<string, string>> | undefined
  /** How long the response may take to begin; by default the upstream's own limit. */
  firstByteMilliseconds?: number
}

/**
 * Sends a request on and resolves with the response, whose body is not read yet. The call is aborted when the client
 * leaves.
 * @throws Fault `bad_gateway` when the upstream cannot be reached or its response cannot be used, `gateway_timeout`
 * when it is too slow
 */
export async function forward(
  request: Request,
  outgoing: OutgoingRequest,
  upstream: Upstream,
  context: UpstreamContext,
): Promise<UpstreamResponse> {
  const { method, body, firstByteMilliseconds = upstream.firstByteSeconds * 1_000 } = outgoing
  const controller = new AbortController()
  const abort = () => controller.abort()
  let leave = abort
  if (request.signal.aborted) abort()
  request.signal.addEventListener('abort', () => leave())
  let isLate = false
  const endLate = () => {
    isLate = true
    abort()
  }
  let deadline = setDeadline(firstByteMilliseconds, endLate)
  try {
    const headers = headersFor(request, outgoing, upstream, context)
    const known = context.credentials.of(upstream)
    const credential = known instanceof Promise ? await known : known
    if (credential !== undefined) headers.authorization = bearerPrefix + credential
    const url = urlFor(request, outgoing, upstream)
    // A response that is encoded against our request is not decoded: a few bytes can become gigabytes.
    const init: FetchInit = { method, headers, redirect: 'manual', decompress: false, signal: controller.signal }
    if (upstream.caPem !== null) init.ca = upstream.caPem
    const isReplayable = body === undefined || body.bytes !== undefined
    if (body?.bytes !== undefined) init.body = body.bytes
    else if (body?.stream !== undefined)
      // The deadline begins again with each chunk of a body that is still arriving.
      Object.assign(init, {
        duplex: 'half',
        body: body.stream(() => {
          clearDeadline(deadline)
          deadline = setDeadline(firstByteMilliseconds, endLate)
        }),
      })
    const sendOn = (connection?: { keepalive: false }) =>
      context.fetch(url, connection === undefined ? init : { ...init, ...connection })
    let response = await (isReplayable ? sendAgainIfClosed(sendOn) : sendOn())
    const firstCredential = credentialIn(headers)
    if (response.status === 401 && isReplayable && (await hasNewCredential(headers, upstream, context))) {
      await response.body?.cancel()
      response = await sendAgainIfClosed(sendOn)
    }
    rejectUnusable(response)
    // Fallback goes on to another upstream after these too.
    context.reachability.note(upstream, response.status < 500, `it responded with ${response.status}`)
    const credentials = removable(credentialIn(headers), firstCredential)
    return {
      upstream,
      response: withoutCredentials(response, credentials),
      headers: selectReturned(response.headers, upstream.isReturned, credentials),
      abort,
      whenClientLeaves: (act) => {
        leave = act
      },
    }
  } catch (cause) {
    const isOwnFault = body?.failure?.() !== undefined
    if (!request.signal.aborted && !isOwnFault) context.reachability.note(upstream, false)
    if (cause instanceof Fault) {
      abort()
      throw cause
    }
    if (isLate) throw upstreamLate(cause)
    const message = 'The inference server cannot be reached: try again later'
    throw new Fault('bad_gateway', message, { reason: 'upstream_unreachable', cause })
  } finally {
    clearDeadline(deadline)
  }
}

export function upstreamLate(cause: unknown): Fault {
  const message = 'The inference server did not respond in time: try again later'
  return new Fault('gateway_timeout', message, { reason: 'upstream_late', cause })
}

function urlFor(
  { url }: Request,
  { path, query = [], besideVersion = false }: OutgoingRequest,
  { baseUrl }: Upstream,
): string {
  const base = besideVersion ? baseUrl.replace(/\/v\d+$/, '') : baseUrl
  return base + path + forwardedQuery(url, query)
}

/**
 * Anthropic's clients ask for beta features with `?beta=true`. Of all others, only those that the path names are passed
 * on: an upstream may act on any.
 */
function forwardedQuery(url: string, names: readonly string[]): string {
  const at = url.indexOf('?')
  if (at < 0) return ''
  const sent = new URLSearchParams(url.slice(at))
  const passed = [...sent].filter(([name]) => names.includes(name))
  if (sent.get('beta') === 'true') passed.push(['beta', 'true'])
  return passed.length === 0 ? '' : `?${new URLSearchParams(passed)}`
}

/** Without the credential. */
function headersFor(
  request: Request,
  { body, requestId, sessionId, moreHeaders }: OutgoingRequest,
  upstream: Upstream,
  { via }: UpstreamContext,
): Record<string, string> {
  const before = request.headers.get('via')
  const headers = Object.assign(selectForwarded(request.headers, upstream.forwardedHeaders), moreHeaders)
  // A proxy does not pass on a trace that it cannot read (W3C Trace Context §4.3).
  if (parseTraceparent(headers.traceparent ?? null) === undefined) {
    delete headers.traceparent
    delete headers.tracestate
  }
  headers.via = before === null ? via : `${before}, ${via}`
  headers['accept-encoding'] = 'identity'
  if (body !== undefined) headers['content-type'] = body.contentType
  headers['x-request-id'] = requestId
  if (sessionId !== undefined && isHeaderValue(sessionId)) headers['x-session-id'] = sessionId
  return headers
}

const bearerPrefix = 'Bearer '

function credentialIn(headers: Record<string, string>): string | undefined {
  return headers.authorization?.slice(bearerPrefix.length)
}

/** Successful responses are not searched: each byte of them would cost time. */
function withoutCredentials(response: Response, credentials: readonly string[]): Response {
  const { status, headers } = response
  if (status < 400 || credentials.length === 0 || response.body === null) return response
  return new Response(redactBody(response.body, credentials), { status, headers })
}

/** After a refusal, replaces an exchanged credential in the headers. Its token may have been revoked. */
async function hasNewCredential(
  headers: Record<string, string>,
  upstream: Upstream,
  { credentials }: UpstreamContext,
): Promise<boolean> {
  const refused = credentialIn(headers)
  const credential = refused === undefined ? undefined : await credentials.replace(upstream, refused)
  if (credential === undefined) return false
  headers.authorization = bearerPrefix + credential
  return true
}

/**
 * Refuses a response that no client could use or should follow: an invalid status, a redirect, or an encoding that was
 * not asked for.
 * @throws Fault `bad_gateway`
 */
function rejectUnusable({ status, headers }: Response): void {
  const isStatusUsable = (status >= 200 && status < 300) || (status >= 400 && status <= 599)
  const isEncoded = (headers.get('content-encoding') ?? 'identity') !== 'identity'
  if (isStatusUsable && !isEncoded) return
  const why = isStatusUsable
    ? { reason: 'upstream_content_encoding' }
    : { reason: 'upstream_status', detail: `upstream_status_${status}` }
  const next = 'its administrator finds the reason in the log'
  throw new Fault('bad_gateway', `The inference server sent a response that cannot be passed on; ${next}`, why)
}

/**
 * The fault of an upstream that refuses the credential of this server. Its 401 must not reach the caller, who would
 * take it for a refusal of the caller's own credential and exchange again.
 */
export function credentialRefused({ name }: Upstream): Fault {
  const message = 'The inference server refuses the credential of this server: its administrator must renew it'
  // The clients of OpenAI and Anthropic would try again.
  return new Fault('bad_gateway', message, {
    reason: 'upstream_refused',
    detail: `upstream ${name}`,
    headers: { 'x-should-retry': 'false' },
  })
}

/** A session id from a body may be any text. */
function isHeaderValue(text: string): boolean {
  return text.length <= 256 && /^[\x21-\x7e]+$/.test(text)
}
