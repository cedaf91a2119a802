// How a forwarded request ends: its response passes to the client, and its ledger entry is written before the client
// sees the end.
import { Fault, logTextOf } from '../fault.ts'
import type { RequestInfo } from '../http/endpoint.ts'
import { statusClientLeft, statusOf } from '../http/reply.ts'
import { type AdmissionContext, watchKey } from '../keys/admission.ts'
import { upstreamResponseBytesWholeMax } from '../limits.ts'
import { errorEvent } from './error-event.ts'
import { inspectEvents } from './event-inspector.ts'
import { inspectJson, inspectNothing, inspectWholeJson } from './json-inspector.ts'
import { type LedgerEntry, nothingSeen, writeLedgerEntry } from './ledger.ts'
import { type PassageEnd, passThrough, passWhole } from './pass-through.ts'
import { type Report, reportInJson, reportInStream } from './reported-response.ts'
import { credentialRefused, type UpstreamResponse } from './upstream/forward.ts'
import { configuredUpstreamName } from './upstream/targets.ts'
import type { Inspection, Inspector } from './usage.ts'

/** A request that was forwarded and is not settled. */
export type UnsettledRequest = {
  request: Request
  info: RequestInfo
  entry: LedgerEntry
  /** Headers of the response that are not the upstream's. */
  moreHeaders: Readonly<Record<string, string>>
  context: Pick<AdmissionContext, 'registry' | 'now'>
  /** What the response says of its way, if the caller wants to know. */
  report?: Report | undefined
}

/** The response to the client, whose end waits until its usage is committed. */
export async function respond(forwarded: UpstreamResponse, pending: UnsettledRequest): Promise<Response> {
  const { info, entry } = pending
  const { response, abort, whenClientLeaves, upstream } = forwarded
  const { status } = response
  const headers = Object.assign(forwarded.headers, pending.moreHeaders)
  if (status >= 400) logUpstreamRefusal(forwarded, pending)
  if (status === 401) {
    abort()
    return settleFailure(credentialRefused(upstream), pending)
  }
  const format = formatOf(response.headers)
  const settle = (end: PassageEnd, inspected: Inspection) => settlePassage(pending, status, end, inspected)
  const onFirstByte = () => {
    entry.firstByteAt ??= entry.context.now()
  }
  const idleMilliseconds = upstream.idleSeconds * 1_000
  const passing = { onFirstByte, abort, whenClientLeaves, peer: info.peer, idleMilliseconds }
  const withReport = status < 300 ? reporterFor(format, pending) : undefined
  // Before anything looks at `response.body`, which would create its stream.
  if (format !== 'events' && withReport === undefined && isShort(response)) {
    const inspect = format === 'json' ? inspectWholeJson : () => nothingSeen
    const settleWhole = (end: PassageEnd, bytes: Uint8Array | undefined) =>
      settle(end, bytes === undefined ? nothingSeen : inspect(bytes))
    return new Response(await passWhole({ ...passing, settle: settleWhole }, response), { status, headers })
  }
  const inspecting = inspectors[format](entry.call)
  if (response.body === null) {
    await settle({ completed: true, clientLeft: false, callEnd: undefined }, inspecting.result())
    return new Response(null, { status, headers })
  }
  const inspector = withReport === undefined ? inspecting : withReport(inspecting)
  const refusal = format === 'events' ? endWithKey(pending) : undefined
  const settleStream = (end: PassageEnd) => settle(end, inspector.result())
  const body = passThrough({ ...passing, inspector, refusal, settle: settleStream, body: response.body })
  return new Response(body, { status, headers })
}

function settlePassage(
  { request, info, entry }: UnsettledRequest,
  status: number,
  { completed, clientLeft, callEnd }: PassageEnd,
  inspected: Inspection,
): Promise<void> {
  info.peer.restoreIdleLimit(request)
  const hasLeft = !completed && (clientLeft || (request.signal.aborted && !info.peer.isCut()))
  return writeLedgerEntry(entry, { status, completed, clientLeft: hasLeft, callEnd, inspected })
}

type Format = 'events' | 'json' | 'other'

/** Some inference servers name no type for JSON. */
function formatOf(headers: Headers): Format {
  const type = headers.get('content-type')?.toLowerCase() ?? ''
  if (type.startsWith('text/event-stream')) return 'events'
  return type === 'application/json' || /^(?:application\/(?:[\w.+-]+\+)?json\b|$)/.test(type) ? 'json' : 'other'
}

const inspectors = { events: inspectEvents, json: inspectJson, other: inspectNothing }

/** Adds the report to what an inspector passes; undefined where the caller wants none, or the response has no place for it. */
function reporterFor(
  format: Format,
  { report, info, entry, context }: UnsettledRequest,
): ((inspector: Inspector) => Inspector) | undefined {
  const { reportIn } = entry.call.path
  if (report === undefined || reportIn === undefined || format === 'other') return undefined
  if (format === 'json') return (inspector) => reportInJson(inspector, report)
  const created = Math.floor(context.now() / 1_000)
  return (inspector) => reportInStream(inspector, report, reportIn, { id: info.requestId, created })
}

/** Ends a stream whose key was disabled or deleted, or has expired, since it began. */
function endWithKey({ info, entry, context }: UnsettledRequest): () => Uint8Array | undefined {
  const findFault = watchKey(entry.principal.key, context)
  return () => {
    const fault = findFault()
    if (fault === undefined) return undefined
    entry.context.log('warn', 'stream_ended', { request_id: info.requestId, reason: logTextOf(fault) })
    const message = 'Invalid credentials: the key of this request is no longer valid, so the response ends here'
    return errorEvent(entry.call.path, new Fault('unauthorized', message, { reason: 'key_ended' }))
  }
}

/**
 * Records a request that got no response from any upstream.
 * @throws the error, or Fault `unavailable` when a stop of the service ended the request
 */
export async function settleFailure(error: unknown, pending: UnsettledRequest): Promise<Response> {
  const { request, info, entry } = pending
  info.peer.restoreIdleLimit(request)
  const isCut = info.peer.isCut()
  const clientLeft = request.signal.aborted && !isCut
  const fault = isCut
    ? new Fault('unavailable', 'The service is stopping: try again', { reason: 'stopping', cause: error })
    : error
  const status = clientLeft ? statusClientLeft : fault instanceof Fault ? statusOf(fault) : 500
  const reason = clientLeft ? undefined : fault instanceof Fault ? (fault.reason ?? fault.code) : 'internal'
  await writeLedgerEntry(entry, { status, completed: false, clientLeft, inspected: nothingSeen, error: reason })
  if (clientLeft) return new Response(null, { status })
  throw fault
}

/** Such a response has no body, whatever length it announces. */
const statusesWithoutBody = [204, 205]

/** Whether a response is short enough to be read whole, which costs a third of a stream. */
function isShort({ status, headers }: Response): boolean {
  const length = headers.get('content-length')
  return length !== null && !statusesWithoutBody.includes(status) && Number(length) <= upstreamResponseBytesWholeMax
}

/** The caller gets the upstream's own response; the log shows an administrator that Latchkey did not refuse. */
function logUpstreamRefusal(
  { response: { status }, upstream }: UpstreamResponse,
  { info, entry }: UnsettledRequest,
): void {
  const isConfigured = upstream.id === configuredUpstreamName
  const details = { request_id: info.requestId, upstream: upstream.name, status, hint: hintFor(status, isConfigured) }
  entry.context.log('warn', 'upstream_refused', details)
}

function hintFor(status: number, isConfigured: boolean): string | undefined {
  if (status === 401 || status === 403)
    return isConfigured ? 'see LATCHKEY_UPSTREAM_API_KEY' : 'see: latchkey upstreams update --credential-file'
  if (status !== 404) return undefined
  return `see ${isConfigured ? 'LATCHKEY_UPSTREAM_URL' : 'its base URL'}, which usually ends in /v1`
}
