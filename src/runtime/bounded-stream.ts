// Reads a body of unknown length, a request's or a response's, up to a bound. The agent needs it, so it imports nothing.

type Bound = {
  bytesMax: number
  /** Makes the error for a longer body. */
  tooLarge: () => Error
  /** Ends the reading when it aborts, with its reason as the error. */
  signal?: AbortSignal
}

/**
 * All bytes of a body. Reading stops, and the body is canceled, as soon as more than `bytesMax` bytes have arrived.
 * @throws what `tooLarge` makes, the reason of `signal`, and the errors of the stream
 */
export async function readBounded(
  body: ReadableStream<Uint8Array> | null,
  { bytesMax, tooLarge, signal }: Bound,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = body?.getReader()
  const cancel = () => void reader?.cancel().catch(() => {})
  signal?.addEventListener('abort', cancel)
  try {
    while (reader !== undefined) {
      const { done, value } = await reader.read()
      if (done) break
      length += value.byteLength
      if (length > bytesMax) {
        cancel()
        throw tooLarge()
      }
      chunks.push(value)
    }
    signal?.throwIfAborted()
  } finally {
    signal?.removeEventListener('abort', cancel)
  }
  return joinChunks(chunks, length)
}

/** `length` is that of all chunks together. */
export function joinChunks(chunks: Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    whole.set(chunk, offset)
    offset += chunk.byteLength
  }
  return whole
}
