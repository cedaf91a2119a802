// Every endpoint of the service with its documentation, on one page.
import packageJson from '../../package.json' with { type: 'json' }
import type { RunByName } from '../admin/operation/operation.ts'
import { withTypes } from '../admin/run-operation.ts'
import { sessionEndpoints } from '../admin/sessions/endpoints.ts'
import { auditLogEndpoint } from '../admin/transport/audit-log-endpoint.ts'
import { createAdminEndpoints } from '../admin/transport/endpoints.ts'
import { metadataEndpoints } from '../federation/metadata-endpoints.ts'
import { exchangeDescription, jwksDescription } from '../federation/openapi.ts'
import type { Endpoint, Handle, ServedRoute } from '../http/endpoint.ts'
import { createOpenApiDocument } from '../http/openapi.ts'
import { errorResponses, type OperationDoc } from '../http/operation-doc.ts'
import { generationEndpoint } from '../inference/generation-endpoint.ts'
import { inferenceDescriptions, modelDescription, modelsDescription } from '../inference/openapi.ts'
import { createKeyEndpoints } from '../keys/endpoints.ts'
import { metricsEndpoint } from '../monitoring/metrics-endpoint.ts'
import { createPresetEndpoints } from '../presets/endpoints.ts'
import type { Context } from './context.ts'
import { workloadRoutes } from './workload-routes.ts'

/** The documentation of workload routes that do not bring their own. */
const workloadDescriptions: ReadonlyMap<string, OperationDoc> = new Map([
  ['POST /oauth/token', exchangeDescription],
  ['GET /oauth/jwks', jwksDescription],
  ['GET /models', modelsDescription],
  ['GET /models/{model+}', modelDescription],
  ...inferenceDescriptions,
])

function describe(route: ServedRoute<Context>): Endpoint<Context> {
  const openapi = workloadDescriptions.get(`${route.method} ${route.path}`)
  if (openapi === undefined && !('openapi' in route)) throw new Error(`${route.path} has no documentation`)
  return { ...(openapi && { openapi }), ...route } as Endpoint<Context>
}

export function listEndpoints(runByName: RunByName): Endpoint<Context>[] {
  const runOperation = withTypes(runByName)
  const endpoints: Endpoint<Context>[] = [
    ...workloadRoutes.map(describe),
    ...createKeyEndpoints(runOperation),
    ...createPresetEndpoints(runOperation),
    ...createAdminEndpoints(runByName),
    ...sessionEndpoints,
    metricsEndpoint,
    generationEndpoint,
    auditLogEndpoint,
    ...metadataEndpoints,
  ]
  const openapi: OperationDoc = {
    summary: 'This document (OpenAPI 3.1)',
    access: 'public',
    responses: { 200: { description: 'The document' }, ...errorResponses() },
  }
  let text: Promise<string> | undefined
  const handle: Handle<Context> = async (_request, { baseUrl }) => {
    text ??= createOpenApiDocument(endpoints, baseUrl, packageJson.version).then((document) => JSON.stringify(document))
    return new Response(await text, { headers: { 'content-type': 'application/json' } })
  }
  endpoints.push({ method: 'GET', path: '/openapi.json', handle, openapi })
  return endpoints
}
