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

/** Of a longer path, only the beginning is compared. */
const comparedCharactersMax = 64

/** The served path that differs from this one by the fewest letters, if these are few: it was probably mistyped. */
export function findSimilarPath(pathname: string, basePath: string, served: readonly string[]): string | undefined {
  if (!pathname.startsWith(`${basePath}/`)) return undefined
  const asked = pathname.slice(basePath.length, basePath.length + comparedCharactersMax).toLowerCase()
  const ranked = served
    .map((path) => ({ path, distance: distanceBetween(asked, path) }))
    .toSorted((one, other) => one.distance - other.distance)
  const [best] = ranked
  return best !== undefined && best.distance <= best.path.length / 4 ? basePath + best.path : undefined
}

/** How many letters must be added, removed or replaced (Levenshtein). */
function distanceBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let at = 1; at <= one.length; at++) {
    const next = [at]
    for (let to = 1; to <= other.length; to++) {
      const replaced = (row[to - 1] ?? 0) + (one[at - 1] === other[to - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[other.length] ?? 0
}
