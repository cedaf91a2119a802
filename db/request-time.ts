// When a request was made, by its id.

/** Milliseconds since 1970: a request id (UUID version 7) begins with its time. */
export function timeOfRequest(requestId: string): number {
  return Number.parseInt(requestId.replace('-', '').slice(0, 12), 16)
}
