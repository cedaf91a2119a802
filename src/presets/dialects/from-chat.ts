// The chat-completions body that a preset is made of: every parameter (reference: Preset parameters), whether a preset keeps it, and its rule.
import { sessionIdCharactersMax, stopSequencesMax, topLogprobsMax } from '../../limits.ts'
import {
  allOf,
  type Check,
  crossField,
  type Fields,
  flag,
  freeObject,
  integer,
  isObject,
  list,
  memberOf,
  number,
  object,
  oneOf,
  type Problem,
  problemsOf,
  record,
  type Shape,
  text,
  textOr,
  variants,
} from '../schema/check.ts'
import { isInstruction, messages, textOrList, textsOf } from '../schema/messages.ts'
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
} from '../schema/parameters.ts'
import { plugins } from '../schema/plugins.ts'
import { toolChoice, tools } from '../schema/tools.ts'

const responseFormats = {
  text: {},
  json_object: {},
  json_schema: { json_schema: { required: object(jsonSchemaFormat) } },
  grammar: { grammar: { required: text() } },
  python: {},
} satisfies Record<string, Shape>

/** What a preset keeps, in the order in which problems are reported (reference: Preset parameters). No bound there, no bound here. */
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

/** What belongs to one request: checked, then forgotten (reference: Preset parameters). */
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

/** The kept keys, in the order of the manual (reference: Preset parameters). */
export const configKeys = Object.keys(keptParameters) as ConfigKey[]

export const chatBody = allOf(
  object({ ...keptParameters, ...passingParameters }),
  crossField('reasoning_effort', effortsAgree, 'must not differ from reasoning.effort'),
)

/** Everything that is wrong with a chat-completions body, ten problems at most (reference: Preset parameters; Limits). */
export function chatBodyProblems(body: Fields): Problem[] {
  return problemsOf(body, chatBody)
}

/** The kept, non-null fields of a checked chat body, as they were sent; of two names of one service tier, the proper one (reference: Preset parameters). */
export function chatConfig(body: Fields): Fields {
  const config: Fields = {}
  for (const key of configKeys) {
    const value = memberOf(body, key)
    if (value !== undefined) config[key] = key === 'service_tier' && value === 'fast' ? 'priority' : value
  }
  return config
}

function effortsAgree(body: Fields): boolean {
  const shorthand = memberOf(body, 'reasoning_effort')
  const reasoning = memberOf(body, 'reasoning')
  const effort = isObject(reasoning) ? memberOf(reasoning, 'effort') : undefined
  return shorthand === undefined || effort === undefined || shorthand === effort
}

/** The texts of every system and developer message of a checked body, in order (reference: System prompt). */
export function chatSystemTexts(body: Fields): string[] {
  return (body.messages as Fields[]).filter(isInstruction).flatMap(({ content }) => textsOf(content))
}
