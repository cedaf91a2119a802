// Translates a preset's config to the fields of an Anthropic body, without the settings that it lacks.
import { type Fields, isObject, memberOf, omitUndefined } from '../schema/fields.ts'

const serverTools = [
  'openrouter:bash',
  'openrouter:datetime',
  'openrouter:experimental__search_models',
  'openrouter:image_generation',
  'openrouter:web_fetch',
  'openrouter:web_search',
]

/** The fields of a `/messages` body for a config. An older release may have written it: settings of an unexpected form are left out. */
export function messagesFields(config: Fields): Fields {
  const get = (name: string) => memberOf(config, name)
  const stop = get('stop')
  return omitUndefined({
    model: get('model'),
    models: get('models'),
    temperature: get('temperature'),
    top_p: get('top_p'),
    top_k: get('top_k'),
    max_tokens: get('max_completion_tokens') ?? get('max_tokens'),
    stop_sequences: typeof stop === 'string' ? [stop] : stop,
    tools: translateTools(get('tools')),
    tool_choice: toolChoice(get('tool_choice'), get('parallel_tool_calls')),
    ...reasoningFields(get('reasoning'), get('reasoning_effort'), get('response_format')),
    provider: get('provider'),
    plugins: get('plugins'),
    cache_control: get('cache_control'),
    service_tier: serviceTier(get('service_tier')),
    stop_server_tools_when: get('stop_server_tools_when'),
  })
}

function translateTools(tools: unknown): Fields[] | undefined {
  if (!Array.isArray(tools)) return undefined
  const translated = tools.filter(isObject).map(translateTool)
  const known = translated.filter((tool) => tool !== undefined)
  return known.length === 0 ? undefined : known
}

function translateTool(tool: Fields): Fields | undefined {
  if (tool.type !== 'function') return serverTools.includes(tool.type as string) ? tool : undefined
  if (!isObject(tool.function)) return undefined
  const { name, description, parameters } = tool.function
  return omitUndefined({
    name,
    description: description ?? undefined,
    input_schema: parameters ?? { type: 'object', properties: {} },
    cache_control: memberOf(tool, 'cache_control'),
  })
}

function toolChoice(choice: unknown, parallel: unknown): Fields | undefined {
  const chosen = chosenTool(choice)
  if (typeof parallel !== 'boolean' || chosen?.type === 'none') return chosen
  return { ...(chosen ?? { type: 'auto' }), disable_parallel_tool_use: !parallel }
}

function chosenTool(choice: unknown): Fields | undefined {
  if (choice === 'auto' || choice === 'none') return { type: choice }
  if (choice === 'required') return { type: 'any' }
  if (!isObject(choice) || choice.type !== 'function' || !isObject(choice.function)) return undefined
  return { type: 'tool', name: choice.function.name }
}

/** `thinking` and `output_config`, which express reasoning, its effort and a JSON schema. */
function reasoningFields(reasoning: unknown, shorthand: unknown, format: unknown): Fields {
  const { effort: long, enabled, max_tokens: budget } = isObject(reasoning) ? reasoning : {}
  const effort = shorthand ?? long ?? undefined
  const output = omitUndefined({
    effort: effort === 'none' ? undefined : effort === 'minimal' ? 'low' : effort,
    format: jsonSchema(format),
  })
  return {
    thinking: thinking(enabled, effort, budget),
    output_config: Object.keys(output).length === 0 ? undefined : output,
  }
}

function thinking(enabled: unknown, effort: unknown, budget: unknown): Fields | undefined {
  if (enabled === false || effort === 'none') return { type: 'disabled' }
  if (typeof budget === 'number') return { type: 'enabled', budget_tokens: budget }
  return enabled === true ? { type: 'adaptive' } : undefined
}

function jsonSchema(format: unknown): Fields | undefined {
  if (!isObject(format) || format.type !== 'json_schema') return undefined
  const { json_schema: named } = format
  return isObject(named) && isObject(named.schema) ? { type: 'json_schema', schema: named.schema } : undefined
}

/** Anthropic has no name for the other tiers. */
function serviceTier(tier: unknown): unknown {
  if (tier === 'default') return 'standard_only'
  return tier === 'auto' ? tier : undefined
}
