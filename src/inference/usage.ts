// Finds the token counts in what an upstream answers, as JSON or as an event stream, in the words of chat completions, responses, messages
// and embeddings. Pure: bytes in, bytes and counts out.
import {
  answerDollarsMax,
  countMax,
  nanodollarsPerDollar,
  upstreamAnswerBytesInspectedMax,
  upstreamAnswerHeadBytesInspectedMax,
  upstreamEventBytesInspectedMax,
} from '../limits.ts'

export type TokenCounts = {
  promptTokens: number | null
  completionTokens: number | null
  totalTokens: number | null
  cachedTokens: number | null
  reasoningTokens: number | null
  /** What the upstream itself says that it costs. */
  costNanodollars: number | null
}

/** What is known of an answer once it has gone through. `counts` is undefined when the upstream sent no usage. */
export type Inspected = { model: string | undefined; counts: TokenCounts | undefined }

export type Inspector = {
  /** Takes a chunk and gives the bytes that may go to the client now. */
  take: (chunk: Uint8Array) => Uint8Array
  /** Whether the client may see the answer as finished when it gets the bytes in hand; they wait for the ledger. */
  isFinal: () => boolean
  /** Whether the caller may have all of its answer, so that only the usage is missing: a piece of it is complete. */
  isUsageDue: () => boolean
  /** Whether the upstream, having ended, has said all: of an event stream its last event tells, since a cut connection ends it as well. */
  isWhole: () => boolean
  /** The bytes that are still held back when the upstream has ended. */
  rest: () => Uint8Array
  result: () => Inspected
}

type Fields = Record<string, unknown>

const nothing = new Uint8Array(0)
const [lineFeed, carriageReturn] = [0x0a, 0x0d]
/** An empty line after a line; the two may end differently. Whether a last \r is an end of its own only the next byte tells. */
const eventEnd = /(?:\r\n|\n|\r(?!\n|$)){2}/g
/** What ends a stream of responses or of messages; one of chat completions ends with [DONE]. */
const finalTypes = ['response.completed', 'response.incomplete', 'response.failed', 'message_stop']
/** What ends a piece of content in a stream of responses or of messages; the usage follows. */
const pieceEndTypes = [
  'response.output_text.done',
  'response.content_part.done',
  'response.output_item.done',
  'content_block_stop',
]
const finishing = /"finish_reason"\s*:\s*"|response\.(?:output_text|content_part|output_item)\.done|content_block_stop/
/** An event without any of these tells nothing once the model is known. */
const telling = new RegExp(
  `"usage"|\\[DONE\\]|response\\.(?:completed|incomplete|failed)|message_stop|${finishing.source}`,
)
/** A choice, its delta or logprobs, and a function call in the delta. */
const choiceLevels = 3
/** Good for what is ASCII, whatever stands around it. */
const decoder = new TextDecoder('latin1')

/**
 * Lets all but the newest chunk of a JSON answer through; that one waits until the usage is recorded. Of an answer too long to be kept the
 * end is, where the usage stands, and the beginning, where llama.cpp writes that of embeddings.
 */
export function inspectJson(): Inspector {
  let held: Uint8Array = nothing
  const chunks: Uint8Array[] = []
  let length = 0
  let head: Uint8Array = nothing
  const isLong = () => length - (chunks[0]?.byteLength ?? 0) >= upstreamAnswerBytesInspectedMax
  return {
    take: (chunk) => {
      length += chunk.byteLength
      chunks.push(chunk)
      while (isLong()) {
        const gone = chunks.shift() ?? nothing
        length -= gone.byteLength
        const wanted = upstreamAnswerHeadBytesInspectedMax - head.byteLength
        if (wanted > 0) head = Buffer.concat([head, gone.subarray(0, wanted)])
      }
      const released = held
      held = chunk
      return released
    },
    isFinal: () => false,
    isUsageDue: () => false,
    isWhole: () => true,
    rest: () => held,
    result: () => {
      const text = Buffer.concat(chunks).toString()
      if (head.byteLength > 0) {
        const beginning = Buffer.from(head).toString()
        const usage = usageAt(text, text.lastIndexOf('"usage"')) ?? usageAt(beginning, beginning.indexOf('"usage"'))
        return { model: undefined, counts: countsOf(usage) }
      }
      const answer = parseObject(text)
      return { model: modelOf(answer), counts: countsOf(usageOf(answer)) }
    },
  }
}

/**
 * Lets an event stream through event by event. With `withholdsUsage` the extra usage event, which the client did not ask for, stays here.
 * Text is handled as latin1, one character a byte, so that every byte goes out as it came in.
 */
export function inspectEvents(withholdsUsage: boolean): Inspector {
  /** What the events have said of the usage, the later ones over the earlier. */
  const usage: Fields = {}
  let hasFinishedPiece = false
  let hasLastUsage = false
  let model: string | undefined
  let pending = ''
  let isDone = false

  function passes(event: string): boolean {
    const data = dataOf(event)
    if (data === '[DONE]') isDone = true
    const mayEnd = finalTypes.some((type) => data.includes(type))
    if (model !== undefined && !mayEnd && !data.includes('"usage"') && !finishing.test(data)) return true
    const answer = parseObject(data)
    if (mayEnd && finalTypes.includes(String(answer.type))) isDone = true
    model ??= modelOf(answer)
    hasFinishedPiece ||= isPieceEnd(answer)
    const told = usageOf(answer)
    if (told === undefined) return true
    hasLastUsage ||= answer.type !== 'message_start' && countsOf(told) !== undefined
    Object.assign(usage, withoutNulls(told))
    const isUsageOnly = Array.isArray(answer.choices) && answer.choices.every(isChoiceEmpty)
    return !(withholdsUsage && isUsageOnly)
  }

  /** Most chunks are whole events with a few words of an answer: they go on as they are. */
  function tellsNothing(chunk: Uint8Array): boolean {
    if (pending !== '' || model === undefined || !endsEvent(chunk)) return false
    return !telling.test(decoder.decode(chunk))
  }

  return {
    take: (chunk) => {
      if (tellsNothing(chunk)) return chunk
      // What was looked through before holds no end, but for a line end or two that may be the first half of one.
      eventEnd.lastIndex = Math.max(0, pending.length - 3)
      pending += Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')
      let released = ''
      for (let boundary = eventEnd.exec(pending); boundary !== null; boundary = eventEnd.exec(pending)) {
        const event = pending.slice(0, eventEnd.lastIndex)
        pending = pending.slice(eventEnd.lastIndex)
        eventEnd.lastIndex = 0
        if (passes(event)) released += event
      }
      if (pending.length > upstreamEventBytesInspectedMax) {
        released += pending
        pending = ''
      }
      return Buffer.from(released, 'latin1')
    },
    isFinal: () => isDone,
    isUsageDue: () => hasFinishedPiece && !hasLastUsage && !isDone,
    isWhole: () => isDone,
    rest: () => Buffer.from(pending === '' || passes(pending) ? pending : '', 'latin1'),
    result: () => ({ model, counts: countsOf(usage) }),
  }
}

/** Whether the last bytes are an empty line, by the two line ends in use. */
function endsEvent(chunk: Uint8Array): boolean {
  const { length } = chunk
  const last = chunk[length - 1] === lineFeed
  return (
    last && (chunk[length - 2] === lineFeed || (chunk[length - 2] === carriageReturn && chunk[length - 3] === lineFeed))
  )
}

/** The usage that stands here in a piece of a JSON text. Within a text its quotes would be escaped. */
function usageAt(text: string, at: number): Fields | undefined {
  const start = at < 0 ? at : text.indexOf('{', at)
  // It holds numbers and objects of numbers; what is longer is something else.
  for (
    let end = text.indexOf('}', start);
    start > 0 && end > 0 && end - start < 10_000;
    end = text.indexOf('}', end + 1)
  ) {
    const usage = parseObject(text.slice(start, end + 1))
    if (Object.keys(usage).length > 0) return usage
  }
  return undefined
}

function dataOf(event: string): string {
  // A byte order mark may stand before the first line; it is three characters here.
  const lines = event
    .replace(/^ï»¿/, '')
    .split(/\r\n|\n|\r/)
    .filter((line) => line.startsWith('data:'))
  return lines.map((line) => line.slice('data:'.length).trim()).join('\n')
}

function parseObject(text: string): Fields {
  // A byte order mark counts as white space here, and not when it is parsed.
  const trimmed = text.trimStart()
  if (!trimmed.startsWith('{')) return {}
  try {
    return JSON.parse(trimmed) as Fields
  } catch {
    return {}
  }
}

/** Responses tell within `response`, the first event of messages within `message`, all others at the top. */
function within({ response, message }: Fields): Fields {
  const inner = response ?? message
  return isObject(inner) ? inner : {}
}

function modelOf(answer: Fields): string | undefined {
  const model = answer.model ?? within(answer).model
  return typeof model === 'string' ? model : undefined
}

function usageOf(answer: Fields): Fields | undefined {
  const usage = answer.usage ?? within(answer).usage
  return isObject(usage) ? usage : undefined
}

/** Whether a choice, or a piece of content, ends here. How many there will be only the upstream knows. */
function isPieceEnd({ type, choices }: Fields): boolean {
  if (pieceEndTypes.includes(String(type))) return true
  return (
    Array.isArray(choices) && choices.some((choice) => isObject(choice) && typeof choice.finish_reason === 'string')
  )
}

/** LiteLLM's proxy sends the usage beside a choice that holds nothing but its index. */
function isChoiceEmpty(choice: unknown): boolean {
  return isObject(choice) && isEmpty({ ...choice, index: null }, choiceLevels)
}

function isEmpty(value: unknown, levels: number): boolean {
  if (Array.isArray(value)) return value.length === 0
  if (isObject(value)) return levels > 0 && Object.values(value).every((member) => isEmpty(member, levels - 1))
  return value === null || value === ''
}

function withoutNulls(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}

/** Undefined when not a single count is one. */
function countsOf(usage: Fields | undefined): TokenCounts | undefined {
  if (usage === undefined) return undefined
  const promptTokens = countOf(usage.prompt_tokens) ?? inputOf(usage)
  const completionTokens = countOf(usage.completion_tokens) ?? countOf(usage.output_tokens)
  const sum = promptTokens === null || completionTokens === null ? null : promptTokens + completionTokens
  const totalTokens = countOf(usage.total_tokens) ?? countOf(sum)
  const costNanodollars = moneyOf(usage.cost)
  const known = [promptTokens, completionTokens, totalTokens, costNanodollars]
  if (known.every((value) => value === null)) return undefined
  const promptDetails = detailsOf(usage.prompt_tokens_details ?? usage.input_tokens_details)
  const completionDetails = detailsOf(usage.completion_tokens_details ?? usage.output_tokens_details)
  return {
    promptTokens,
    completionTokens,
    totalTokens,
    cachedTokens: countOf(promptDetails.cached_tokens) ?? countOf(usage.cache_read_input_tokens),
    reasoningTokens: countOf(completionDetails.reasoning_tokens),
    costNanodollars,
  }
}

/** Messages count what was read from a cache or written to it apart from the rest of the input. */
function inputOf({ input_tokens, cache_creation_input_tokens, cache_read_input_tokens }: Fields): number | null {
  const input = countOf(input_tokens)
  if (input === null) return null
  return countOf(input + (countOf(cache_creation_input_tokens) ?? 0) + (countOf(cache_read_input_tokens) ?? 0))
}

function detailsOf(value: unknown): Fields {
  return isObject(value) ? value : {}
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}

function countOf(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= countMax
    ? (value as number)
    : null
}

/** Dollars as whole nanodollars; what no answer costs is a mistake of the upstream. */
function moneyOf(value: unknown): number | null {
  if (typeof value !== 'number' || !(value >= 0 && value <= answerDollarsMax)) return null
  return Math.round(value * nanodollarsPerDollar)
}
