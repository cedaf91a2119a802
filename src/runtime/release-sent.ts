// Frees the memory of what was sent without waiting for the garbage collector, which would let an upload of gigabytes take
// a hundred megabytes.

/**
 * Frees a chunk of a request body that `fetch` has taken from its stream, once it asks for the next one. Bun copies what
 * it cannot send at once; Deno may still need the chunk, and keeps it. It leaves an empty chunk.
 */
export function releaseSent({ buffer, byteLength }: Uint8Array): void {
  const isWhole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
  if (isWhole && 'Bun' in globalThis) buffer.transfer(0)
}
