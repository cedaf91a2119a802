// Request ids: UUIDs of version 7 (RFC 9562 §5.7), so that they sort by time.

/** Returns the milliseconds since 1970 UTC that the id starts with. */
export function timeOfRequest(requestId: string): number {
  return Number.parseInt(requestId.replace('-', '').slice(0, 12), 16)
}

/** `now` in milliseconds since 1970. */
export function createRequestId(now: number): string {
  const time = now.toString(16).padStart(12, '0')
  // A version 4 has its random bits and its variant where a version 7 has them.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${crypto.randomUUID().slice(15)}`
}
