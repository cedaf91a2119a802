// The admin operations over HTTP, for management keys: the operations of the commands, limited to the key's organization.

import { Fault } from '../../fault.ts'
import { readJson } from '../../http/body.ts'
import { describeRoute, takesBody } from '../../http/documented-route.ts'
import type { Endpoint, RequestInfo } from '../../http/endpoint.ts'
import { entityTag, ifMatchOf, withCurrent } from '../../http/entity-tag.ts'
import { readParameters, rejectQuery } from '../../http/input.ts'
import type { OperationDoc, Shape } from '../../http/operation-doc.ts'
import { jsonInSlices, statusClientLeft } from '../../http/reply.ts'
import { actorOf } from '../../keys/actor.ts'
import { authenticateManagement, type BearerContext } from '../../keys/bearer.ts'
import { accessOf } from '../../keys/roles.ts'
import { operationBodyBytesMax } from '../../limits.ts'
import { referenceShape, reservedNames, uuidShape } from '../../values/shapes.ts'
import { intervalShape } from '../budgets/workspace-budgets.ts'
import { checkInstallationOrganization } from '../operation/installation.ts'
import type { RunByName } from '../operation/operation.ts'
import { type OperationName, operations } from '../operations.ts'
import type { AdminRoute } from './admin-route.ts'
import { installationRoutes } from './installation-routes.ts'
import { routes } from './routes.ts'

const segmentShape = referenceShape.configure({ not: { enum: reservedNames }, says: 'Its name or id' })
const segments = {
  issuer: segmentShape,
  policy: segmentShape,
  upstream: segmentShape,
  topic: segmentShape,
  organization: segmentShape,
  bundle_signer: segmentShape,
  request_id: uuidShape.configure({ says: 'The x-request-id of the response' }),
  session: uuidShape.configure({ says: 'Its id' }),
  budget: segmentShape,
  webhook: segmentShape,
  workspace_ref: segmentShape,
  interval: intervalShape.configure({ says: 'How often it resets; a lifetime budget never does' }),
}

const sources: Partial<Record<string, string>> = { organization: 'the key', if_match: 'the header If-Match' }

/** Reports whose filters name something that must exist. */
const namesOthers: OperationName[] = [
  'audit.prove',
  'audit.list',
  'audit.counts',
  'policies.list',
  'usage.report',
  'usage.requests',
  'usage.refused',
]

/** The fields that the service sets: the organization of the key, and what the path names. */
function filledInBy(path: string): string[] {
  return ['organization', 'if_match', ...[...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '')]
}

export function createAdminEndpoints(runByName: RunByName): Endpoint<BearerContext>[] {
  return [...routes, ...installationRoutes].map((route) => ({
    method: route.method,
    path: route.path,
    openapi: describe(route),
    handle: (request, context, info) => handle(route, runByName, request, context, info).catch(forNobody),
  }))
}

async function handle(
  { method, path, operation, status = 200, data, draft, isBare, ofInstallation, isConditional }: AdminRoute,
  runByName: RunByName,
  request: Request,
  context: BearerContext,
  { params, requestId }: RequestInfo,
): Promise<Response> {
  // Only the body says whether it is a dry run, and it is read only for keys that may do at least that.
  let key = await authenticateManagement(request, context, draft === undefined ? operation : 'policies.draft')
  if (ofInstallation === true) checkInstallationOrganization(context.registry, key.organizationId)
  if (takesBody(method)) rejectQuery(request)
  const given = takesBody(method)
    ? await readJson(request, operationBodyBytesMax)
    : readParameters(request, shapeOf(operation))
  const isDraft = draft !== undefined && given.dry_run === true
  if (draft !== undefined && !isDraft) key = await authenticateManagement(request, context, operation)
  checkFields(given, path, isBare === true)
  const within = ofInstallation === true ? {} : { organization: key.organizationId }
  const condition = (isConditional ?? method === 'PATCH') ? ifMatchOf(request) : {}
  const input = { ...given, ...params, ...within, ...condition }
  const actor = actorOf(request, context, requestId)
  const onProgress = operations[operation].mutates ? undefined : () => endWithout(request)
  const response = await withCurrent(runByName(operation, input, actor, onProgress), async () => {
    const reading = routes.find((route) => route.method === 'GET' && route.path === path)?.operation
    return reading && runByName(reading, { ...params, ...within }, actor)
  })
  const body = data === undefined ? response : { data: response }
  const headers = { 'cache-control': 'no-store', ...entityTag(response) }
  return jsonInSlices(isDraft ? 200 : status, body, headers, request)
}

const clientLeft = new Fault('unavailable', 'The client closed the connection')

/** Ends a report whose client has left. */
function endWithout({ signal }: Request): void {
  if (signal.aborted) throw clientLeft
}

function forNobody(error: unknown): Response {
  if (error === clientLeft) return new Response(null, { status: statusClientLeft })
  throw error
}

function checkFields(given: object, path: string, isBare: boolean): void {
  for (const name of filledInBy(path))
    if (name in given) throw new Fault('invalid', `Remove ${name}: it is taken from ${sources[name] ?? 'the path'}`)
  const [name] = Object.keys(given)
  if (isBare && name !== undefined) throw new Fault('invalid', `Remove ${name}: this path takes no fields`)
}

function shapeOf(operation: OperationName): Shape {
  return operations[operation].input
}

function describe({ operation, isBare, ...route }: AdminRoute): OperationDoc {
  const { method, path } = route
  const shape = shapeOf(operation)
  return describeRoute({
    ...route,
    name: route.name ?? operation.replaceAll(/[._](\w)/g, (_, letter: string) => letter.toUpperCase()),
    access: accessOf(operation),
    segments,
    ...(method === 'GET' && !path.includes('{') ? { query: shape } : {}),
    ...(takesBody(method) && isBare !== true ? { body: shape, filledIn: filledInBy(path) } : {}),
    errors: [
      // A name may be the last segment of another path.
      ...(path.endsWith('{issuer}') || path.endsWith('{policy}') ? [405] : []),
      ...(namesOthers.includes(operation) ? [404] : []),
      ...(operation === 'issuers.refresh' ? [503] : []),
    ],
  })
}
