// Inference through Latchkey (interface §4.4): bearer, key state, forward, stream through, usage.
import type { UsageRow } from '../../db/schema.ts'
import { storableText } from '../bytes.ts'
import type { Context, RequestInfo } from '../context.ts'
import { Fault, withoutSecrets } from '../fault.ts'
import { readBody } from '../http/body.ts'
import { statusOf } from '../http/reply.ts'
import { authenticateInference, checkKeyState, type Principal } from '../keys/bearer.ts'
import { inferenceBodyBytesMax } from '../limits.ts'
import { type ChatRequest, readChatRequest } from './chat-request.ts'
import { type Forwarded, forward } from './upstream.ts'
import { type Inspected, type Inspector, inspectEvents, inspectJson } from './usage.ts'

const nothingSeen: Inspected = { model: undefined, counts: undefined }

/** How a call ended; nginx's 499 stands for a client that left before there was a status. */
type Ending = { status: number; completed: boolean; inspected: Inspected }
const statusClientLeft = 499

/** `POST /chat/completions`: the usage is committed to the ledger before the client sees the end of the answer. */
export async function createChatCompletion(request: Request, context: Context, info: RequestInfo): Promise<Response> {
  const principal = await authenticateInference(request, context)
  const asked = readChatRequest(await readBody(request, inferenceBodyBytesMax))
  // A body may take its time, and the key may have gone meanwhile.
  checkKeyState(context.registry.keys.get(principal.key.id))
  const restoreIdleLimit = info.peer.liftIdleLimit()
  const write = ledgerEntry(context, info, principal, asked)
  const record = (ending: Ending) => {
    restoreIdleLimit()
    return write(ending)
  }
  let forwarded: Forwarded
  try {
    forwarded = await forward(request, '/chat/completions', asked.body, context)
  } catch (error) {
    const hasLeft = request.signal.aborted
    const status = hasLeft ? statusClientLeft : error instanceof Fault ? statusOf(error) : 500
    await record({ status, completed: false, inspected: nothingSeen })
    if (hasLeft) return new Response(null, { status: statusClientLeft })
    throw error
  }
  const { response, headers, abort } = forwarded
  if (response.status >= 400) logUpstreamRefusal(context, info, response.status)
  const streams = response.headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') === true
  const inspector = streams ? inspectEvents(asked.withholdsUsage) : inspectJson()
  const settle = (completed: boolean) => record({ status: response.status, completed, inspected: inspector.result() })
  if (response.body === null) {
    await settle(true)
    return new Response(null, { status: response.status, headers })
  }
  return new Response(streamOf(passThrough(response, inspector, settle), abort), { status: response.status, headers })
}

/** The caller gets the upstream's own answer; an admin must see that it was not ours. */
function logUpstreamRefusal({ log }: Context, { requestId }: RequestInfo, status: number): void {
  const hint =
    status === 401 || status === 403
      ? 'see LATCHKEY_UPSTREAM_API_KEY'
      : status === 404
        ? 'see LATCHKEY_UPSTREAM_URL, which usually ends in /v1'
        : undefined
  log('warn', 'upstream_refused', { request_id: requestId, status, hint })
}

/** `GET /models`: the upstream's own list. */
export async function listModels(request: Request, context: Context, info: RequestInfo): Promise<Response> {
  await authenticateInference(request, context)
  const restoreIdleLimit = info.peer.liftIdleLimit()
  const { response, headers } = await forward(request, '/models', undefined, context).finally(restoreIdleLimit)
  return new Response(response.body, { status: response.status, headers })
}

/** The upstream's bytes as they come; whatever ends the answer for the client waits for `settle`, which runs exactly once. */
async function* passThrough(
  response: Response,
  inspector: Inspector,
  settle: (completed: boolean) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  let isSettled = false
  const settleOnce = async (completed: boolean) => {
    if (isSettled) return
    isSettled = true
    await settle(completed)
  }
  try {
    for await (const chunk of response.body ?? []) {
      const released = inspector.take(chunk)
      if (inspector.isFinal()) await settleOnce(true)
      if (released.byteLength > 0) yield released
    }
    const rest = inspector.rest()
    await settleOnce(inspector.isWhole())
    if (rest.byteLength > 0) yield rest
  } finally {
    await settleOnce(false)
  }
}

/** A stream that pulls from a generator. A client that goes away ends the upstream call and lets the generator finish. */
function streamOf(chunks: AsyncGenerator<Uint8Array>, abort: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await chunks.next()
      if (done === true) controller.close()
      else controller.enqueue(value)
    },
    cancel: async () => {
      abort()
      await chunks.return(undefined).catch(() => {})
    },
  })
}

/** Opens the ledger entry of a request; the function it gives commits the row. */
function ledgerEntry(
  { writer, now }: Context,
  { requestId }: RequestInfo,
  { key, accessToken }: Principal,
  asked: ChatRequest,
) {
  const startedAt = now()
  return ({ status, completed, inspected }: Ending): Promise<void> => {
    const row: UsageRow = {
      at: startedAt,
      requestId,
      organizationId: key.organizationId,
      workspaceId: key.workspaceId,
      keyId: key.id,
      policyId: accessToken?.policyId ?? null,
      issuerId: accessToken?.issuerId ?? null,
      subject: storable(accessToken?.subject),
      accessTokenId: accessToken?.id ?? null,
      endpoint: '/chat/completions',
      model: storable((inspected.model ?? asked.model)?.slice(0, 256)),
      status,
      streamed: asked.streams,
      completed,
      promptTokens: inspected.counts?.promptTokens ?? null,
      completionTokens: inspected.counts?.completionTokens ?? null,
      totalTokens: inspected.counts?.totalTokens ?? null,
      usageSource: inspected.counts === undefined ? 'none' : 'upstream',
      durationMilliseconds: now() - startedAt,
    }
    return writer.appendUsage(row)
  }
}

function storable(text: string | undefined): string | null {
  return text === undefined ? null : storableText(withoutSecrets(text))
}
