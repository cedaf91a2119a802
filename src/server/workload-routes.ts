// What workloads and load balancers ask for. These routes are served from the start; all others are loaded at first use.

import { toOAuthError } from '../federation/oauth-reply.ts'
import { exchangeToken } from '../federation/token-endpoint.ts'
import type { ServedRoute } from '../http/endpoint.ts'
import { inferenceRoutes } from '../inference/endpoint.ts'
import { listModels, showModel } from '../inference/models/endpoint.ts'
import { accessTokenKeysCacheSeconds } from '../limits.ts'
import { healthEndpoints } from '../monitoring/health-endpoints.ts'
import { publishJwks } from '../tokens/jwks-endpoint.ts'
import type { Context } from './context.ts'

export const workloadRoutes: readonly ServedRoute<Context>[] = [
  { method: 'POST', path: '/oauth/token', handle: exchangeToken, toResponse: toOAuthError },
  // Verifiers keep it as long anyway.
  { method: 'GET', path: '/oauth/jwks', handle: publishJwks, staleSecondsMax: accessTokenKeysCacheSeconds },
  ...inferenceRoutes,
  { method: 'GET', path: '/models', handle: listModels },
  { method: 'GET', path: '/models/{model+}', handle: showModel },
  ...healthEndpoints,
]

/** The paths that workloads send requests to, below the base path. */
export const workloadPaths: readonly string[] = workloadRoutes
  .filter(({ path, isBesideBase = false }) => !isBesideBase && !path.includes('{'))
  .map(({ path }) => path)
