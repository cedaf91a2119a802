// What a response says of the model and the tokens used, in the terms of chat completions, responses, messages and
// embeddings. Pure.
import { countMax, nanodollarsPerDollar, responseDollarsMax } from '../limits.ts'

type Fields = Record<string, unknown>

export type TokenCounts = {
  promptTokens: number | null
  completionTokens: number | null
  totalTokens: number | null
  cachedTokens: number | null
  reasoningTokens: number | null
  /** The cost that the upstream itself reports. */
  costNanodollars: number | null
}

/** What is known of a response once it has passed. `counts` is undefined when the upstream sent no usage. */
export type Inspection = {
  model: string | undefined
  /** The id of the response. */
  responseId?: string | undefined
  /** The length of the audio that was read. */
  audioSeconds?: number | undefined
  counts: TokenCounts | undefined
  /** How the server that responded calls its error. */
  error?: string | undefined
  /** Of a stream whose usage has not come: the least number of tokens in the content that has passed. */
  tokensSeen?: number | undefined
}

/** Counts of a stream that did not end: the upstream's, raised to what was seen. */
export function raiseToSeen(counts: TokenCounts | undefined, tokensSeen: number): TokenCounts {
  const promptTokens = counts?.promptTokens ?? null
  const completionTokens = Math.max(counts?.completionTokens ?? 0, tokensSeen)
  const totalTokens = Math.max(counts?.totalTokens ?? 0, (promptTokens ?? 0) + completionTokens)
  const unknown = { cachedTokens: null, reasoningTokens: null, costNanodollars: null }
  return { ...unknown, ...counts, promptTokens, completionTokens, totalTokens }
}

/** Watches a response on its way to the client: chunks in, chunks out. */
export type Inspector = {
  /** Takes a chunk and returns the bytes that may go to the client now. */
  take: (chunk: Uint8Array) => Uint8Array
  /**
   * Whether the client may take the response for finished once it has the bytes returned last; they wait for the
   * ledger.
   */
  isFinal: () => boolean
  /**
   * Whether the content may be complete, so that only the usage is missing: a choice or a piece of content has ended.
   * The content of a JSON response is complete when it begins.
   */
  isUsageDue: () => boolean
  /**
   * Whether the upstream, having ended, has sent everything. A cut connection ends an event stream too, so its last
   * event decides.
   */
  isWhole: () => boolean
  /** The bytes that are still held back when the upstream has ended. */
  rest: () => Uint8Array
  result: () => Inspection
}

/** An empty object where the text is not a JSON object. */
export function parseObject(text: string): Fields {
  // A byte order mark is white space to trimStart, and an error to JSON.parse.
  const trimmed = text.trimStart()
  if (!trimmed.startsWith('{')) return {}
  try {
    return JSON.parse(trimmed) as Fields
  } catch {
    return {}
  }
}

/**
 * Responses nest their fields in `response`, the first event of messages in `message`; all others have them at the top.
 */
function within({ response, message }: Fields): Fields {
  const inner = response ?? message
  return isObject(inner) ? inner : {}
}

export function modelOf(response: Fields): string | undefined {
  const model = response.model ?? within(response).model
  return typeof model === 'string' ? model : undefined
}

/** Words alone: messages can have anything, such as a part of a prompt. */
const errorWord = /^[\w.:-]{1,64}$/

/**
 * The narrowest word of an error: its code, as OpenAI and others have it, its type, or that of another Latchkey. A code that is a number is the
 * status. vLLM had the members at the top.
 */
export function errorWordOf(response: Fields): string | undefined {
  const error = isObject(response.error) ? response.error : response.object === 'error' ? response : undefined
  if (error === undefined) return undefined
  const { metadata } = error
  const words = [error.code, error.type, isObject(metadata) ? metadata.error_type : undefined]
  return words.find((word): word is string => typeof word === 'string' && errorWord.test(word) && !/^\d+$/.test(word))
}

export function responseIdOf(response: Fields): string | undefined {
  const id = within(response).id ?? response.id
  return typeof id === 'string' ? id : undefined
}

/** Transcriptions say it in their usage, or, if they are verbose, as a number or text. */
export function audioSecondsOf(response: Fields): number | undefined {
  const sent = usageOf(response)?.seconds ?? response.duration
  const seconds = typeof sent === 'string' && sent !== '' ? Number(sent) : sent
  return typeof seconds === 'number' && seconds >= 0 && seconds <= countMax ? seconds : undefined
}

export function usageOf(response: Fields): Fields | undefined {
  const usage = response.usage ?? within(response).usage
  return isObject(usage) ? usage : undefined
}

/** The counts in a usage object; undefined when there is not one valid count. */
export function countsOf(usage: Fields | undefined): TokenCounts | undefined {
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

/** Messages count cache reads and cache writes separately from the rest of the input. */
function inputOf({ input_tokens, cache_creation_input_tokens, cache_read_input_tokens }: Fields): number | null {
  const input = countOf(input_tokens)
  if (input === null) return null
  return countOf(input + (countOf(cache_creation_input_tokens) ?? 0) + (countOf(cache_read_input_tokens) ?? 0))
}

function detailsOf(value: unknown): Fields {
  return isObject(value) ? value : {}
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}

function countOf(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= countMax
    ? (value as number)
    : null
}

/** Dollars as whole nanodollars. A cost beyond the maximum of a response is a mistake of the upstream. */
function moneyOf(value: unknown): number | null {
  if (typeof value !== 'number' || !(value >= 0 && value <= responseDollarsMax)) return null
  return Math.round(value * nanodollarsPerDollar)
}
