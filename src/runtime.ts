// Listens and drains. The only file that knows whether it runs on Bun or on Deno.
import { lookup } from 'node:dns/promises'
import { Fault } from './fault.ts'
import { connectionIdleSecondsMax, drainMillisecondsMax, usageWaitMillisecondsMax } from './limits.ts'

/**
 * `ca`: certificates in PEM to trust instead of the public ones. `address`: the IP address to connect to, while the certificate must be for
 * the host of the URL.
 */
export type FetchInit = RequestInit & { decompress?: boolean; ca?: string; address?: string }
export type Fetch = (url: string, init: FetchInit) => Promise<Response>

/** What a handler knows of the caller beside the request. */
export type Peer = {
  address: string | null
  /** The segments of the path as they were sent, each decoded, where the runtime shows the URL in its normal form only. */
  sentSegments?: readonly string[]
  /** Lifts the limit on a silent connection, for an answer that may take long. The function it gives sets the limit back. */
  liftIdleLimit: () => () => void
  /** Whether this service, stopping, has cut what was still running: a request that ends then was not ended by its client. */
  isCut: () => boolean
  /** Has a stop wait for what goes on when the answer is over. */
  outlives: (work: Promise<unknown>) => void
}
export type Handler = (request: Request, peer: Peer) => Promise<Response>
export type ListenOptions = { hostname: string; port: number } | { socketPath: string }

export type Listener = {
  /** The port in force; 0 for a local socket. */
  port: number
  /**
   * Accepts nothing new, lets running requests end within `drainMillisecondsMax`, then cuts what is left. Resolves when the handlers of
   * those have ended too, so that what they have to record is recorded.
   */
  drain: () => Promise<void>
}

type TlsOptions = { tls?: { ca: string }; client?: unknown }
type DenoServer = { addr: { port?: number }; shutdown: () => Promise<void> }
type DenoRuntime = {
  createHttpClient: (options: { caCerts: string[] }) => unknown
  serve: (
    options: object,
    handler: (request: Request, info: { remoteAddr: { hostname?: string } }) => Promise<Response>,
  ) => DenoServer
}

/** Deeper paths are taken for ones that were changed on their way; a model's name may have slashes, but not so many. */
const pathSegmentsMax = 32

/** How long handlers, and what outlives them, may take to end once their connections are cut. */
const cutHandlersMillisecondsMax = usageWaitMillisecondsMax + 500

type Bounds = { idleSeconds: number; drainMilliseconds: number }
const boundsInForce: Bounds = { idleSeconds: connectionIdleSecondsMax, drainMilliseconds: drainMillisecondsMax }

/** @throws Fault `configuration` when the address cannot be had. */
export async function listen(
  options: ListenOptions,
  handler: Handler,
  bounds: Bounds = boundsInForce,
): Promise<Listener> {
  try {
    const deno = (globalThis as { Deno?: DenoRuntime }).Deno
    const { counted, outlives, ended } = countRunning(handler)
    let hasCut = false
    const stopping = { isCut: () => hasCut, outlives }
    const { port, stop, cut } =
      deno === undefined
        ? listenOnBun(options, counted, bounds, stopping)
        : listenOnDeno(deno, options, counted, stopping)
    const cutAll = () => {
      hasCut = true
      cut()
    }
    return { port, drain: () => drain({ stop, cut: cutAll }, ended, bounds) }
  } catch (cause) {
    const where = 'socketPath' in options ? options.socketPath : `${options.hostname}:${options.port}`
    const { code, message } = cause as NodeJS.ErrnoException
    const why =
      code === 'EADDRINUSE' || code === 'AddrInUse' ? 'it is in use; choose another with LATCHKEY_LISTEN' : message
    throw new Fault('configuration', `Cannot listen on ${where}: ${why}`, { cause })
  }
}

type Ended = () => Promise<unknown>
/** What a runtime gives: a port, a stop that waits for running requests, and one that does not. */
type Listened = { port: number; stop: () => Promise<unknown>; cut: () => unknown }

/** Keeps count of the handlers that run, and of what outlives them, so that a stop can wait for them. */
function countRunning(handler: Handler): { counted: Handler; outlives: Peer['outlives']; ended: Ended } {
  let running = 0
  let waiting: (() => void)[] = []
  const end = () => {
    running -= 1
    if (running > 0) return
    for (const resolve of waiting) resolve()
    waiting = []
  }
  const outlives = (work: Promise<unknown>) => {
    running += 1
    work.then(end, end)
  }
  const counted: Handler = (request, peer) => {
    const answer = handler(request, peer)
    outlives(answer)
    return answer
  }
  const ended = () => new Promise<void>((resolve) => (running === 0 ? resolve() : waiting.push(resolve)))
  return { counted, outlives, ended }
}

/** What handlers learn of a stop, and what they tell it. */
type Stopping = Pick<Peer, 'isCut' | 'outlives'>

function listenOnBun(options: ListenOptions, handler: Handler, { idleSeconds }: Bounds, stopping: Stopping): Listened {
  type Asked = Request & { params?: Record<string, string> }
  const fetch = (request: Asked, server: Bun.Server<undefined>) =>
    handler(request, {
      address: server.requestIP(request)?.address ?? null,
      sentSegments: Object.values(request.params ?? {}),
      liftIdleLimit: () => {
        server.timeout(request, 0)
        return () => server.timeout(request, idleSeconds)
      },
      ...stopping,
    })
  // Bodies are bounded by their readers; Bun's own bound would answer without our error shape. Outside development Bun shares a port
  // with whoever asks for it too, and two servers would then split the requests: not here. A local socket takes the idle limit only from
  // here, and its own is ten seconds, less than an operation may take.
  const common = {
    fetch,
    routes: routesOf(fetch),
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    idleTimeout: idleSeconds,
  }
  const server: Bun.Server<undefined> =
    'socketPath' in options
      ? // The types leave the idle limit out for a local socket; the runtime does not.
        Bun.serve({ ...common, unix: options.socketPath } as object as Parameters<typeof Bun.serve<undefined>>[0])
      : Bun.serve({
          ...common,
          hostname: options.hostname,
          port: options.port,
          reusePort: false,
        })
  return { port: server.port ?? 0, stop: () => server.stop(), cut: () => server.stop(true) }
}

/**
 * One route for each number of segments. Bun's `Request` has the URL without its dot segments and with slashes for backslashes; only the
 * parameters of a route are what was sent. A path that no route takes has an empty segment or too many of them.
 */
function routesOf<Serve>(serve: Serve): Record<string, Serve> {
  const names = Array.from({ length: pathSegmentsMax }, (_, index) => `/:s${index}`)
  return Object.fromEntries(names.map((_, index) => [names.slice(0, index + 1).join(''), serve]))
}

function listenOnDeno(deno: DenoRuntime, options: ListenOptions, handler: Handler, stopping: Stopping): Listened {
  const abort = new AbortController()
  const address = 'socketPath' in options ? { path: options.socketPath } : options
  const server = deno.serve({ ...address, signal: abort.signal, onListen: () => {} }, (request, info) =>
    handler(request, {
      address: info.remoteAddr.hostname ?? null,
      ...(hasPlainHost(request) ? {} : { sentSegments: [] }),
      liftIdleLimit: () => () => {},
      ...stopping,
    }),
  )
  return { port: server.addr.port ?? 0, stop: () => server.shutdown(), cut: () => abort.abort() }
}

/** Deno's URL is the Host header and what was sent, one after the other, so that a Host with a slash in it would begin the path. */
function hasPlainHost({ headers }: Request): boolean {
  return /^[\w.:[\]-]*$/.test(headers.get('host') ?? '')
}

async function drain(
  { stop, cut }: Omit<Listened, 'port'>,
  ended: Ended,
  { drainMilliseconds }: Bounds,
): Promise<void> {
  if (await isSettledWithin(stop().then(ended), drainMilliseconds)) return
  cut()
  await isSettledWithin(ended(), cutHandlersMillisecondsMax)
}

async function isSettledWithin(promise: Promise<unknown>, milliseconds: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds)
  })
  const isSettled = await Promise.race([promise.then(() => true), late])
  clearTimeout(timer)
  return isSettled
}

/** Bun reads from the environment, once, how many requests it sends at a time: 256 unless told otherwise; more wait without a word. */
const outboundSetting = 'BUN_CONFIG_MAX_HTTP_REQUESTS'
const outboundRequestsMax = '65535'

/**
 * Starts this program over in this very process, with room for as many requests to the inference server as there are descriptors. To be
 * called before anything is opened; comes back where there is nothing to raise.
 */
export function raiseOutboundLimit(): void {
  const { execve, env, execPath, execArgv, argv } = process
  if (!('Bun' in globalThis) || env[outboundSetting] !== undefined || execve === undefined) return
  // In the compiled binary the second argument is a path inside it, not one that was given.
  const isCompiled = argv[1]?.includes('$bunfs') === true
  execve(execPath, [execPath, ...(isCompiled ? argv.slice(2) : [...execArgv, ...argv.slice(1)])], {
    ...env,
    [outboundSetting]: outboundRequestsMax,
  } as Record<string, string>)
}

/** Whether the runtime sends its requests through a proxy, as its environment may say. */
export function isBehindProxy(): boolean {
  return ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'].some((name) => (process.env[name] ?? '') !== '')
}

/**
 * The runtime's fetch without its own limit on time: every caller brings a signal. `decompress: false` leaves an encoded body as it is;
 * inflating one of a few kilobytes has taken gigabytes and seconds. `address` is connected to instead of what the host of the URL leads to,
 * while TLS and the request name that host. (These options are Bun's; others ignore them.)
 */
export function outboundFetch(
  url: string,
  { ca, address, ...init }: RequestInit & { decompress?: boolean; ca?: string; address?: string },
): Promise<Response> {
  const trust = ca === undefined ? {} : trusting(ca)
  if (address === undefined || !('Bun' in globalThis))
    return fetch(url, { ...init, ...trust, timeout: false } as RequestInit)
  const target = new URL(url)
  const { host, hostname } = target
  target.hostname = address.includes(':') ? `[${address}]` : address
  const headers = new Headers(init.headers)
  headers.set('host', host)
  // A connection that was kept could be one whose certificate is for another name at the same address.
  const held = { headers, tls: { ...trust.tls, serverName: hostname }, keepalive: false }
  return fetch(target.href, { ...init, ...held, timeout: false } as RequestInit)
}

/** Options that make a runtime trust these certificates (PEM) and no others. */
function trusting(ca: string): TlsOptions {
  const deno = (globalThis as { Deno?: DenoRuntime }).Deno
  return deno === undefined ? { tls: { ca } } : { client: deno.createHttpClient({ caCerts: [ca] }) }
}

/** The IP addresses of a host name, as the system resolves it, those that most machines can reach first. */
export async function resolveHost(hostname: string): Promise<string[]> {
  return (await lookup(hostname, { all: true, order: 'ipv4first' })).map(({ address }) => address)
}
