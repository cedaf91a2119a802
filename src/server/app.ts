// The way of every request: its route, its handler, and the only catch block, which turns every error into a response.
import { isUnknownOutcome } from '../../db/remote/server-errors.ts'
import type { RunByName } from '../admin/operation/operation.ts'
import { describeError, Fault, logTextOf } from '../fault.ts'
import { nameMetadata } from '../http/challenge.ts'
import { clientAddressOf } from '../http/client-address.ts'
import type { RequestInfo, ServedRoute } from '../http/endpoint.ts'
import { findNearestPath, findSimilarPath } from '../http/nearest-path.ts'
import { errorReply, statusOf } from '../http/reply.ts'
import { createRequestId } from '../http/request-id.ts'
import { createRouter } from '../http/router.ts'
import { isPlainPath } from '../http/sent-path.ts'
import { parseTraceparent } from '../http/traceparent.ts'
import { hideUnreachable, outcomeUnknown } from '../nodes/database-unreachable.ts'
import { accessLine } from '../observe/access-log.ts'
import { withFields } from '../observe/log.ts'
import type { Handler } from '../runtime/listener.ts'
import { alternatives } from '../values/alternatives.ts'
import type { Context } from './context.ts'
import { refreshOrStale } from './stale-routes.ts'
import { workloadPaths, workloadRoutes } from './workload-routes.ts'

/** Returns the parent of the base path: empty for `/v1`. */
function besidePathOf(basePath: string): string {
  return basePath.slice(0, basePath.lastIndexOf('/'))
}

/** Returns what precedes the path of a route. */
function placeOf({ isBesideBase, isAtRoot }: ServedRoute<Context>, basePath: string): string {
  if (isAtRoot === true) return ''
  return isBesideBase === true ? besidePathOf(basePath) : basePath
}

/**
 * Creates routers. `below` finds only routes under the base path; `anywhere` also finds those next to it, such as
 * `/readyz`, and at the root.
 */
function createRoutes(basePath: string, routes: readonly ServedRoute<Context>[]) {
  const places = Map.groupBy(routes, (route) => placeOf(route, basePath))
  const below = createRouter(basePath, places.get(basePath) ?? [])
  places.delete(basePath)
  const elsewhere = [...places].map(([path, some]) => createRouter(path, some))
  const anywhere: typeof below = (method, path) => {
    let match = below(method, path)
    for (const find of elsewhere) match ??= find(method, path)
    return match
  }
  return { below, anywhere }
}

/** Loads every route, with those of the admin page where it is served. */
async function loadRoutes(adminPage: boolean, runByName: RunByName): Promise<ServedRoute<Context>[]> {
  const { listEndpoints } = await import('./all-endpoints.ts')
  if (!adminPage) return listEndpoints(runByName)
  const [{ pageRoutes }, { signInRoutes }] = await Promise.all([
    import('../page/routes.ts'),
    import('../admin/sign-in/routes.ts'),
  ])
  return [...listEndpoints(runByName), ...pageRoutes, ...signInRoutes]
}

/** Finds routes. Loads all of them at the first request that is not one of a workload. */
function createFinder(basePath: string, adminPage: boolean, runByName: RunByName) {
  const ofWorkloads = createRoutes(basePath, workloadRoutes)
  let loading: Promise<ReturnType<typeof createRoutes>> | undefined
  const loadAll = () => {
    loading ??= loadRoutes(adminPage, runByName).then((routes) => createRoutes(basePath, routes))
    return loading
  }
  const find = (method: string, path: string) => {
    const match = ofWorkloads.anywhere(method, path)
    return match !== undefined && 'found' in match ? match : loadAll().then((all) => all.anywhere(method, path))
  }
  return { find, loadAll }
}

/** Returns the whole service as one function from request to response. It never rejects. */
export function createApp(context: Context, runByName: RunByName): Handler {
  const basePath = new URL(context.baseUrl).pathname
  const pageAddress = `${besidePathOf(basePath)}/admin/`
  const { find, loadAll } = createFinder(basePath, context.page !== undefined, runByName)
  return async (request, peer) => {
    const startedAt = context.monotonic()
    const path = pathOf(request)
    // The address of the page ends in a slash, and everyone may read it.
    const isPlain = path === pageAddress || isPlainPath(path, peer.sentSegments)
    const found = isPlain ? find(request.method, path) : undefined
    // The routes of workloads are found at once: awaiting them would cost a turn.
    const match = found instanceof Promise ? await found : found
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
      if (hasTwoHosts(request))
        throw new Fault('invalid', 'The request has two Host headers: send one', { reason: 'two_hosts' })
      if (match === undefined) {
        const nearest = findNearestPath(path, basePath, (await loadAll()).below)
        throw notFound(nearest ?? findSimilarPath(path, basePath, workloadPaths), basePath)
      }
      if ('allowed' in match) throw methodNotAllowed(request.method, match.allowed)
      // Health, metadata and the files of the page come without a refresh.
      const refreshing = placeOf(match.found, basePath) === basePath ? context.follow.fresh() : undefined
      const isStale = refreshing !== undefined && (await refreshOrStale(refreshing, match.found, context))
      if (isStale) info.isStale = true
      response = await match.found.handle(request, own, info)
      if (isStale) response.headers.set('cache-control', 'no-store')
    } catch (error) {
      const fault = toFault(error)
      context.metrics.countFault(fault, statusOf(fault))
      context.refusals.noteFault(fault, info, context.now())
      refusedId = context.lastUses.noteFault(fault, context.now())
      logFault(own, fault, { info, method: request.method, path })
      response = (endpoint?.toResponse ?? errorReply)(fault, info.requestId)
    }
    const { keyId, textHash } = context.callers.get(request) ?? {}
    if (keyId !== undefined && keyId !== refusedId) context.lastUses.noteUse(keyId, context.now())
    if (textHash !== undefined) context.lastUses.noteUse(textHash, context.now())
    if (response.status === 401) nameMetadata(response.headers, context.baseUrl)
    response.headers.set('x-request-id', info.requestId)
    // Anthropic's clients read this name. An upstream's own id stays.
    if (!response.headers.has('request-id')) response.headers.set('request-id', info.requestId)
    // A proxy must not send its next request on a connection that is about to close.
    if (context.readiness.isStopping()) response.headers.set('connection', 'close')
    const revision = context.follow.revision()
    // It says how much administrators change, which is nobody else's business.
    if (revision !== undefined && isManagementKey(keyId, context))
      response.headers.set('x-latchkey-revision', String(revision))
    if (isRecording(context)) {
      const template = endpoint === undefined ? null : placeOf(endpoint, basePath) + endpoint.path
      recordRequest(request, response, { ...info, traceId, template, startedAt }, context)
    }
    return response
  }
}

function isManagementKey(keyId: string | undefined, { registry }: Context): boolean {
  // Nothing is known of a key that was deleted while its request ran.
  const kind = keyId === undefined ? undefined : registry.keys.get(keyId)?.kind
  return kind !== undefined && kind !== 'inference'
}

function toFault(thrown: unknown): Fault {
  const error = hideUnreachable(thrown)
  if (error instanceof Fault) return error
  if (isUnknownOutcome(error)) return outcomeUnknown(error)
  return new Fault('internal', 'Internal server error', { cause: error })
}

type FinishedRequest = RequestInfo & { traceId: string | undefined; template: string | null; startedAt: number }

/** Whether anyone reads what `recordRequest` writes. */
function isRecording({ accessLog, inEffect }: Context): boolean {
  return accessLog.isOn() || inEffect.read().logLevel === 'debug'
}

/** Records the request when its response begins, because a stream can run for long. */
function recordRequest(request: Request, response: Response, answered: FinishedRequest, context: Context): void {
  const { accessLog, callers, log, monotonic, now } = context
  const { requestId, clientAddress, traceId, template, startedAt } = answered
  const line = accessLine({
    requestId,
    traceId,
    method: request.method,
    path: template,
    status: response.status,
    milliseconds: monotonic() - startedAt,
    keyId: callers.get(request)?.keyId,
    clientAddress,
  })
  accessLog.write(now(), line)
  if (context.inEffect.read().logLevel === 'debug') log('debug', 'request', line)
}

/** Responds to a request that came before the app was made. */
export function refuseAtStart(): Response {
  const headers = { 'retry-after': '1' }
  return errorReply(
    new Fault('unavailable', 'The service is starting; try again later', { reason: 'starting', headers }),
  )
}

/** Used until the process ends: the state in memory can differ from the database. */
function stopping(): Fault {
  return new Fault('unavailable', 'The service is stopping; try again later', {
    reason: 'stopping',
    headers: { 'retry-after': '1' },
  })
}

/** Proxies differ in which of two they read, so RFC 9112 §3.2 refuses them. Bun joins them by a comma; Deno refuses them itself. */
function hasTwoHosts({ headers }: Request): boolean {
  return headers.get('host')?.includes(',') === true
}

/** Returns the path as the runtime reports it. A request without a Host header, as in HTTP/1.0, has only the path. */
function pathOf({ url }: Request): string {
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  if (start < 0) return '/'
  const query = url.indexOf('?', start)
  return query < 0 ? url.slice(start) : url.slice(start, query)
}

/** Returns the path for the log. Segments longer than any id are replaced, because they can be credentials. */
function loggablePath(path: string): string {
  return path.replaceAll(/[^/]{41,}/g, '…').slice(0, 256)
}

/** The service's paths are public, so suggesting one reveals nothing. */
function notFound(nearest: string | undefined, basePath: string): Fault {
  if (nearest !== undefined)
    return new Fault('not_found', `Resource not found; did you mean ${nearest}?`, { reason: 'path_unknown' })
  const served = `below ${basePath} are ${workloadPaths.join(', ')}, and more in ${basePath}/openapi.json`
  return new Fault('not_found', `Resource not found; ${served}`, { reason: 'path_unknown' })
}

function methodNotAllowed(method: string, allowed: string[]): Fault {
  return new Fault('method_not_allowed', `The method ${method} is not allowed here: use ${alternatives(allowed)}`, {
    reason: 'method_not_allowed',
    headers: { allow: allowed.join(', ') },
  })
}

type FailedRequest = { info: RequestInfo; method: string; path: string }

function logFault({ log }: Context, fault: Fault, { info, method, path }: FailedRequest): void {
  const status = statusOf(fault)
  const request = { request_id: info.requestId, client_address: info.clientAddress, method, path: loggablePath(path) }
  if (status >= 500) log('error', 'request_failed', { ...request, status, reason: describeError(fault) })
  else log('warn', 'request_refused', { ...request, status, reason: logTextOf(fault) })
}
