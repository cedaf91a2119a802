// Finds the route of a request. Paths are relative to the path of the base URL. They match exactly, except that `{id}` matches any one
// segment and `{name+}` the rest of the path. It knows no endpoint.

export type Route<Handle> = { method: string; path: string; handle: Handle }
export type Params = Readonly<Record<string, string>>

/** A route; or, for a path that has only other methods, these methods and one of its routes; or undefined. */
export type Match<R> = { found: R; params: Params } | { sibling: R; allowed: string[] } | undefined

type Pattern<R> = { path: string; expression: RegExp; names: string[]; siblings: R[] }

/** Compiles a route table. `basePath` precedes every path, for example `/v1`. GET routes also serve HEAD. */
export function createRouter<R extends Route<unknown>>(
  basePath: string,
  routes: readonly R[],
): (method: string, pathname: string) => Match<R> {
  const byPath = Map.groupBy(routes, (route) => basePath + route.path)
  const patterns = Map.groupBy(
    [...byPath].filter(([path]) => path.includes('{')).map(([path, siblings]) => compile(path, siblings)),
    ({ path }) => firstSegment(path, basePath),
  )
  return (method, pathname) => {
    const at = findSiblings(byPath, patterns.get(firstSegment(pathname, basePath)) ?? [], pathname)
    const sibling = at?.siblings[0]
    if (at === undefined || sibling === undefined) return undefined
    const { siblings, params } = at
    const found = siblings.find((route) => route.method === (method === 'HEAD' ? 'GET' : method))
    if (found !== undefined) return { found, params }
    return {
      sibling,
      allowed: siblings.flatMap((route) => (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method])),
    }
  }
}

const none: Params = Object.freeze({})

function findSiblings<R>(
  byPath: Map<string, R[]>,
  patterns: Pattern<R>[],
  pathname: string,
): { siblings: R[]; params: Params } | undefined {
  const siblings = byPath.get(pathname)
  if (siblings !== undefined && !pathname.includes('{')) return { siblings, params: none }
  for (const { expression, names, siblings } of patterns) {
    const values = expression.exec(pathname)?.slice(1).map(decoded)
    if (values === undefined || values.includes(undefined)) continue
    return { siblings, params: Object.fromEntries(names.map((name, index) => [name, values[index] ?? ''])) }
  }
  return undefined
}

/** The text after the base path up to the next slash: only patterns that start with it can match. */
function firstSegment(pathname: string, basePath: string): string {
  const end = pathname.indexOf('/', basePath.length + 1)
  return pathname.slice(basePath.length, end < 0 ? undefined : end)
}

function compile<R>(path: string, siblings: R[]): Pattern<R> {
  const names = [...path.matchAll(/\{(\w+)\+?\}/g)].map((match) => match[1] ?? '')
  const literal = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const pieces = path.split(/(\{\w+\+?\})/)
  const sources = pieces.map((piece) =>
    piece.endsWith('+}') ? '(.+)' : piece.startsWith('{') ? '([^/]+)' : literal(piece),
  )
  const expression = new RegExp(`^${sources.join('')}$`)
  return { path, expression, names, siblings }
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
