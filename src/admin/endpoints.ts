// The admin operations over HTTP, for management keys: the same operations that the commands call, within the key's own organization.
import type { Context, Endpoint, RequestInfo } from '../context.ts'
import { Fault } from '../fault.ts'
import { readJson } from '../http/body.ts'
import { type Description, errorResponses, type Shape } from '../http/description.ts'
import { json } from '../http/reply.ts'
import { authenticateManagement } from '../keys/bearer.ts'
import { operationBodyBytesMax } from '../limits.ts'
import {
  changeAnswer,
  dataOf,
  deletedAnswer,
  exchangeAnswer,
  explanationAnswer,
  issuerAnswer,
  listOf,
  policyAnswer,
} from './answers.ts'
import type { RunOperation } from './operation.ts'
import { type OperationName, operations } from './operations.ts'

type AdminRoute = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  operation: OperationName
  summary: string
  answer: unknown
  /** Whether the operation's answer is a list, which brings its own `data`. */
  isList?: true
  /** What a read-only management key may call. */
  isReading?: true
}

const issuers = '/workload-identity/issuers'
const policies = '/workload-identity/policies'

const routes: AdminRoute[] = [
  {
    method: 'GET',
    path: issuers,
    operation: 'issuers.list',
    summary: 'List the issuers',
    answer: issuerAnswer,
    isList: true,
    isReading: true,
  },
  { method: 'POST', path: issuers, operation: 'issuers.add', summary: 'Trust an issuer', answer: issuerAnswer },
  {
    method: 'GET',
    path: `${issuers}/{issuer}`,
    operation: 'issuers.show',
    summary: 'Show an issuer',
    answer: issuerAnswer,
    isReading: true,
  },
  {
    method: 'PATCH',
    path: `${issuers}/{issuer}`,
    operation: 'issuers.update',
    summary: 'Change an issuer',
    answer: issuerAnswer,
  },
  {
    method: 'DELETE',
    path: `${issuers}/{issuer}`,
    operation: 'issuers.delete',
    summary: 'Stop trusting an issuer',
    answer: deletedAnswer,
  },
  {
    method: 'POST',
    path: `${issuers}/{issuer}/refresh`,
    operation: 'issuers.refresh',
    summary: "Fetch an issuer's keys now",
    answer: issuerAnswer,
  },
  {
    method: 'GET',
    path: policies,
    operation: 'policies.list',
    summary: 'List the policies',
    answer: policyAnswer,
    isList: true,
    isReading: true,
  },
  { method: 'POST', path: policies, operation: 'policies.create', summary: 'Create a policy', answer: policyAnswer },
  {
    method: 'POST',
    path: `${policies}/check`,
    operation: 'policies.check',
    summary: 'Walk a token through every step of an exchange, without exchanging it',
    answer: explanationAnswer,
    isList: true,
    isReading: true,
  },
  {
    method: 'GET',
    path: `${policies}/{policy}`,
    operation: 'policies.show',
    summary: 'Show a policy',
    answer: policyAnswer,
    isReading: true,
  },
  {
    method: 'PATCH',
    path: `${policies}/{policy}`,
    operation: 'policies.update',
    summary: 'Change a policy',
    answer: policyAnswer,
  },
  {
    method: 'DELETE',
    path: `${policies}/{policy}`,
    operation: 'policies.delete',
    summary: 'Delete a policy',
    answer: deletedAnswer,
  },
  {
    method: 'POST',
    path: `${policies}/{policy}/pause`,
    operation: 'policies.pause',
    summary: 'Stop new exchanges under a policy',
    answer: policyAnswer,
  },
  {
    method: 'POST',
    path: `${policies}/{policy}/resume`,
    operation: 'policies.resume',
    summary: 'Let a paused policy exchange again',
    answer: policyAnswer,
  },
  {
    method: 'GET',
    path: '/workload-identity/audit',
    operation: 'audit.list',
    summary: 'List exchanges with outcome and reason, newest first',
    answer: exchangeAnswer,
    isList: true,
    isReading: true,
  },
  {
    method: 'GET',
    path: '/workload-identity/audit/changes',
    operation: 'audit.changes',
    summary: 'List what admins changed, newest first',
    answer: changeAnswer,
    isList: true,
    isReading: true,
  },
]

/** What the service fills in: the organization is the key's, and what the path names is in the path. */
function filledInBy(path: string): string[] {
  return ['organization', ...[...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '')]
}

export function createAdminEndpoints(runOperation: RunOperation): Endpoint[] {
  return routes.map((route) => ({
    method: route.method,
    path: route.path,
    describes: describe(route),
    handle: (request, context, info) => handle(route, runOperation, request, context, info),
  }))
}

async function handle(
  { method, path, operation, isList, isReading }: AdminRoute,
  runOperation: RunOperation,
  request: Request,
  context: Context,
  { params, requestId }: RequestInfo,
): Promise<Response> {
  const key = await authenticateManagement(request, context, { writes: isReading !== true })
  const given =
    method === 'GET' || method === 'DELETE' ? readQuery(request) : await readJson(request, operationBodyBytesMax)
  for (const name of filledInBy(path))
    if (name in given)
      throw new Fault(
        'invalid',
        `${name} must be removed: it is told by ${name === 'organization' ? 'the key' : 'the path'}`,
      )
  const input = { ...given, ...params, organization: key.organizationId }
  const answer = await runOperation(operation, input, { kind: 'key', keyId: key.id, requestId })
  const status = operation === 'issuers.add' || operation === 'policies.create' ? 201 : 200
  return json(status, isList === true ? answer : { data: answer }, { 'cache-control': 'no-store' })
}

/** Query parameters; the ones that are numbers become such, and the operation refuses what it does not know. */
function readQuery(request: Request): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  // The URL may have a host that is none, so only what follows the question mark is read.
  const query = request.url.slice(request.url.indexOf('?') + 1 || request.url.length)
  for (const [name, value] of new URLSearchParams(query))
    fields[name] = /^\d{1,15}$/.test(value) ? Number(value) : value
  return fields
}

function describe({ method, path, operation, summary, answer, isList, isReading }: AdminRoute): Description {
  const shape = operations[operation].input as unknown as Shape
  const status = operation === 'issuers.add' || operation === 'policies.create' ? 201 : 200
  const isNamed = path.includes('{')
  const takesBody = method === 'POST' || method === 'PATCH'
  const isBare = takesBody && /\/(pause|resume|refresh)$/.test(path)
  return {
    summary,
    access: isReading === true ? 'admin:read' : 'admin:write',
    ...(method === 'GET' && !isNamed ? { query: shape } : {}),
    ...(takesBody && !isBare ? { body: { mediaType: 'application/json', shape, filledIn: filledInBy(path) } } : {}),
    responses: {
      [status]: { description: 'Done', shape: isList === true ? listOf(answer) : dataOf(answer) },
      ...errorResponses(
        400,
        401,
        403,
        ...(isNamed ? [404] : []),
        ...(takesBody ? [404, 408, 409, 413] : []),
        ...(path.endsWith('/refresh') ? [503] : []),
      ),
    },
  }
}
