// Serves metrics on the metrics address, at `/metrics`, without a credential.
import type { Handler } from '../../runtime/listener.ts'
import { type MetricsContext, metricsResponse } from './metrics-report.ts'

/** It knows one path. */
export function createMetricsHandler(context: MetricsContext): Handler {
  return async (request) => {
    const { pathname } = new URL(request.url, 'http://localhost')
    if (pathname !== '/metrics') return new Response('See /metrics\n', { status: 404 })
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return new Response('Use GET\n', { status: 405, headers: { allow: 'GET, HEAD' } })
    return metricsResponse(context)
  }
}
