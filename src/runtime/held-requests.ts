// Holds the requests that arrive while a server listens and does not serve yet, so that a proxy meets no error.
import type { Handler } from './listener.ts'

export type HeldRequests = {
  handler: Handler
  /** Serves the requests that wait, and all later ones. */
  serve: (handler: Handler) => void
  /** Refuses all requests: the server does not start. */
  refuse: () => void
}

/** A start waits for its database for up to half an hour; a proxy has other nodes to ask. */
const heldMillisecondsMax = 10_000

/** Each request waits for so many milliseconds at most; `refused` then responds to it. */
export function holdRequests(refused: () => Response, milliseconds = heldMillisecondsMax): HeldRequests {
  const refuseRequest: Handler = async () => refused()
  const { promise, resolve } = Promise.withResolvers<Handler>()
  let current: Handler = async (request, peer) => {
    const late = Promise.withResolvers<Handler>()
    const timer = setTimeout(() => late.resolve(refuseRequest), milliseconds)
    const handler = await Promise.race([promise, late.promise])
    clearTimeout(timer)
    return handler(request, peer)
  }
  const serve = (handler: Handler) => {
    current = handler
    resolve(handler)
  }
  return { handler: (request, peer) => current(request, peer), serve, refuse: () => serve(refuseRequest) }
}
