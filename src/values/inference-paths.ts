// The inference paths, one row each, with everything that is particular to a path. The codecs of their bodies, presets and errors are
// tables by the names that stand here, each in the room that reads or writes them.

/**
 * `takesStreamOptions`: a stream reports its usage only if `stream_options` asks for it. `generates`: the response is a completion; otherwise
 * all tokens belong to the prompt. `takesBackground`: the work can outlive its request. `errors`: the form in which clients expect errors.
 */
export type InferencePath = {
  endpoint: string
  takesStreamOptions: boolean
  generates: boolean
  takesBackground: boolean
  errors: 'chat' | 'messages' | 'responses'
}

const usual = { takesStreamOptions: false, generates: true, takesBackground: false, errors: 'chat' } as const

/** By what presets, commands and operations call the path. */
export const inferencePaths = {
  chat: { ...usual, endpoint: '/chat/completions', takesStreamOptions: true },
  completions: { ...usual, endpoint: '/completions', takesStreamOptions: true },
  responses: { ...usual, endpoint: '/responses', takesBackground: true, errors: 'responses' },
  messages: { ...usual, endpoint: '/messages', errors: 'messages' },
  embeddings: { ...usual, endpoint: '/embeddings', generates: false },
  rerank: { ...usual, endpoint: '/rerank', generates: false },
} as const satisfies Record<string, InferencePath>

export type Target = keyof typeof inferencePaths
export type InferenceEndpoint = (typeof inferencePaths)[Target]['endpoint']
