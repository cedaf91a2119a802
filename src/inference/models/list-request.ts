// Requests the list of models from an inference server, limited in time and size.
import { describeError, Fault } from '../../fault.ts'
import { upstreamListMillisecondsMax } from '../../limits.ts'
import type { Log } from '../../observe/log.ts'
import { credentialRefused, forward, type UpstreamContext } from '../upstream/forward.ts'
import type { Upstream } from '../upstream/targets.ts'
import { readListBody } from './model-list.ts'
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
  const via = request.headers.get('via')
  const ask = async (): Promise<ModelList> => {
    // Not the caller's URL, which would send its Host.
    const asking = new Request(`${upstream.baseUrl}/models`, {
      headers: { accept: 'application/json', ...(via === null ? {} : { via }) },
    })
    try {
      return listIn(await fetchList(asking, upstream, context, requestId))
    } catch (error) {
      const reason = describeError(error)
      context.log('warn', 'upstream_models_failed', { request_id: requestId, upstream: upstream.name, reason })
      throw error
    }
  }
  return context.modelLists.listOf(upstream, ask, { isShared: via === null })
}

async function fetchList(
  request: Request,
  upstream: Upstream,
  context: UpstreamContext,
  requestId: string,
): Promise<ListResponse> {
  const startedAt = performance.now()
  const outgoing = { path: '/models', body: undefined, requestId, firstByteMilliseconds: upstreamListMillisecondsMax }
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
    if (isLate) throw new Fault('gateway_timeout', 'The inference server did not respond in time', { cause })
    throw new Fault('bad_gateway', 'The inference server closed the connection mid-response', { cause })
  } finally {
    clearTimeout(timer)
  }
}
