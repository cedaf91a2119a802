// Finds the path that a caller probably meant by an unknown one. It suggests templates, never text that was sent.
import type { Match, Route } from './router.ts'

/** What clients and other services put before the paths, version segments such as `v1` aside. */
const foreignSegments = ['api', 'openai', 'anthropic', 'inference']
/** Clients repeat the base path two or three times by mistake, not more often. */
const segmentsDroppedMax = 4

/**
 * The nearest path with a route: with the base path once, without extra slashes, in lower case. `/oauth/token`, `/v1/v1/oauth/token` and
 * `/v1/oauth/token/` all lead to `/v1/oauth/token`, and `/api/v1/models` to `/v1/models`. Undefined where none of these paths has a route.
 */
export function findNearestPath<R extends Route<unknown>>(
  pathname: string,
  basePath: string,
  route: (method: string, pathname: string) => Match<R>,
): string | undefined {
  const segments = pathname.split('/').filter((segment) => segment !== '')
  const ofBase = basePath.split('/')
  for (let dropped = 0; dropped <= segmentsDroppedMax; dropped++) {
    const rest = `${basePath}/${segments.slice(dropped).join('/')}`
    const match = route('GET', rest) ?? route('GET', rest.toLowerCase())
    if (match !== undefined) {
      const { path } = 'found' in match ? match.found : match.sibling
      // A route for the rest of a path matches nearly anything: only the base path can have been wrong.
      if (path.endsWith('+}') && pathname.startsWith(`${basePath}/`)) return undefined
      return basePath + path.replace('+}', '}')
    }
    const next = segments[dropped]
    const isPrefix =
      next !== undefined &&
      (ofBase.includes(next) || foreignSegments.includes(next) || /^v\d{1,3}(?:beta)?$/.test(next))
    if (!isPrefix) return undefined
  }
  return undefined
}
