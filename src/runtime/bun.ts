// Listens on Bun.
import { randomBytes } from 'node:crypto'
import { renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Bounds, Handler, ListeningSocket, ListenOptions, StopState, TlsOptions } from './listener.ts'

/** A model name may have slashes, but a path this deep was changed on its way. */
const pathSegmentsMax = 32

/** In a route, colons and stars stand for other text. */
const isLiteral = /^[\w/.-]+$/

type RoutedRequest = Request & { params?: Record<string, string> }

/** @throws the runtime's error when the address cannot be used */
export function listenOnBun(
  options: ListenOptions,
  handler: Handler,
  { idleSeconds }: Bounds,
  { isCut, outlives }: StopState,
  secure?: TlsOptions,
): ListeningSocket {
  const liftIdleLimit = (request: Request) => server.timeout(request, 0)
  const restoreIdleLimit = (request: Request) => server.timeout(request, idleSeconds)
  const serve = (request: Request, sentSegments?: readonly string[]) => {
    const address = addressOf(server.requestIP(request), secure)
    return handler(request, { address, sentSegments, liftIdleLimit, restoreIdleLimit, isCut, outlives })
  }
  const fetch = (request: RoutedRequest) => serve(request, Object.values(request.params ?? {}))
  const servePlain = (request: Request) => serve(request)
  const plain = (options.plainPaths ?? []).filter((path) => isLiteral.test(path))
  const common = {
    fetch,
    routes: { ...routesOf(fetch), ...Object.fromEntries(plain.map((path) => [path, servePlain])) },
    // The readers of bodies have bounds; Bun's own bound would respond without our error shape.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    // A local socket takes the idle limit from here only. Its default is ten seconds, less than an operation may take.
    idleTimeout: idleSeconds,
  }
  const server: Bun.Server<undefined> =
    'socketPath' in options
      ? serveOnSocket(options.socketPath, common)
      : Bun.serve({
          ...common,
          hostname: options.hostname,
          port: options.port,
          tls: secure?.pair,
          // Outside development Bun would share the port with a second server, and the two would split the requests.
          reusePort: false,
        })
  return { port: server.port ?? 0, stop: () => server.stop(), cut: () => server.stop(true) }
}

/** A stop removes whatever is at the path that Bun was given, so that is a path which nothing else uses. */
function serveOnSocket(path: string, common: object): Bun.Server<undefined> {
  const unix = join(dirname(path), `.${randomBytes(3).toString('hex')}`)
  // The types leave the idle limit out for a local socket; the runtime does not.
  const server = Bun.serve({ ...common, unix } as object as Parameters<typeof Bun.serve<undefined>>[0])
  try {
    renameSync(unix, path)
  } catch (error) {
    void server.stop(true)
    throw error
  }
  return server
}

/**
 * One route per number of segments, for all but the plain paths, which match only what was sent letter by letter. Bun's `Request` has its URL normalized (no dot segments, slashes for backslashes); only route
 * parameters are as they were sent. A path without a route has an empty segment or too many segments.
 */
function routesOf<Serve>(serve: Serve): Record<string, Serve> {
  const names = Array.from({ length: pathSegmentsMax }, (_, index) => `/:s${index}`)
  return Object.fromEntries(names.map((_, index) => [names.slice(0, index + 1).join(''), serve]))
}

function addressOf(peer: Bun.SocketAddress | null, secure: TlsOptions | undefined): string | null {
  if (peer === null) return null
  return secure === undefined ? peer.address : secure.addressOf(peer)
}
