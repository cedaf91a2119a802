// Serves metrics on the metrics address, at `/metrics`, without a credential. A page in a browser on the same machine must not read them.
import { isIP } from 'node:net'
import type { Handler } from '../runtime/listener.ts'
import { type MetricsReport, metricsResponse } from './metrics-report.ts'

/** It knows one path. `address` is undefined for a local socket, which no browser can reach. */
export function createMetricsHandler(report: MetricsReport, address?: { hostname: string }): Handler {
  return async (request) => {
    const host = request.headers.get('host')
    if (address !== undefined && host !== null && !isOwnHost(host, address))
      return new Response('Use the address of LATCHKEY_METRICS_LISTEN\n', { status: 421 })
    const { pathname } = new URL(request.url, 'http://localhost')
    if (pathname !== '/metrics') return new Response('See /metrics\n', { status: 404 })
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return new Response('Use GET\n', { status: 405, headers: { allow: 'GET, HEAD' } })
    return metricsResponse(await report())
  }
}

/** A name of someone else can lead to this machine (DNS rebinding). An IP address cannot be made to lead elsewhere. */
function isOwnHost(host: string, { hostname }: { hostname: string }): boolean {
  const name = host
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase()
  return isIP(name) !== 0 || name === 'localhost' || name === hostname.toLowerCase()
}
