// Forwards a request to an inference server with the server's own credential. Knows no ledger, no keys and no choice of servers.
import { Fault } from '../../fault.ts'
import type { Fetch } from '../../runtime.ts'
import { selectForwarded, selectReturned } from './headers.ts'
import type { Upstream } from './targets.ts'

/** What it takes to ask an upstream. */
export type UpstreamContext = {
  /** How this installation names itself to upstreams. */
  via: string
  /** What an upstream asks of its callers. */
  credentialOf: (upstream: Upstream) => Promise<string | undefined>
  fetch: Fetch
}

export type Forwarded = {
  upstream: Upstream
  response: Response
  headers: Headers
  /** Ends the upstream call at once. */
  abort: () => void
  /** Sets what happens when the client goes away; until then, that ends the call. */
  whenClientLeaves: (act: () => void) => void
}

export type Outgoing = {
  path: string
  body: Uint8Array<ArrayBuffer> | undefined
  requestId: string
  sessionId?: string
  /** How long the answer may take to begin, where it is not the upstream's own limit. */
  firstByteMilliseconds?: number
}

/**
 * Sends a request on and resolves with the head of the answer; its body has not been read. The call ends when the client goes away.
 * @throws Fault `bad_gateway` when the upstream cannot be reached, `gateway_timeout` when it is too slow
 */
export async function forward(
  request: Request,
  { path, body, requestId, sessionId, firstByteMilliseconds }: Outgoing,
  upstream: Upstream,
  context: UpstreamContext,
): Promise<Forwarded> {
  const { via } = context
  const before = request.headers.get('via')
  const headers = selectForwarded(request.headers, upstream.forwardedHeaders)
  headers.via = before === null ? via : `${before}, ${via}`
  headers['accept-encoding'] = 'identity'
  if (body !== undefined) headers['content-type'] = 'application/json'
  headers['x-request-id'] = requestId
  if (sessionId !== undefined && isHeaderValue(sessionId)) headers['x-session-id'] = sessionId
  const credential = await context.credentialOf(upstream)
  if (credential !== undefined) headers.authorization = `Bearer ${credential}`

  const controller = new AbortController()
  const abort = () => controller.abort()
  let leave = abort
  if (request.signal.aborted) abort()
  request.signal.addEventListener('abort', () => leave())
  let isLate = false
  const timer = setTimeout(
    () => {
      isLate = true
      abort()
    },
    firstByteMilliseconds ?? upstream.firstByteSeconds * 1_000,
  )
  try {
    const response = await context.fetch(upstream.baseUrl + path, {
      // HEAD asks for the head of what GET would give, and the runtime leaves the rest out.
      method: body === undefined ? 'GET' : request.method,
      headers,
      body,
      redirect: 'manual',
      // What is encoded though it was not to be is not taken apart here: a few bytes can become gigabytes.
      decompress: false,
      signal: controller.signal,
      ...(upstream.caPem === null ? {} : { ca: upstream.caPem }),
    })
    const objection = objectionTo(response)
    if (objection !== undefined) {
      abort()
      throw new Fault('bad_gateway', 'The inference server gave an answer that cannot be passed on', {
        reason: objection,
      })
    }
    return {
      upstream,
      response,
      headers: selectReturned(response.headers, upstream.isReturned),
      abort,
      whenClientLeaves: (act) => {
        leave = act
      },
    }
  } catch (cause) {
    if (cause instanceof Fault) throw cause
    if (isLate) throw new Fault('gateway_timeout', 'The inference server did not answer in time', { cause })
    throw new Fault('bad_gateway', 'The inference server cannot be reached', { cause })
  } finally {
    clearTimeout(timer)
  }
}

/** What no client could make use of, or should follow: no answer at all, another address, or an encoding that was not asked for. */
function objectionTo({ status, headers }: Response): string | undefined {
  if (status < 200 || status > 599 || (status >= 300 && status < 400)) return `upstream_status_${status}`
  const encoding = headers.get('content-encoding') ?? 'identity'
  return encoding === 'identity' ? undefined : 'upstream_content_encoding'
}

/** A session id comes from a body, where any text may stand. */
function isHeaderValue(text: string): boolean {
  return text.length <= 256 && /^[\x21-\x7e]+$/.test(text)
}
