// Watches an event stream for its usage, event by event.
import { upstreamTextBytesParsedMax } from '../limits.ts'
import { type LongEvent, openLongEvent } from './long-event.ts'
import { addContent, type SeenContent, tokensOf } from './seen-content.ts'
import {
  audioSecondsOf,
  countsOf,
  type Inspector,
  isObject,
  modelOf,
  parseObject,
  responseIdOf,
  usageOf,
} from './usage.ts'

type Fields = Record<string, unknown>

const [lineFeed, carriageReturn] = [0x0a, 0x0d]
/**
 * An empty line after a line; the two may end differently. Whether a last \r is a complete line end depends on the
 * next byte.
 */
const eventEnd = /(?:\r\n|\n|\r(?!\n|$)){2}/g
/** The events that end a stream of responses or of messages; chat completions end with [DONE]. */
const finalTypes = [
  ...['response.completed', 'response.incomplete', 'response.failed', 'message_stop'],
  ...['transcript.text.done', 'speech.audio.done', 'image_generation.completed', 'image_edit.completed'],
]
/** The events that end a piece of content in a stream of responses or of messages; the usage follows. */
const pieceEndTypes = [
  'response.output_text.done',
  'response.content_part.done',
  'response.output_item.done',
  'content_block_stop',
]
const finishing = /"finish_reason"\s*:\s*"|response\.(?:output_text|content_part|output_item)\.done|content_block_stop/
/** Once the model is known, an event without any of these is of no interest. */
const noteworthy = new RegExp(
  `"usage"|\\[DONE\\]|response\\.(?:completed|incomplete|failed)|message_stop|(?:text|audio)\\.done|image_(?:generation|edit)\\.completed|${finishing.source}`,
)
/** A choice, its delta or logprobs, and a function call in the delta. */
const choiceLevels = 3
/** Right for ASCII, whatever bytes surround it. */
const decoder = new TextDecoder('latin1')

/** What a stream has said so far. */
type Stream = {
  readonly withholdsUsage: boolean
  /** Bytes of an event that has not ended, as latin1. */
  pending: string
  /** An event that is too long to be kept, until it ends. */
  longEvent: LongEvent | undefined
  model: string | undefined
  responseId: string | undefined
  audioSeconds: number | undefined
  /** All usage so far, later members over earlier ones. */
  readonly usage: Fields
  readonly seen: SeenContent
  hasFinishedPiece: boolean
  hasLastUsage: boolean
  isDone: boolean
}

/**
 * Releases an event stream event by event. With `withholdsUsage`, the extra usage event, for which the client did not
 * ask, is dropped. Text is handled as latin1, one character per byte, so that every byte goes out as it came in.
 */
export function inspectEvents({ withholdsUsage }: { withholdsUsage: boolean }): Inspector {
  const stream: Stream = {
    withholdsUsage,
    pending: '',
    longEvent: undefined,
    model: undefined,
    responseId: undefined,
    audioSeconds: undefined,
    usage: {},
    seen: { events: 0, bytes: 0, mark: '' },
    hasFinishedPiece: false,
    hasLastUsage: false,
    isDone: false,
  }
  return {
    take: (chunk) => {
      if (stream.longEvent !== undefined) return takeLongEvent(stream, stream.longEvent, chunk)
      return isOfNoInterest(stream, chunk) ? chunk : takeEvents(stream, chunk)
    },
    isFinal: () => stream.isDone,
    isUsageDue: () => stream.hasFinishedPiece && !stream.hasLastUsage && !stream.isDone,
    isWhole: () => stream.isDone,
    rest: () => {
      const { pending } = stream
      endLongEvent(stream)
      return Buffer.from(pending === '' || passes(stream, pending) ? pending : '', 'latin1')
    },
    result: () => {
      endLongEvent(stream)
      const { model, responseId, audioSeconds, usage, seen, hasLastUsage } = stream
      const tokensSeen = hasLastUsage ? undefined : tokensOf(seen)
      return { model, responseId, counts: countsOf(usage), tokensSeen, audioSeconds }
    },
  }
}

/** Most chunks are whole events with a few words of content: they pass unchanged. */
function isOfNoInterest({ pending, model, seen }: Stream, chunk: Uint8Array): boolean {
  if (pending !== '' || model === undefined || !endsEvent(chunk)) return false
  const text = decoder.decode(chunk)
  if (noteworthy.test(text)) return false
  addContent(seen, text)
  return true
}

function takeEvents(stream: Stream, chunk: Uint8Array): Uint8Array {
  // What was searched before holds no end, except one or two line ends that may be the first half of one.
  eventEnd.lastIndex = Math.max(0, stream.pending.length - 3)
  let pending = stream.pending + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')
  let released = ''
  for (let boundary = eventEnd.exec(pending); boundary !== null; boundary = eventEnd.exec(pending)) {
    const event = pending.slice(0, eventEnd.lastIndex)
    pending = pending.slice(eventEnd.lastIndex)
    eventEnd.lastIndex = 0
    if (passes(stream, event)) released += event
  }
  if (pending.length > upstreamTextBytesParsedMax) {
    stream.longEvent = openLongEvent()
    stream.longEvent.take(Buffer.from(pending, 'latin1'))
    released += pending
    pending = ''
  }
  stream.pending = pending
  return Buffer.from(released, 'latin1')
}

/** An event that is too long to be kept goes to the client as it comes, whatever it says. */
function takeLongEvent(stream: Stream, event: LongEvent, chunk: Uint8Array): Uint8Array {
  const end = event.take(chunk)
  if (end === undefined) return chunk
  endLongEvent(stream)
  return Buffer.concat([chunk.subarray(0, end), takeEvents(stream, chunk.subarray(end))])
}

function endLongEvent(stream: Stream): void {
  const response = stream.longEvent?.result()
  stream.longEvent = undefined
  if (response !== undefined) note(stream, response)
}

/** Notes what an event says. Whether it goes to the client. */
function passes(stream: Stream, event: string): boolean {
  const data = dataOf(event)
  addContent(stream.seen, data)
  if (data === '[DONE]') stream.isDone = true
  const mayEnd = finalTypes.some((type) => data.includes(type))
  if (stream.model !== undefined && !mayEnd && !data.includes('"usage"') && !finishing.test(data)) return true
  const response = parseObject(data)
  if (!note(stream, response)) return true
  const isUsageOnly = Array.isArray(response.choices) && response.choices.every(isChoiceEmpty)
  return !(stream.withholdsUsage && isUsageOnly)
}

/** Whether there is usage in it. */
function note(stream: Stream, response: Fields): boolean {
  if (finalTypes.includes(String(response.type))) stream.isDone = true
  stream.model ??= modelOf(response)
  stream.responseId ??= responseIdOf(response)
  stream.audioSeconds ??= audioSecondsOf(response)
  stream.hasFinishedPiece ||= isPieceEnd(response)
  const usage = usageOf(response)
  if (usage === undefined) return false
  stream.hasLastUsage ||= response.type !== 'message_start' && countsOf(usage) !== undefined
  Object.assign(stream.usage, withoutNulls(usage))
  return true
}

/** Whether the last bytes are an empty line, by the two line ends in use. */
function endsEvent(chunk: Uint8Array): boolean {
  const { length } = chunk
  const last = chunk[length - 1] === lineFeed
  return (
    last && (chunk[length - 2] === lineFeed || (chunk[length - 2] === carriageReturn && chunk[length - 3] === lineFeed))
  )
}

function dataOf(event: string): string {
  // The first line may begin with a byte order mark, which is three characters in latin1.
  const lines = event
    .replace(/^ï»¿/, '')
    .split(/\r\n|\n|\r/)
    .filter((line) => line.startsWith('data:'))
  return lines.map((line) => line.slice('data:'.length).trim()).join('\n')
}

/** Whether a choice or a piece of content ends here. Only the upstream knows how many there are. */
function isPieceEnd({ type, choices }: Fields): boolean {
  if (pieceEndTypes.includes(String(type))) return true
  return (
    Array.isArray(choices) && choices.some((choice) => isObject(choice) && typeof choice.finish_reason === 'string')
  )
}

/** LiteLLM's proxy sends the usage with a choice that holds only its index. */
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
