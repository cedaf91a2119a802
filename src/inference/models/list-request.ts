// Requests the list of models, or one model, from an inference server, limited in time and size.
import { describeError, Fault } from '../../fault.ts'
import { isPlainPath } from '../../http/sent-path.ts'
import { upstreamListMillisecondsMax } from '../../limits.ts'
import type { Log } from '../../observe/log.ts'
import { credentialRefused, forward, type UpstreamContext, upstreamLate } from '../upstream/forward.ts'
import type { Upstream } from '../upstream/targets.ts'
import { listFailed, type Model, modelIn, readListBody } from './model-list.ts'
import { type ListResponse, listIn, type ModelList, type ModelLists } from './model-lists.ts'

/** What requesting lists needs. */
export type ListContext = UpstreamContext & { modelLists: ModelLists; log: Log }

/**
 * The list of one upstream. It is the same for all callers, so of their headers only `Via` is forwarded (RFC 9110
 * §7.6.3): another Latchkey may be waiting for this very list. The response to a request with `Via` is not shared.
 * @throws Fault `gateway_timeout` when the list is late, `bad_gateway` when it cannot be fetched, is refused or is too large
 */
export function listOf(
  upstream: Upstream,
  request: Request,
  context: ListContext,
  { requestId }: { requestId: string },
): Promise<ModelList> {
  const ask = async () => listIn(await askFor('/models', upstream, request, context, requestId))
  return context.modelLists.listOf(upstream, ask, { isShared: request.headers.get('via') === null })
}

/**
 * One model, where the list of an upstream lacks it: an upstream may know a model by more names than it lists, as Ollama
 * does. Undefined where the upstream does not know it either.
 * @throws Fault as `listOf`
 */
export async function oneOf(
  model: string,
  upstream: Upstream,
  request: Request,
  context: ListContext,
  { requestId }: { requestId: string },
): Promise<Model | undefined> {
  // Such a name would lead to another path of the upstream.
  if (!isPlainPath(`/${model}`, undefined)) return undefined
  const path = `/models/${model.split('/').map(encodeURIComponent).join('/')}`
  const { status, body } = await askFor(path, upstream, request, context, requestId)
  return status === 200 ? modelIn(body) : undefined
}

/** Of the headers of a caller, only `Via` goes along. */
async function askFor(
  path: string,
  upstream: Upstream,
  request: Request,
  context: ListContext,
  requestId: string,
): Promise<ListResponse> {
  const via = request.headers.get('via')
  // Not the caller's URL, which would send its Host.
  const asking = new Request(`${upstream.baseUrl}${path}`, {
    headers: { accept: 'application/json', ...(via === null ? {} : { via }) },
  })
  try {
    return await fetchWhole(path, asking, upstream, context, requestId)
  } catch (error) {
    const reason = describeError(error)
    context.log('warn', 'upstream_models_failed', { request_id: requestId, upstream: upstream.name, reason })
    throw error
  }
}

async function fetchWhole(
  path: string,
  request: Request,
  upstream: Upstream,
  context: UpstreamContext,
  requestId: string,
): Promise<ListResponse> {
  const startedAt = performance.now()
  const outgoing = {
    method: 'GET',
    path,
    body: undefined,
    requestId,
    firstByteMilliseconds: upstreamListMillisecondsMax,
  }
  const { response, headers, abort } = await forward(request, outgoing, upstream, context)
  let isLate = false
  const timer = setTimeout(
    () => {
      isLate = true
      abort()
    },
    upstreamListMillisecondsMax - (performance.now() - startedAt),
  )
  try {
    if (response.status === 401) throw credentialRefused(upstream)
    return { status: response.status, headers, body: await readListBody(response) }
  } catch (cause) {
    abort()
    if (cause instanceof Fault) throw cause
    if (isLate) throw upstreamLate(cause)
    throw listFailed('closed the connection mid-response', { cause })
  } finally {
    clearTimeout(timer)
  }
}
