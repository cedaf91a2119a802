// Reads the time of a request from its id.

/** Returns milliseconds since 1970 UTC. A request id (UUID version 7) starts with its time. */
export function timeOfRequest(requestId: string): number {
  return Number.parseInt(requestId.replace('-', '').slice(0, 12), 16)
}
