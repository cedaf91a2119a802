// `GET /livez` and `GET /readyz`, for load balancers, containers and service managers. They need no credential.
import type { Endpoint } from '../http/endpoint.ts'
import { errorResponses } from '../http/operation-doc.ts'
import { json } from '../http/reply.ts'
import { type } from '../values/shape.ts'
import { degradedChecks, failingChecks } from './health.ts'
import type { Readiness } from './readiness.ts'

/** What the health endpoints need. */
export type HealthContext = { readiness: Readiness }

export const healthShape = type({
  status: "'ready' | 'degraded' | 'not_ready'",
  failing: type.enumerated(...failingChecks).array(),
  degraded: type.enumerated(...degradedChecks).array(),
}).configure({ title: 'Health' })

const uncached = { 'cache-control': 'no-store' }

export const healthEndpoints: Endpoint<HealthContext>[] = [
  {
    method: 'GET',
    path: '/livez',
    isBesideBase: true,
    handle: async () => json(200, { status: 'live' }, uncached),
    openapi: {
      summary: 'Whether the process responds',
      access: 'public',
      responses: { 200: { description: 'It responds', shape: type({ status: "'live'" }) }, ...errorResponses() },
    },
  },
  {
    method: 'GET',
    path: '/readyz',
    isBesideBase: true,
    handle: async (_request, { readiness }) => {
      const health = await readiness.check()
      return json(health.status === 'not_ready' ? 503 : 200, health, uncached)
    },
    openapi: {
      summary: 'Whether the service can do its work, with the names of failing checks',
      access: 'public',
      responses: {
        ...errorResponses(),
        200: {
          description:
            'It is ready, or degraded: an upstream, an issuer or the last backup fails, or it serves without its database for a bounded time',
          shape: healthShape,
        },
        503: { description: 'It is not ready', shape: healthShape },
      },
    },
  },
]
