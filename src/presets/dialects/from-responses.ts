// The OpenAI Responses body of `/presets/{slug}/responses`: its parameters and their rules, and their names in a preset's config.
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
  shortOr,
  text,
  textOr,
  variants,
} from '../schema/check.ts'
import { type Fields, memberOf, omitUndefined, pick } from '../schema/fields.ts'
import { jsonSchemaFormat, reasoningShape } from '../schema/parameter-shapes.ts'
import { keptParameters, passingParameters } from '../schema/parameters.ts'
import { functionShape, keptTools, serverToolShapes } from '../schema/tools.ts'
import { type Problem, problemsOf } from '../schema/validation.ts'

/** Parameters with the same name and meaning in a config. */
export const sharedNames = [
  'model',
  'models',
  'temperature',
  'top_p',
  'top_k',
  'frequency_penalty',
  'presence_penalty',
  'top_logprobs',
  'parallel_tool_calls',
  'reasoning',
  'provider',
  'plugins',
  'modalities',
  'image_config',
  'cache_control',
  'prompt_cache_options',
  'stop_server_tools_when',
] as const
const shared = Object.fromEntries(sharedNames.map((name) => [name, keptParameters[name]]))
const { stream, debug, session_id, user, trace, metadata, prompt_cache_key } = passingParameters

/** Types that chat completions do not know: validated but not stored. */
const unknownToChat = [
  'file_search',
  'computer_use_preview',
  'code_interpreter',
  'mcp',
  'image_generation',
  'local_shell',
  'shell',
  'apply_patch',
  'custom',
  'namespace',
  'openrouter:apply_patch',
  'openrouter:shell',
  'openrouter:tool_search',
]

const tool = variants('type', {
  function: functionShape,
  ...serverToolShapes,
  ...Object.fromEntries(unknownToChat.map((type): [string, Shape] => [type, {}])),
})

const toolChoice = shortOr(
  oneOf('none', 'auto', 'required'),
  variants(
    'type',
    { function: { name: { required: text({ min: 1 }) } } },
    { otherwise: { type: { required: text() } } },
  ),
)

export const responsesBody = object({
  ...shared,
  instructions: text(),
  input: textOr(list(freeObject), 'a list of items'),
  max_output_tokens: integer(),
  tools: list(tool),
  tool_choice: toolChoice,
  reasoning: object({ ...reasoningShape, context: text(), mode: text() }),
  text: object({
    format: variants('type', {
      text: {},
      json_object: {},
      json_schema: { ...jsonSchemaFormat, schema: { required: record(anything) } },
    }),
    verbosity: oneOf('low', 'medium', 'high', 'xhigh', 'max'),
  }),
  service_tier: keptParameters.service_tier,
  // Parameters of a single request, and those without a stored key (reference: Preset parameters).
  stream,
  stream_options: freeObject,
  debug,
  session_id,
  user,
  trace,
  metadata,
  prompt_cache_key,
  prompt: object({ id: { required: text() } }),
  background: flag,
  include: list(text()),
  max_tool_calls: integer(),
  previous_response_id: text(),
  safety_identifier: text(),
  store: flag,
  truncation: oneOf('auto', 'disabled'),
})

/** The problems of a Responses body, ten at most. */
export function responsesBodyProblems(fields: Fields): Problem[] {
  return problemsOf(fields, responsesBody)
}

/** `instructions` (reference: System prompt). */
export function responsesSystemTexts({ instructions }: Fields): string[] {
  return typeof instructions === 'string' ? [instructions] : []
}

/**
 * A valid Responses body in the stored keys (reference: Preset parameters). `max_output_tokens` becomes `max_completion_tokens`: both limit
 * output and reasoning together, and `max_tokens` is deprecated. Tools that chat completions do not know are left out.
 */
export function responsesConfig(fields: Fields): Fields {
  const get = (name: string) => memberOf(fields, name)
  const tools = (get('tools') as Fields[] | undefined)?.map(chatTool).filter((tool) => tool !== undefined)
  const tier = get('service_tier')
  const format = memberOf((get('text') ?? {}) as Fields, 'format') as Fields | undefined
  return omitUndefined({
    ...pick(fields, sharedNames),
    max_completion_tokens: get('max_output_tokens'),
    response_format: format && chatFormat(format),
    ...keptTools({
      tools,
      tool_choice: chatToolChoice(get('tool_choice')),
      parallel_tool_calls: get('parallel_tool_calls'),
    }),
    service_tier: tier === 'fast' ? 'priority' : tier,
  })
}

function chatTool(tool: Fields): Fields | undefined {
  if (tool.type !== 'function') return Object.hasOwn(serverToolShapes, tool.type as string) ? tool : undefined
  return { type: 'function', function: pick(tool, ['name', 'description', 'parameters', 'strict']) }
}

function chatToolChoice(choice: unknown): unknown {
  const { type, name } = (typeof choice === 'object' ? choice : {}) as Fields
  if (type === 'function') return { type, function: { name } }
  // A choice that chat completions do not know is not stored.
  return typeof choice === 'string' || Object.hasOwn(serverToolShapes, type as string) ? choice : undefined
}

function chatFormat({ type, ...format }: Fields): Fields {
  if (type !== 'json_schema') return { type }
  const { name, description, schema, strict } = format
  return {
    type,
    json_schema: omitUndefined({ name, description: description ?? undefined, schema, strict: strict ?? undefined }),
  }
}
