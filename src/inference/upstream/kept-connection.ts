// What happens to a request whose server closes the connection that was kept for it.

/** A server that closes a kept connection while a request is sent on it does so at once. Later, it may have worked on the request. */
const closingMillisecondsMax = 1_000

/**
 * Servers such as llama.cpp close kept connections without announcing it. A request that meets such a close was not processed, and is sent
 * once more, on a new connection.
 */
export function sendAgainIfClosed(send: (connection?: { keepalive: false }) => Promise<Response>): Promise<Response> {
  const sentAt = performance.now()
  return send().catch((error: unknown) => {
    const wasClosed = (error as { code?: unknown }).code === 'ECONNRESET'
    if (!wasClosed || performance.now() - sentAt > closingMillisecondsMax) throw error
    return send({ keepalive: false })
  })
}
