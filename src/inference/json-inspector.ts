// Watches a JSON response for its usage.
import { upstreamResponseBytesInspectedMax, upstreamResponseHeadBytesInspectedMax } from '../limits.ts'
import { countsOf, type Inspected, type Inspector, modelOf, parseObject, usageOf } from './usage.ts'

type Fields = Record<string, unknown>

/** A window on the bytes of a response: the newest chunks, and the first bytes of those that were dropped. */
type Window = { chunks: Uint8Array[]; bytes: number; head: Uint8Array }

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const nothing = new Uint8Array(0)
/** A usage object holds numbers and objects of numbers; anything longer is something else. */
const usageCharactersMax = 10_000

/**
 * Releases every chunk except the newest, which waits until the usage is recorded. Of a response too long to be kept,
 * the end is searched, where the usage usually is, and the beginning, where llama.cpp writes that of embeddings.
 */
export function inspectJson(): Inspector {
  const window: Window = { chunks: [], bytes: 0, head: nothing }
  let held: Uint8Array = nothing
  return {
    take: (chunk) => {
      addChunk(window, chunk)
      const released = held
      held = chunk
      return released
    },
    isFinal: () => false,
    isUsageDue: () => false,
    isWhole: () => true,
    rest: () => held,
    result: () => inspect(window),
  }
}

function addChunk(window: Window, chunk: Uint8Array): void {
  const { chunks } = window
  chunks.push(chunk)
  window.bytes += chunk.byteLength
  while (window.bytes - (chunks[0]?.byteLength ?? 0) >= upstreamResponseBytesInspectedMax) {
    const dropped = chunks.shift() ?? nothing
    window.bytes -= dropped.byteLength
    const wanted = upstreamResponseHeadBytesInspectedMax - window.head.byteLength
    if (wanted > 0) window.head = Buffer.concat([window.head, dropped.subarray(0, wanted)])
  }
}

function inspect({ chunks, head }: Window): Inspected {
  const [first = nothing] = chunks
  const text = decoder.decode(chunks.length > 1 ? Buffer.concat(chunks) : first)
  if (head.byteLength === 0) {
    const response = parseObject(text)
    return { model: modelOf(response), counts: countsOf(usageOf(response)) }
  }
  const beginning = Buffer.from(head).toString()
  const usage = usageAt(text, text.lastIndexOf('"usage"')) ?? usageAt(beginning, beginning.indexOf('"usage"'))
  return { model: undefined, counts: countsOf(usage) }
}

/** The usage object at a position in a part of a JSON text. Inside a string its quotes would be escaped. */
function usageAt(text: string, at: number): Fields | undefined {
  const start = at < 0 ? at : text.indexOf('{', at)
  for (
    let end = text.indexOf('}', start);
    start > 0 && end > 0 && end - start < usageCharactersMax;
    end = text.indexOf('}', end + 1)
  ) {
    const usage = parseObject(text.slice(start, end + 1))
    if (Object.keys(usage).length > 0) return usage
  }
  return undefined
}
