// All routes of the service on one page, and its only catch block, which turns every error into a response.
import packageJson from '../package.json' with { type: 'json' }
import type { RunByName } from './admin/operation/operation.ts'
import { withTypes } from './admin/operations.ts'
import { createAdminEndpoints } from './admin/transport/endpoints.ts'
import type { Context } from './context.ts'
import { describeError, Fault } from './fault.ts'
import { toOAuthError } from './federation/oauth-reply.ts'
import { exchangeDescription, jwksDescription } from './federation/openapi.ts'
import { exchangeToken } from './federation/token-endpoint.ts'
import { clientAddressOf } from './http/client-address.ts'
import type { Endpoint, Handle, RequestInfo } from './http/endpoint.ts'
import { findNearestPath } from './http/nearest-path.ts'
import { createOpenApiDocument } from './http/openapi.ts'
import { errorResponses, type OperationDoc } from './http/operation-doc.ts'
import { errorReply, statusOf } from './http/reply.ts'
import { createRequestId } from './http/request-id.ts'
import { createRouter } from './http/router.ts'
import { isPlainPath } from './http/sent-path.ts'
import { parseTraceparent } from './http/traceparent.ts'
import { inferenceEndpoints } from './inference/endpoint.ts'
import { listModels, showModel } from './inference/models/endpoint.ts'
import { modelDescription, modelsDescription } from './inference/openapi.ts'
import { createKeyEndpoints } from './keys/endpoints.ts'
import { accessLine } from './observe/access-log.ts'
import { healthEndpoints } from './observe/endpoints/health-endpoints.ts'
import { metricsEndpoint } from './observe/endpoints/metrics-endpoint.ts'
import { withFields } from './observe/log.ts'
import { createPresetEndpoints } from './presets/endpoints.ts'
import type { Handler } from './runtime/listener.ts'
import { publishJwks } from './tokens/jwks-endpoint.ts'
import { alternatives } from './values/alternatives.ts'

/** Lists every endpoint of the service with its documentation. */
function listEndpoints(runByName: RunByName): Endpoint<Context>[] {
  const runOperation = withTypes(runByName)
  const endpoints: Endpoint<Context>[] = [
    {
      method: 'POST',
      path: '/oauth/token',
      handle: exchangeToken,
      toResponse: toOAuthError,
      openapi: exchangeDescription,
    },
    { method: 'GET', path: '/oauth/jwks', handle: publishJwks, openapi: jwksDescription },
    ...inferenceEndpoints,
    { method: 'GET', path: '/models', handle: listModels, openapi: modelsDescription },
    { method: 'GET', path: '/models/{model+}', handle: showModel, openapi: modelDescription },
    ...createKeyEndpoints(runOperation),
    ...createPresetEndpoints(runOperation),
    ...createAdminEndpoints(runByName),
    metricsEndpoint,
    ...healthEndpoints,
  ]
  const openapi: OperationDoc = {
    summary: 'This document (OpenAPI 3.1)',
    access: 'public',
    responses: { 200: { description: 'The document' }, ...errorResponses() },
  }
  let text: string | undefined
  const handle: Handle<Context> = async (_request, { baseUrl }) => {
    text ??= JSON.stringify(createOpenApiDocument(endpoints, baseUrl, packageJson.version))
    return new Response(text, { headers: { 'content-type': 'application/json' } })
  }
  endpoints.push({ method: 'GET', path: '/openapi.json', handle, openapi })
  return endpoints
}

/** Returns the parent of the base path: empty for `/v1`. */
function besidePathOf(basePath: string): string {
  return basePath.slice(0, basePath.lastIndexOf('/'))
}

/**
 * Creates routers for the endpoints. `below` finds only endpoints under the base path; `anywhere` also finds those next
 * to it, such as `/readyz`.
 */
function createRoutes(basePath: string, endpoints: readonly Endpoint<Context>[]) {
  const besidePath = besidePathOf(basePath)
  const [inside, outside] = [false, true].map((isBeside) =>
    endpoints.filter(({ isBesideBase = false }) => isBesideBase === isBeside),
  )
  const below = createRouter(basePath, inside ?? [])
  const beside = createRouter(besidePath, outside ?? [])
  const anywhere: typeof below = (method, path) => below(method, path) ?? beside(method, path)
  return { below, anywhere }
}

/** Returns the whole service as one function from request to response. It never rejects. */
export function createApp(context: Context, runByName: RunByName): Handler {
  const basePath = new URL(context.baseUrl).pathname
  const { below, anywhere } = createRoutes(basePath, listEndpoints(runByName))
  return async (request, peer) => {
    const startedAt = context.monotonic()
    const path = pathOf(request)
    const match = isPlainPath(path, peer.sentSegments) ? anywhere(request.method, path) : undefined
    const info: RequestInfo = {
      requestId: createRequestId(context.now()),
      peer,
      clientAddress: clientAddressOf(request, peer.address, context.inEffect.read().trustedProxies),
      params: match !== undefined && 'params' in match ? match.params : {},
    }
    const traceId = parseTraceparent(request.headers.get('traceparent'))?.traceId
    const own = traceId === undefined ? context : { ...context, log: withFields(context.log, { trace_id: traceId }) }
    const endpoint = match === undefined ? undefined : 'found' in match ? match.found : match.sibling
    let response: Response
    let refusedId: string | undefined
    try {
      if (context.writer.isBroken()) throw stopping()
      if (match === undefined) throw notFound(findNearestPath(path, basePath, below))
      if ('allowed' in match) throw methodNotAllowed(request.method, match.allowed)
      response = await match.found.handle(request, own, info)
    } catch (error) {
      const fault = error instanceof Fault ? error : new Fault('internal', 'Internal server error', { cause: error })
      context.metrics.countFault(fault, statusOf(fault))
      refusedId = context.lastUses.noteFault(fault, context.now())
      logFault(own, fault, {
        request_id: info.requestId,
        client_address: info.clientAddress,
        method: request.method,
        path: loggablePath(path),
      })
      response = (endpoint?.toResponse ?? errorReply)(fault, info.requestId)
    }
    const keyId = context.callers.get(request)
    if (keyId !== undefined && keyId !== refusedId) context.lastUses.noteUse(keyId, context.now())
    response.headers.set('x-request-id', info.requestId)
    if (isRecording(context)) {
      const before = endpoint?.isBesideBase === true ? besidePathOf(basePath) : basePath
      const template = endpoint === undefined ? null : before + endpoint.path
      recordRequest(request, response, { ...info, traceId, template, startedAt }, context)
    }
    return response
  }
}

type Answered = RequestInfo & { traceId: string | undefined; template: string | null; startedAt: number }

/** Whether anyone reads what `recordRequest` writes. */
function isRecording({ accessLog, inEffect }: Context): boolean {
  return accessLog.isOn() || inEffect.read().logLevel === 'debug'
}

/** Records the request when its response begins, because a stream can run for long. */
function recordRequest(request: Request, response: Response, answered: Answered, context: Context): void {
  const { accessLog, callers, log, monotonic, now } = context
  const { requestId, clientAddress, traceId, template, startedAt } = answered
  const line = accessLine({
    requestId,
    traceId,
    method: request.method,
    path: template,
    status: response.status,
    milliseconds: monotonic() - startedAt,
    keyId: callers.get(request),
    clientAddress,
  })
  accessLog.write(now(), line)
  if (context.inEffect.read().logLevel === 'debug') log('debug', 'request', line)
}

/** Used until the process ends: the state in memory can differ from the database. */
function stopping(): Fault {
  return new Fault('unavailable', 'The service is stopping; try again later', { headers: { 'retry-after': '1' } })
}

/** Returns the path as the runtime reports it. A request without a Host header, as in HTTP/1.0, has only the path. */
function pathOf({ url }: Request): string {
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  return start < 0 ? '/' : (url.slice(start).split('?', 1)[0] ?? '')
}

/** Returns the path for the log. Segments longer than any id are replaced, because they can be credentials. */
function loggablePath(path: string): string {
  return path.replaceAll(/[^/]{41,}/g, '…').slice(0, 256)
}

/** The service's paths are public, so suggesting one reveals nothing. */
function notFound(nearest: string | undefined): Fault {
  return new Fault('not_found', `Resource not found${nearest === undefined ? '' : `; did you mean ${nearest}?`}`)
}

function methodNotAllowed(method: string, allowed: string[]): Fault {
  return new Fault('method_not_allowed', `The method ${method} is not allowed here: use ${alternatives(allowed)}`, {
    headers: { allow: allowed.join(', ') },
  })
}

type RequestFields = { request_id: string; client_address: string | null; method: string; path: string }

function logFault({ log }: Context, fault: Fault, request: RequestFields): void {
  const status = statusOf(fault)
  if (status >= 500) log('error', 'request_failed', { ...request, status, reason: describeError(fault) })
  else log('warn', 'request_refused', { ...request, status, reason: fault.reason })
}
