// The parts of Deno that this program uses, and listening on it.
import type { Handler, ListeningSocket, ListenOptions, StopState, TlsOptions } from './listener.ts'

type DenoServer = { addr: { port?: number }; shutdown: () => Promise<void> }
export type DenoRuntime = {
  createHttpClient: (options: { caCerts?: string[]; cert?: string; key?: string }) => unknown
  serve: (
    options: object,
    handler: (request: Request, info: { remoteAddr: { hostname?: string; port?: number } }) => Promise<Response>,
  ) => DenoServer
}

/** Deno, where this program runs on it. */
export function findDeno(): DenoRuntime | undefined {
  return (globalThis as { Deno?: DenoRuntime }).Deno
}

/** @throws the runtime's error when the address cannot be used */
export function listenOnDeno(
  deno: DenoRuntime,
  options: ListenOptions,
  handler: Handler,
  stopping: StopState,
  secure?: TlsOptions,
): ListeningSocket {
  const abort = new AbortController()
  const address = 'socketPath' in options ? { path: options.socketPath } : options
  const server = deno.serve(
    { ...address, ...secure?.pair, signal: abort.signal, onListen: () => {} },
    (request, info) =>
      handler(request, {
        address: addressOf(info.remoteAddr, secure),
        ...(hasPlainHost(request) ? {} : { sentSegments: [] }),
        liftIdleLimit: () => {},
        restoreIdleLimit: () => {},
        ...stopping,
      }),
  )
  return { port: server.addr.port ?? 0, stop: () => server.shutdown(), cut: () => abort.abort() }
}

/** Deno joins the Host header and the request target to a URL, so that a slash in the Host would begin the path. */
function hasPlainHost({ headers }: Request): boolean {
  return /^[\w.:[\]-]*$/.test(headers.get('host') ?? '')
}

function addressOf({ hostname, port }: { hostname?: string; port?: number }, secure: TlsOptions | undefined) {
  if (hostname === undefined) return null
  return secure === undefined ? hostname : secure.addressOf({ address: hostname, port: port ?? 0 })
}
