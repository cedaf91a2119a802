// Listens on Bun or Deno, and drains: a stop waits for running requests and for the work that outlives them.
import { Fault } from '../fault.ts'
import { connectionIdleSecondsMax, drainMillisecondsDefault, usageWaitMillisecondsMax } from '../limits.ts'
import { listenOnBun } from './bun.ts'
import { findDeno, listenOnDeno } from './deno.ts'
import type {
  AddressOf,
  Bounds,
  Handler,
  ListeningSocket,
  ListenOptions,
  StopState,
  TlsOptions,
  TlsPair,
} from './listener.ts'
import { listenThroughRelay, type Relay } from './relay.ts'
import { isSettledWithin } from './settled-within.ts'

export type Listener = {
  /** The port in force; 0 for a local socket. */
  port: number
  /**
   * Accepts nothing new, lets running requests finish within `milliseconds` (`drainMillisecondsDefault`), then closes the remaining
   * connections. Resolves when their handlers have ended too, so that everything they record is recorded.
   */
  drain: (milliseconds?: number) => Promise<void>
}

/** How long handlers, and the work that outlives them, may take to end after their connections are closed. */
const cutHandlersMillisecondsMax = usageWaitMillisecondsMax + 500

const defaultBounds: Bounds = { idleSeconds: connectionIdleSecondsMax, drainMilliseconds: drainMillisecondsDefault }

export type SecureListener = Listener & {
  /** Makes a pair ready for new connections; the others keep theirs. @throws the runtime's error when it cannot use the pair */
  preparePair: Relay['preparePair']
}

/** @throws Fault `configuration` when the address cannot be used */
export async function listen(
  options: ListenOptions,
  handler: Handler,
  bounds: Bounds = defaultBounds,
): Promise<Listener> {
  const tracked = track(handler)
  try {
    return drainable(openOn(options, tracked, bounds), tracked, bounds)
  } catch (cause) {
    throw cannotListen(options, cause)
  }
}

/**
 * Listens for TLS 1.2 and later.
 * @throws Fault `configuration` when the address or the pair cannot be used
 */
export async function listenSecurely(
  address: { hostname: string; port: number; plainPaths?: readonly string[] },
  handler: Handler,
  pair: TlsPair,
  bounds: Bounds = defaultBounds,
): Promise<SecureListener> {
  const tracked = track(handler)
  const open = (next: TlsPair, addressOf: AddressOf) =>
    openOn({ ...address, hostname: '127.0.0.1', port: 0 }, tracked, bounds, { pair: next, addressOf })
  try {
    const relay = await listenThroughRelay(address, open, pair)
    return { ...drainable(relay, tracked, bounds), preparePair: relay.preparePair }
  } catch (cause) {
    throw cannotListen(address, cause)
  }
}

/** A handler whose running calls are counted. */
type TrackedListener = { handler: Handler; running: RunningRequests; stopping: StopState; cutting: { isCut: boolean } }

function track(handler: Handler): TrackedListener {
  const running = countRequests()
  const cutting = { isCut: false }
  const stopping = { isCut: () => cutting.isCut, outlives: (work: Promise<unknown>) => count(running, work) }
  const counted: Handler = (request, peer) => {
    const response = handler(request, peer)
    count(running, response)
    return response
  }
  return { handler: counted, running, stopping, cutting }
}

function openOn(
  options: ListenOptions,
  { handler, stopping }: TrackedListener,
  bounds: Bounds,
  secure?: TlsOptions,
): ListeningSocket {
  const deno = findDeno()
  return deno === undefined
    ? listenOnBun(options, handler, bounds, stopping, secure)
    : listenOnDeno(deno, options, handler, stopping, secure)
}

function drainable(
  { port, stop, cut }: ListeningSocket,
  { running, cutting }: TrackedListener,
  bounds: Bounds,
): Listener {
  const cutAll = () => {
    cutting.isCut = true
    cut()
  }
  const { drainMilliseconds } = bounds
  return { port, drain: (within = drainMilliseconds) => drain({ stop, cut: cutAll }, running, within) }
}

function cannotListen(options: ListenOptions, cause: unknown): Fault {
  const where = 'socketPath' in options ? options.socketPath : `${options.hostname}:${options.port}`
  const { setting = 'LATCHKEY_LISTEN' } = options
  const { code, message } = cause as NodeJS.ErrnoException
  const isInUse = code === 'EADDRINUSE' || code === 'AddrInUse'
  const why = isInUse ? `the address is in use; choose a different one with ${setting}` : message
  return new Fault('configuration', `Cannot listen on ${where}: ${why}`, { cause })
}

/** The handlers that run and the work that outlives them, and who waits for all of these to end. */
type RunningRequests = { count: number; waiting: (() => void)[]; end: () => void }

function countRequests(): RunningRequests {
  const running: RunningRequests = {
    count: 0,
    waiting: [],
    end: () => {
      running.count -= 1
      if (running.count === 0) for (const resolve of running.waiting.splice(0)) resolve()
    },
  }
  return running
}

function count(running: RunningRequests, work: Promise<unknown>): void {
  running.count += 1
  work.then(running.end, running.end)
}

function whenAllEnded({ count, waiting }: RunningRequests): Promise<void> {
  return new Promise((resolve) => {
    if (count === 0) resolve()
    else waiting.push(resolve)
  })
}

async function drain(
  { stop, cut }: Omit<ListeningSocket, 'port'>,
  running: RunningRequests,
  milliseconds: number,
): Promise<void> {
  const ended = stop().then(() => whenAllEnded(running))
  if (await isSettledWithin(ended, milliseconds)) return
  cut()
  await isSettledWithin(whenAllEnded(running), cutHandlersMillisecondsMax)
}
