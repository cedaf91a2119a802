// Finds the route of a request. Paths are relative to the base URL's path and matched exactly; it knows no endpoint.

export type Route<Handle> = { method: string; path: string; handle: Handle }

/** A route; or what to tell about a path that has other methods (`sibling` is one of its routes); or nothing at that path. */
export type Match<R> = { found: R } | { sibling: R; allowed: string[] } | undefined

/** Compiles a route table. `basePath` is what stands before every path, e.g. `/v1`. GET serves HEAD as well. */
export function createRouter<R extends Route<unknown>>(
  basePath: string,
  routes: readonly R[],
): (method: string, pathname: string) => Match<R> {
  const byPath = Map.groupBy(routes, (route) => basePath + route.path)
  return (method, pathname) => {
    const siblings = byPath.get(pathname)
    const sibling = siblings?.[0]
    if (siblings === undefined || sibling === undefined) return undefined
    const found = siblings.find((route) => route.method === (method === 'HEAD' ? 'GET' : method))
    if (found !== undefined) return { found }
    return {
      sibling,
      allowed: siblings.flatMap((route) => (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method])),
    }
  }
}
