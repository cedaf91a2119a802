// The inference paths, one row each, with everything that is particular to a path. The codecs of their bodies, presets and errors are
// tables by the names that stand here, each in the room that reads or writes them.

/** What a price can count in addition to tokens: characters of the input, images, seconds of audio. */
export const units = ['character', 'image', 'audio_second'] as const
export type Unit = (typeof units)[number]

/**
 * `body`: JSON, a form with a file, or none. `takesStreamOptions`: a stream reports its usage only if `stream_options` asks for it.
 * `generates`: the response is a completion; otherwise all tokens belong to the prompt. `takesBackground`: the work can outlive its
 * request. `errors`: the form in which clients expect errors. `isCharged`: what the response says of usage is that of this request.
 * `takesPriority`: vLLM reads `priority` there. `unit`: what is counted in addition to tokens. `storesResponse`: the upstream keeps the response under its id; `ofResponse`: the path names
 * such a response. `besideVersion`: inference servers have the path beside their `/v1`. `query`: parameters that reach the upstream.
 * `reportIn`: which event of a stream has the routing report: the last one, or one more of this object type; undefined where callers get none.
 */
export type InferencePath = {
  method: 'POST' | 'GET' | 'DELETE'
  endpoint: string
  body: 'json' | 'form' | 'none'
  takesStreamOptions: boolean
  generates: boolean
  takesBackground: boolean
  errors: 'chat' | 'messages' | 'responses'
  isCharged: boolean
  takesPriority: boolean
  unit: Unit | undefined
  storesResponse: boolean
  ofResponse: boolean
  besideVersion: boolean
  query: readonly string[]
  reportIn: 'last event' | 'chat.completion.chunk' | 'text_completion' | undefined
}

const usual = {
  method: 'POST',
  body: 'json',
  takesStreamOptions: false,
  generates: true,
  takesBackground: false,
  errors: 'chat',
  isCharged: true,
  takesPriority: true,
  unit: undefined,
  storesResponse: false,
  ofResponse: false,
  besideVersion: false,
  query: [],
  reportIn: undefined,
} as const
const vectors = { ...usual, generates: false } as const
const media = { ...usual, takesPriority: false } as const
const counting = { ...usual, isCharged: false, generates: false, takesPriority: false } as const
const stored = {
  ...usual,
  body: 'none',
  generates: false,
  errors: 'responses',
  isCharged: false,
  takesPriority: false,
  ofResponse: true,
} as const
const response = '/responses/{response}'

/** By what presets, commands and operations call the path. */
export const inferencePaths = {
  chat: { ...usual, endpoint: '/chat/completions', takesStreamOptions: true, reportIn: 'chat.completion.chunk' },
  completions: { ...usual, endpoint: '/completions', takesStreamOptions: true, reportIn: 'text_completion' },
  responses: {
    ...usual,
    endpoint: '/responses',
    takesBackground: true,
    errors: 'responses',
    storesResponse: true,
    reportIn: 'last event',
  },
  messages: { ...usual, endpoint: '/messages', errors: 'messages', takesPriority: false, reportIn: 'last event' },
  embeddings: { ...vectors, endpoint: '/embeddings' },
  rerank: { ...vectors, endpoint: '/rerank' },
  score: { ...vectors, endpoint: '/score' },
  classify: { ...vectors, endpoint: '/classify', besideVersion: true },
  pooling: { ...vectors, endpoint: '/pooling', besideVersion: true },
  speech: { ...media, endpoint: '/audio/speech', unit: 'character' },
  transcriptions: { ...media, endpoint: '/audio/transcriptions', body: 'form', unit: 'audio_second' },
  translations: { ...media, endpoint: '/audio/translations', body: 'form', unit: 'audio_second' },
  images: { ...media, endpoint: '/images/generations', unit: 'image' },
  imageEdits: { ...media, endpoint: '/images/edits', body: 'form', unit: 'image' },
  countTokens: { ...counting, endpoint: '/messages/count_tokens', errors: 'messages' },
  tokenize: { ...counting, endpoint: '/tokenize', besideVersion: true },
  detokenize: { ...counting, endpoint: '/detokenize', besideVersion: true },
  showResponse: { ...stored, method: 'GET', endpoint: response, query: ['include', 'include[]'] },
  deleteResponse: { ...stored, method: 'DELETE', endpoint: response },
  cancelResponse: { ...stored, endpoint: `${response}/cancel` },
  responseItems: {
    ...stored,
    method: 'GET',
    endpoint: `${response}/input_items`,
    query: ['include', 'include[]', 'limit', 'order', 'after', 'before'],
  },
} as const satisfies Record<string, InferencePath>

export type Target = keyof typeof inferencePaths
export type InferenceEndpoint = (typeof inferencePaths)[Target]['endpoint']
/** The paths whose body is JSON: presets complete these. */
export type JsonTarget = {
  [Name in Target]: (typeof inferencePaths)[Name]['body'] extends 'json' ? Name : never
}[Target]

export function isJsonTarget(target: Target): target is JsonTarget {
  return inferencePaths[target].body === 'json'
}
