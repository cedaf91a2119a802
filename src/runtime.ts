// Listens and drains. The only file that knows whether it runs on Bun or on Deno.
import { Fault } from './fault.ts'
import { drainMillisecondsMax } from './limits.ts'

/** What a handler knows of the caller beside the request. */
export type Peer = { address: string | null }
export type Handler = (request: Request, peer: Peer) => Promise<Response>
export type ListenOptions = { hostname: string; port: number } | { socketPath: string }

export type Listener = {
  /** The port in force; 0 for a local socket. */
  port: number
  /** Accepts nothing new, lets running requests end within `drainMillisecondsMax`, then cuts what is left. */
  drain: () => Promise<void>
}

type DenoServer = { addr: { port?: number }; shutdown: () => Promise<void> }
type DenoRuntime = {
  serve: (
    options: object,
    handler: (request: Request, info: { remoteAddr: { hostname?: string } }) => Promise<Response>,
  ) => DenoServer
}

/** Seconds a connection may idle before a request has arrived whole; a running request has no such bound. */
const idleSeconds = 60

/** @throws Fault `configuration` when the address cannot be had. */
export async function listen(options: ListenOptions, handler: Handler): Promise<Listener> {
  try {
    const deno = (globalThis as { Deno?: DenoRuntime }).Deno
    return deno === undefined ? listenOnBun(options, handler) : await listenOnDeno(deno, options, handler)
  } catch (cause) {
    const where = 'socketPath' in options ? options.socketPath : `${options.hostname}:${options.port}`
    const { code, message } = cause as NodeJS.ErrnoException
    const why =
      code === 'EADDRINUSE' || code === 'AddrInUse' ? 'it is in use; choose another with LATCHKEY_LISTEN' : message
    throw new Fault('configuration', `Cannot listen on ${where}: ${why}`, { cause })
  }
}

function listenOnBun(options: ListenOptions, handler: Handler): Listener {
  const fetch = (request: Request, server: Bun.Server<undefined>) => {
    server.timeout(request, 0)
    return handler(request, { address: server.requestIP(request)?.address ?? null })
  }
  // Bodies are bounded by their readers; Bun's own bound would answer without our error shape. Outside development Bun shares a port
  // with whoever asks for it too, and two servers would then split the requests: not here.
  const common = { fetch, maxRequestBodySize: Number.MAX_SAFE_INTEGER, development: false }
  const server: Bun.Server<undefined> =
    'socketPath' in options
      ? Bun.serve({ ...common, unix: options.socketPath })
      : Bun.serve({
          ...common,
          hostname: options.hostname,
          port: options.port,
          idleTimeout: idleSeconds,
          reusePort: false,
        })
  return {
    port: server.port ?? 0,
    drain: () => within(server.stop(), () => server.stop(true)),
  }
}

async function listenOnDeno(deno: DenoRuntime, options: ListenOptions, handler: Handler): Promise<Listener> {
  const abort = new AbortController()
  const address = 'socketPath' in options ? { path: options.socketPath } : options
  const server = deno.serve({ ...address, signal: abort.signal, onListen: () => {} }, (request, info) =>
    handler(request, { address: info.remoteAddr.hostname ?? null }),
  )
  return {
    port: server.addr.port ?? 0,
    drain: () => within(server.shutdown(), () => abort.abort()),
  }
}

async function within(draining: Promise<unknown>, cut: () => unknown): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      cut()
      resolve()
    }, drainMillisecondsMax)
  })
  await Promise.race([draining, late])
  clearTimeout(timer)
}

/** The runtime's fetch without its own limit on time: every caller brings a signal. (`timeout` is Bun's, others ignore it.) */
export function outboundFetch(url: string, init: RequestInit): Promise<Response> {
  return fetch(url, { ...init, timeout: false } as RequestInit)
}
