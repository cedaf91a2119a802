// Finds the token counts in what an upstream answers, as JSON or as an event stream. Pure: bytes in, bytes and counts out.
import { upstreamAnswerBytesInspectedMax, upstreamEventBytesInspectedMax } from '../limits.ts'

export type TokenCounts = { promptTokens: number | null; completionTokens: number | null; totalTokens: number | null }

/** What is known of an answer once it has gone through. `counts` is undefined when the upstream sent no usage. */
export type Inspected = { model: string | undefined; counts: TokenCounts | undefined }

export type Inspector = {
  /** Takes a chunk and gives the bytes that may go to the client now. */
  take: (chunk: Uint8Array) => Uint8Array
  /** Whether the client may see the answer as finished when it gets the bytes in hand; they wait for the ledger. */
  isFinal: () => boolean
  /** Whether the upstream, having ended, has said all: of an event stream [DONE] tells, since a cut connection ends it as well. */
  isWhole: () => boolean
  /** The bytes that are still held back when the upstream has ended. */
  rest: () => Uint8Array
  result: () => Inspected
}

const nothing = new Uint8Array(0)
/** An empty line after a line; the two may end differently. Whether a last \r is an end of its own only the next byte tells. */
const eventEnd = /(?:\r\n|\n|\r(?!\n|$)){2}/

/** Lets all but the newest chunk of a JSON answer through; that one waits until the usage is recorded. */
export function inspectJson(): Inspector {
  let held: Uint8Array = nothing
  let chunks: Uint8Array[] = []
  let length = 0
  return {
    take: (chunk) => {
      length += chunk.byteLength
      if (length <= upstreamAnswerBytesInspectedMax) chunks.push(chunk)
      else chunks = []
      const released = held
      held = chunk
      return released
    },
    isFinal: () => false,
    isWhole: () => true,
    rest: () => held,
    result: () => readAnswer(Buffer.concat(chunks).toString()),
  }
}

/**
 * Lets an event stream through event by event. With `withholdsUsage` the extra usage event, which the client did not ask for, stays here.
 * Text is handled as latin1, one character a byte, so that every byte goes out as it came in.
 */
export function inspectEvents(withholdsUsage: boolean): Inspector {
  const seen: Inspected = { model: undefined, counts: undefined }
  let pending = ''
  let isDone = false

  function passes(event: string): boolean {
    const data = dataOf(event)
    if (data === '[DONE]') isDone = true
    if (seen.model !== undefined && !data.includes('"usage"')) return true
    const { model, counts, isUsageOnly } = readEvent(data)
    seen.model ??= model
    if (counts === undefined) return true
    seen.counts = counts
    return !(withholdsUsage && isUsageOnly)
  }

  return {
    take: (chunk) => {
      pending += Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')
      let released = ''
      for (;;) {
        const boundary = eventEnd.exec(pending)
        if (boundary === null) break
        const end = boundary.index + boundary[0].length
        const event = pending.slice(0, end)
        pending = pending.slice(end)
        if (passes(event)) released += event
      }
      if (pending.length > upstreamEventBytesInspectedMax) {
        released += pending
        pending = ''
      }
      return Buffer.from(released, 'latin1')
    },
    isFinal: () => isDone,
    isWhole: () => isDone,
    rest: () => Buffer.from(pending === '' || passes(pending) ? pending : '', 'latin1'),
    result: () => seen,
  }
}

function dataOf(event: string): string {
  const lines = event.split(/\r\n|\n|\r/).filter((line) => line.startsWith('data:'))
  return lines.map((line) => line.slice('data:'.length).trim()).join('\n')
}

function readEvent(data: string): Inspected & { isUsageOnly: boolean } {
  const isUsageOnly = /"choices"\s*:\s*\[\s*\]/.test(data)
  return { ...readAnswer(data), isUsageOnly }
}

function readAnswer(text: string): Inspected {
  if (!text.trimStart().startsWith('{')) return { model: undefined, counts: undefined }
  try {
    const { model, usage } = JSON.parse(text) as { model?: unknown; usage?: unknown }
    return { model: typeof model === 'string' ? model : undefined, counts: readCounts(usage) }
  } catch {
    return { model: undefined, counts: undefined }
  }
}

function readCounts(usage: unknown): TokenCounts | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined
  const { prompt_tokens, completion_tokens, total_tokens } = usage as Record<string, unknown>
  const counts = {
    promptTokens: countOf(prompt_tokens),
    completionTokens: countOf(completion_tokens),
    totalTokens: countOf(total_tokens),
  }
  return Object.values(counts).every((count) => count === null) ? undefined : counts
}

function countOf(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null
}
