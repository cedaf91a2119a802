// Watches a JSON response for its usage, and passes any other that is not a stream of events.
import { upstreamTextBytesParsedMax } from '../limits.ts'
import {
  audioSecondsOf,
  countsOf,
  errorWordOf,
  type Inspection,
  type Inspector,
  modelOf,
  parseObject,
  responseIdOf,
  usageOf,
} from './usage.ts'
import { createUsageScanner, type UsageScanner } from './usage-scanner.ts'

type Fields = Record<string, unknown>

/** A response as far as it has passed: its chunks, until it is too long to be kept. */
type PassedBody = { chunks: Uint8Array[]; bytes: number; scanner: UsageScanner | undefined }

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const nothing = new Uint8Array(0)

/** Releases every chunk except the newest, which waits until the usage is recorded. */
export function inspectJson(): Inspector {
  const passed: PassedBody = { chunks: [], bytes: 0, scanner: undefined }
  let held: Uint8Array = nothing
  return {
    take: (chunk) => {
      addChunk(passed, chunk)
      const released = held
      held = chunk
      return released
    },
    isFinal: () => false,
    // An inference server responds in JSON when its work is done. Only the end of the response ends the wait.
    isUsageDue: () => true,
    isWhole: () => true,
    rest: () => held,
    result: () => inspectionOf(read(passed)),
  }
}

/** What `inspectJson` would find in a short response. */
export function inspectWholeJson(bytes: Uint8Array): Inspection {
  return inspectionOf(parseObject(decoder.decode(bytes)))
}

function inspectionOf(response: Fields): Inspection {
  return {
    model: modelOf(response),
    responseId: responseIdOf(response),
    counts: countsOf(usageOf(response)),
    audioSeconds: audioSecondsOf(response),
    error: errorWordOf(response),
  }
}

/** For audio, images and text: the same, without a look at them. Nothing more is known when the client leaves. */
export function inspectNothing(): Inspector {
  let held: Uint8Array = nothing
  return {
    take: (chunk) => {
      const released = held
      held = chunk
      return released
    },
    isFinal: () => false,
    isUsageDue: () => false,
    isWhole: () => true,
    rest: () => held,
    result: () => ({ model: undefined, counts: undefined }),
  }
}

function addChunk(passed: PassedBody, chunk: Uint8Array): void {
  const { chunks, scanner } = passed
  scanner?.take(chunk)
  if (scanner !== undefined) return
  passed.bytes += chunk.byteLength
  chunks.push(chunk)
  if (passed.bytes > upstreamTextBytesParsedMax) scan(passed)
}

/** From here on, only what is found is kept. */
function scan(passed: PassedBody): void {
  const scanner = createUsageScanner()
  for (const chunk of passed.chunks) scanner.take(chunk)
  passed.scanner = scanner
  passed.chunks = []
}

function read({ chunks, scanner }: PassedBody): Fields {
  if (scanner !== undefined) return scanner.result()
  const [first = nothing] = chunks
  return parseObject(decoder.decode(chunks.length > 1 ? Buffer.concat(chunks) : first))
}
