// `GET /metrics` below the base path, for management keys: metrics for sites that have one port.
import type { Endpoint, Handle } from '../http/endpoint.ts'
import { rejectQuery } from '../http/input.ts'
import { errorResponses } from '../http/operation-doc.ts'
import { authenticateManagement, type BearerContext } from '../keys/bearer.ts'
import { type MetricsContext, type MetricsReport, metricsResponse } from './metrics-report.ts'

/** What the endpoint needs. */
export type MetricsEndpointContext = BearerContext & MetricsContext & { reportMetrics: MetricsReport }

/** A key sees everything while its organization is the only one, and otherwise only the series of its organization. */
const showMetrics: Handle<MetricsEndpointContext> = async (request, context) => {
  const key = await authenticateManagement(request, context)
  rejectQuery(request)
  const isOnly = context.registry.organizations.size === 1
  return metricsResponse(await context.reportMetrics(isOnly ? undefined : key.organizationId))
}

export const metricsEndpoint: Endpoint<MetricsEndpointContext> = {
  method: 'GET',
  path: '/metrics',
  handle: showMetrics,
  openapi: {
    summary: 'Metrics in the text format of Prometheus; with several organizations, only the series of the caller',
    access: 'admin:viewer',
    responses: {
      200: { description: 'The metrics', mediaType: 'text/plain' },
      ...errorResponses(400, 401, 403),
    },
  },
}
