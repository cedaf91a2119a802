// A listener and its handlers, on whichever runtime.

/** What a handler knows of the caller, in addition to the request. */
export type Peer = {
  address: string | null
  /** The path segments as they were sent, each decoded. Set where the runtime shows only the normalized URL. */
  sentSegments?: readonly string[] | undefined
  /** Lifts the idle limit of the connection of a request, for a response that may take long, or restores it. */
  liftIdleLimit: (request: Request) => void
  restoreIdleLimit: (request: Request) => void
  /** Whether a stopping service has closed the remaining connections: a request that ends then was not ended by its client. */
  isCut: () => boolean
  /** Makes a stop wait for work that continues after the response. */
  outlives: (work: Promise<unknown>) => void
}
export type Handler = (request: Request, peer: Peer) => Promise<Response>
/**
 * `setting` is the one that has the address, if it is not LATCHKEY_LISTEN; a failure names it. `plainPaths`: those of most requests. A runtime that
 * can recognize them as they were sent leaves out `sentSegments`.
 */
export type ListenOptions = ({ hostname: string; port: number } | { socketPath: string }) & {
  setting?: string
  plainPaths?: readonly string[]
}
export type Bounds = { idleSeconds: number; drainMilliseconds: number }

/** A certificate, with the ones between it and its root, and its private key, in PEM. */
export type TlsPair = { cert: string; key: string }
/** The address of the client, where the connection is a relay's. */
export type AddressOf = (peer: { address: string; port: number }) => string | null
export type TlsOptions = { pair: TlsPair; addressOf: AddressOf }

/** How handlers and a stop know of each other. */
export type StopState = Pick<Peer, 'isCut' | 'outlives'>

/** A listening runtime: its port (0 for a local socket), a stop that waits for running requests, and one that closes their connections. */
export type ListeningSocket = { port: number; stop: () => Promise<unknown>; cut: () => unknown }
