// Inference through Latchkey (reference: Inference): bearer, key state, forward, stream through, usage.
import { Fault } from '../fault.ts'
import { type JsonObject, parseJsonObject, readBody, rejectOtherThanJson } from '../http/body.ts'
import type { Endpoint, RequestInfo } from '../http/endpoint.ts'
import { messagesErrorReply, statusOf } from '../http/reply.ts'
import { checkBudget, checkPreset, takeRate } from '../keys/admission.ts'
import { checkKeyState } from '../keys/api-key.ts'
import { authenticateInference, type BearerContext, type Principal } from '../keys/bearer.ts'
import { upstreamAnswerBytesWholeMax } from '../limits.ts'
import type { Target } from '../presets/apply.ts'
import { readPresetReference, withoutPresetReference } from '../presets/reference.ts'
import { completeBody } from '../presets/use.ts'
import type { PresetRegistry, Presets } from '../presets/versions.ts'
import { type GivenBody, type InferenceRequest, readInferenceRequest } from './call.ts'
import { forwardToBest } from './fallback.ts'
import { type LedgerContext, nothingSeen, openLedgerEntry, statusClientLeft } from './ledger.ts'
import { checkNamedModels } from './model-names.ts'
import { inferenceDescription } from './openapi.ts'
import { type PassedThrough, passThrough, passWhole } from './pass-through.ts'
import type { Forwarded, UpstreamContext } from './upstream/forward.ts'
import { rejectLoop } from './upstream/forwarding-loop.ts'
import { type Attempt, attemptsFor, type UpstreamRegistry } from './upstream/targets.ts'
import { inspectEvents, inspectJson } from './usage.ts'

/** What an inference request needs. */
export type InferenceContext = BearerContext &
  UpstreamContext &
  LedgerContext & {
    registry: PresetRegistry & UpstreamRegistry
    presets: Presets
    config: { bodyBytesMax: number }
  }

/** The paths that take a body; the usage of a stream has to be asked for where `stream_options` is known. */
const paths = {
  '/chat/completions': { target: 'chat', takesStreamOptions: true },
  '/completions': { target: 'completions', takesStreamOptions: true },
  '/responses': { target: 'responses', takesStreamOptions: false },
  '/messages': { target: 'messages', takesStreamOptions: false },
  '/embeddings': { target: 'embeddings', takesStreamOptions: false },
  '/rerank': { target: 'rerank', takesStreamOptions: false },
} as const satisfies Record<string, { target: Target; takesStreamOptions: boolean }>
type Path = keyof typeof paths

export const inferenceEndpoints: Endpoint<InferenceContext>[] = (Object.keys(paths) as Path[]).map((path) => ({
  method: 'POST',
  path,
  handle: (request, context, info) => infer(path, request, context, info),
  openapi: inferenceDescription,
  ...(path === '/messages' ? { toResponse: messagesErrorReply } : {}),
}))

/** The usage is committed to the ledger before the client sees the end of the answer. */
async function infer(path: Path, request: Request, context: InferenceContext, info: RequestInfo): Promise<Response> {
  const { key: keyAtFirst, accessToken } = await authenticateInference(request, context)
  checkBudget(keyAtFirst, context.spending, context.now())
  takeRate(keyAtFirst, context.keyRates, context.now())
  rejectOtherThanJson(request)
  const bytes = await readBody(request, context.config.bodyBytesMax)
  const sent = await parseJsonObject(bytes, { membersOnce: true })
  // A body may take its time: what counts is the key as it is now, if it still is there.
  const key = checkKeyState(context.registry.keys.get(keyAtFirst.id), context.now())
  const principal = { key, accessToken }
  checkBudget(key, context.spending, context.now())
  const { presetVersion, ...given } = await complete(path, sent, principal, context)
  const asked = readInferenceRequest(given, paths[path])
  await checkNamedModels(principal, given, asked.models)
  rejectLoop(request, context)
  const attempts = findAttempts(context, asked, key.id)
  const restoreIdleLimit = info.peer.liftIdleLimit()
  const entry = openLedgerEntry(context, info, principal, { endpoint: path, presetVersion, ...asked })
  let forwarded: Forwarded
  try {
    forwarded = await forwardToBest(path, request, asked, attempts, entry, context, info)
  } catch (error) {
    restoreIdleLimit()
    const isCut = info.peer.isCut()
    const clientLeft = request.signal.aborted && !isCut
    const fault = isCut ? new Fault('unavailable', 'The service is stopping', { cause: error }) : error
    const status = clientLeft ? statusClientLeft : fault instanceof Fault ? statusOf(fault) : 500
    await entry.write({ status, completed: false, clientLeft, inspected: nothingSeen })
    if (clientLeft) return new Response(null, { status: statusClientLeft })
    throw fault
  }
  const { response, headers, abort, whenClientLeaves, upstream } = forwarded
  if (response.status >= 400) logUpstreamRefusal(context, info, forwarded)
  const streams = response.headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') === true
  const inspector = streams ? inspectEvents(asked.withholdsUsage) : inspectJson()
  const settle = ({ completed, clientLeft }: PassedThrough) => {
    restoreIdleLimit()
    const hasLeft = !completed && (clientLeft || (request.signal.aborted && !info.peer.isCut()))
    return entry.write({ status: response.status, completed, clientLeft: hasLeft, inspected: inspector.result() })
  }
  if (response.body === null) {
    await settle({ completed: true, clientLeft: false })
    return new Response(null, { status: response.status, headers })
  }
  const idleMilliseconds = upstream.idleSeconds * 1_000
  const passing = { inspector, abort, idleMilliseconds, onFirstByte: entry.firstByte, settle }
  const body =
    !streams && isShort(response)
      ? await passWhole(passing, response)
      : passThrough({ ...passing, whenClientLeaves, peer: info.peer, body: response.body })
  return new Response(body, { status: response.status, headers })
}

/** The body, completed by the preset that it names, if it names one. */
async function complete(
  path: Path,
  sent: JsonObject,
  principal: Principal,
  context: InferenceContext,
): Promise<GivenBody & { presetVersion: string | null }> {
  const { fields } = sent
  const reference = readPresetReference(fields)
  checkPreset(principal, reference?.slug)
  if (reference === undefined) {
    if (!Object.hasOwn(fields, 'preset')) return { sent, fields, presetVersion: null }
    // A null counts as absent, to an upstream that refuses what it does not know as well.
    return { sent, fields: withoutPresetReference(fields), presetVersion: null }
  }
  const { workspaceId } = principal.key
  const completed = await completeBody(paths[path].target, fields, reference, workspaceId, context)
  return { sent, ...completed }
}

/** Whether an answer is short enough to be read in one go, which costs a third of a stream. */
function isShort({ headers }: Response): boolean {
  const length = headers.get('content-length')
  return length !== null && Number(length) <= upstreamAnswerBytesWholeMax
}

/** @throws Fault `unavailable` when there is no inference server at all, `not_found` when none of them serves the model */
function findAttempts({ registry }: InferenceContext, { models }: InferenceRequest, keyId: string): Attempt[] {
  if (registry.upstreamsInOrder.length === 0)
    throw new Fault('unavailable', 'No inference server is configured', {
      reason: `LATCHKEY_UPSTREAM_URL is not set, and there is no upstream; add one with: latchkey upstreams add; key ${keyId}`,
    })
  const attempts = attemptsFor(registry.upstreamsInOrder, models)
  if (attempts.length === 0)
    throw new Fault(
      'not_found',
      `No inference server serves the model ${models.map((model) => JSON.stringify(model)).join(', ')}`,
      { reason: `model_unserved, key ${keyId}` },
    )
  return attempts
}

/** The caller gets the upstream's own answer; an admin must see that it was not ours. */
function logUpstreamRefusal(
  { log }: InferenceContext,
  { requestId }: RequestInfo,
  { response: { status }, upstream }: Forwarded,
): void {
  const isConfigured = upstream.id === upstream.name
  const hint =
    status === 401 || status === 403
      ? isConfigured
        ? 'see LATCHKEY_UPSTREAM_API_KEY'
        : 'see: latchkey upstreams update --credential-file'
      : status === 404
        ? `see ${isConfigured ? 'LATCHKEY_UPSTREAM_URL' : 'its base URL'}, which usually ends in /v1`
        : undefined
  log('warn', 'upstream_refused', { request_id: requestId, upstream: upstream.name, status, hint })
}
