// The table of chat-completions parameters (reference: Preset parameters): the ones that a preset stores and the ones that it only checks.
import { sessionIdCharactersMax, stopSequencesMax, topLogprobsMax } from '../../limits.ts'
import {
  flag,
  freeObject,
  integer,
  list,
  number,
  object,
  oneOf,
  record,
  type Shape,
  text,
  textOr,
  variants,
} from './check.ts'
import { messages, textOrList } from './messages.ts'
import {
  cacheControl,
  debug,
  effort,
  jsonSchemaFormat,
  metadata,
  modelName,
  models,
  promptCacheOptions,
  provider,
  reasoningShape,
  serviceTiers,
  stopServerToolsWhen,
  trace,
} from './parameter-shapes.ts'
import { plugins } from './plugins.ts'
import { toolChoice, tools } from './tools.ts'
import type { Check } from './validation.ts'

const responseFormats = {
  text: {},
  json_object: {},
  json_schema: { json_schema: { required: object(jsonSchemaFormat) } },
  grammar: { grammar: { required: text() } },
  python: {},
} satisfies Record<string, Shape>

/** The parameters that a preset stores, in the order in which problems are reported. One without a bound in the reference has none here. */
export const keptParameters = {
  model: modelName,
  models,
  temperature: number({ min: 0, max: 2 }),
  top_p: number({ min: 0, max: 1 }),
  top_k: integer(),
  top_a: number(),
  min_p: number(),
  frequency_penalty: number({ min: -2, max: 2 }),
  presence_penalty: number({ min: -2, max: 2 }),
  repetition_penalty: number(),
  max_tokens: integer(),
  max_completion_tokens: integer(),
  stop: textOr(list(text(), { max: stopSequencesMax }), `a list of at most ${stopSequencesMax} texts`),
  seed: integer(),
  logit_bias: record(number()),
  logprobs: flag,
  top_logprobs: integer({ min: 0, max: topLogprobsMax }),
  response_format: variants('type', responseFormats),
  tools,
  tool_choice: toolChoice,
  parallel_tool_calls: flag,
  reasoning: object(reasoningShape),
  reasoning_effort: effort,
  provider,
  route: oneOf('fallback', 'sort'),
  plugins,
  modalities: list(oneOf('text', 'image', 'audio')),
  image_config: freeObject,
  cache_control: cacheControl,
  prompt_cache_options: promptCacheOptions,
  service_tier: oneOf(...serviceTiers),
  stop_server_tools_when: stopServerToolsWhen,
} satisfies Record<string, Check>

/** The parameters of a single request: validated but not stored. */
export const passingParameters = {
  messages: { required: messages },
  stream: flag,
  stream_options: object({ include_usage: flag }),
  prompt: textOrList,
  input: textOrList,
  prediction: object({
    type: { required: oneOf('content') },
    content: {
      required: textOr(list(variants('type', { text: { text: { required: text() } } })), 'a list of text parts'),
    },
  }),
  debug,
  session_id: text({ max: sessionIdCharactersMax }),
  user: text(),
  trace,
  metadata,
  prompt_cache_key: text(),
} satisfies Shape

export type ConfigKey = keyof typeof keptParameters

/** The stored keys, in the order of the manual. */
export const configKeys = Object.keys(keptParameters) as ConfigKey[]
