// The Anthropic body of `/presets/{slug}/messages`: its parameters and their rules, and their names in a preset's config.
import { sessionIdCharactersMax, stopSequencesMax } from '../../limits.ts'
import {
  anything,
  flag,
  freeObject,
  integer,
  list,
  object,
  oneOf,
  record,
  type Shape,
  text,
  textOr,
  variants,
} from '../schema/check.ts'
import { type Fields, memberOf, omitUndefined } from '../schema/fields.ts'
import { textsOf } from '../schema/messages.ts'
import { cacheControl, serviceTiers, trace } from '../schema/parameter-shapes.ts'
import { keptParameters } from '../schema/parameters.ts'
import { keptTools, serverToolShapes } from '../schema/tools.ts'
import { type Problem, problemsOf } from '../schema/validation.ts'

const { model, models, temperature, top_p, top_k, plugins, provider, stop_server_tools_when } = keptParameters

const textBlock = variants('type', { text: { text: { required: text() }, cache_control: cacheControl } })
/** Blocks of 16 types; a preset stores none of them. */
const content = textOr(list(object({ type: { required: text() } })), 'a list of blocks')
const message = { content: { required: content } }

const customTool = {
  name: { required: text({ min: 1 }) },
  description: text(),
  input_schema: { required: record(anything) },
  cache_control: cacheControl,
} satisfies Shape

/** A tool without a type is a custom one. Any type is valid, as in the official client; a preset stores those that chat completions know. */
const tool = variants(
  'type',
  { custom: customTool, ...serverToolShapes },
  { otherwise: { type: text(), name: text() }, absent: 'custom' },
)

const choiceAmongTools = { disable_parallel_tool_use: flag }

export const messagesBody = object({
  model,
  models,
  max_tokens: integer(),
  system: textOr(list(textBlock), 'a list of text blocks'),
  messages: list(variants('role', { user: message, assistant: message, system: message }), { min: 1 }),
  temperature,
  top_p,
  top_k,
  stop_sequences: list(text(), { max: stopSequencesMax }),
  tools: list(tool),
  tool_choice: variants('type', {
    auto: choiceAmongTools,
    any: choiceAmongTools,
    none: {},
    tool: { ...choiceAmongTools, name: { required: text({ min: 1 }) } },
  }),
  thinking: variants('type', { enabled: { budget_tokens: { required: integer() } }, disabled: {}, adaptive: {} }),
  output_config: object({
    effort: oneOf('low', 'medium', 'high', 'xhigh', 'max'),
    format: variants('type', { json_schema: { schema: { required: record(anything) } } }),
  }),
  service_tier: oneOf('standard_only', ...serviceTiers),
  plugins,
  provider,
  stop_server_tools_when,
  cache_control: cacheControl,
  // Parameters of a single request, and those without a stored key (reference: Preset parameters).
  stream: flag,
  metadata: object({ user_id: text() }),
  session_id: text({ max: sessionIdCharactersMax }),
  user: text(),
  trace,
  speed: text(),
  context_management: freeObject,
  fallbacks: list(object({ model: { required: text() } })),
  safeguards: list(freeObject),
})

/** The problems of an Anthropic body, ten at most. Stop sequences and sampling have the bounds of chat completions (reference: Preset parameters). */
export function messagesBodyProblems(fields: Fields): Problem[] {
  return problemsOf(fields, messagesBody)
}

/** The texts of the top-level `system` (reference: System prompt). */
export function messagesSystemTexts(fields: Fields): string[] {
  return textsOf(fields.system)
}

/**
 * A valid Anthropic body in the stored keys (reference: Preset parameters). `max_tokens` keeps its name, which is Anthropic's own. Tools that
 * chat completions do not know are left out.
 */
export function messagesConfig(fields: Fields): Fields {
  const get = (name: string) => memberOf(fields, name)
  const tools = (get('tools') as Fields[] | undefined)?.map(chatTool).filter((tool) => tool !== undefined)
  const choice = get('tool_choice') as Fields | undefined
  const parallel = choice?.disable_parallel_tool_use
  const format = memberOf((get('output_config') ?? {}) as Fields, 'format') as Fields | undefined
  return omitUndefined({
    model: get('model'),
    models: get('models'),
    temperature: get('temperature'),
    top_p: get('top_p'),
    top_k: get('top_k'),
    max_tokens: get('max_tokens'),
    stop: get('stop_sequences'),
    response_format: format && { type: 'json_schema', json_schema: { name: 'output', schema: format.schema } },
    ...keptTools({
      tools,
      tool_choice: choice && chatToolChoice(choice),
      parallel_tool_calls: typeof parallel === 'boolean' ? !parallel : undefined,
    }),
    reasoning: reasoning(get('thinking') as Fields | undefined, (get('output_config') ?? {}) as Fields),
    provider: get('provider'),
    plugins: get('plugins'),
    cache_control: get('cache_control'),
    service_tier: serviceTier(get('service_tier')),
    stop_server_tools_when: get('stop_server_tools_when'),
  })
}

function chatTool(tool: Fields): Fields | undefined {
  const type = memberOf(tool, 'type') ?? 'custom'
  if (type !== 'custom') return Object.hasOwn(serverToolShapes, type as string) ? tool : undefined
  const { name, input_schema: parameters } = tool
  const description = memberOf(tool, 'description')
  return omitUndefined({
    type: 'function',
    function: omitUndefined({ name, description, parameters }),
    cache_control: memberOf(tool, 'cache_control'),
  })
}

function chatToolChoice({ type, name }: Fields): unknown {
  if (type === 'tool') return { type: 'function', function: { name } }
  return type === 'any' ? 'required' : type
}

function reasoning(thinking: Fields | undefined, outputConfig: Fields): Fields | undefined {
  const found = omitUndefined({
    effort: memberOf(outputConfig, 'effort'),
    enabled: thinking && thinking.type !== 'disabled',
    max_tokens: thinking?.type === 'enabled' ? thinking.budget_tokens : undefined,
  })
  return Object.keys(found).length === 0 ? undefined : found
}

function serviceTier(tier: unknown): unknown {
  if (tier === 'standard_only') return 'default'
  return tier === 'fast' ? 'priority' : tier
}
