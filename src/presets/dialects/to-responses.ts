// Translates a preset's config to the fields of an OpenAI Responses body, without the settings that it lacks.
import { type Fields, isObject, memberOf, omitUndefined, pick } from '../schema/fields.ts'
import { serverToolShapes } from '../schema/tools.ts'
import { sharedNames } from './from-responses.ts'

/** The fields of a `/responses` body for a config. An older release may have written it: settings of an unexpected form are left out. */
export function responsesFields(config: Fields): Fields {
  const get = (name: string) => memberOf(config, name)
  const format = textFormat(get('response_format'))
  const tools = get('tools')
  const effort = get('reasoning_effort')
  const reasoning = get('reasoning')
  return omitUndefined({
    ...pick(config, sharedNames),
    reasoning: effort === undefined ? reasoning : { ...(isObject(reasoning) ? reasoning : {}), effort },
    max_output_tokens: get('max_completion_tokens') ?? get('max_tokens'),
    text: format && { format },
    tools: Array.isArray(tools) ? tools.filter(isObject).map(translateTool) : undefined,
    tool_choice: toolChoice(get('tool_choice')),
    service_tier: get('service_tier'),
  })
}

/** Server tools of chat completions have the same types here. */
function translateTool(tool: Fields): Fields {
  if (tool.type !== 'function' || !isObject(tool.function)) return tool
  return { type: 'function', ...pick(tool.function, ['name', 'description', 'parameters', 'strict']) }
}

/** A choice among allowed tools has a different form here and is left out. */
function toolChoice(choice: unknown): unknown {
  if (!isObject(choice)) return choice
  if (choice.type === 'function')
    return isObject(choice.function) ? { type: 'function', name: choice.function.name } : undefined
  return Object.hasOwn(serverToolShapes, choice.type as string) ? choice : undefined
}

function textFormat(format: unknown): Fields | undefined {
  if (!isObject(format)) return undefined
  const { type, json_schema: named } = format
  if (type === 'text' || type === 'json_object') return { type }
  // The Responses API requires a schema in this format.
  if (type !== 'json_schema' || !isObject(named) || !isObject(named.schema)) return undefined
  return { type, ...pick(named, ['name', 'description', 'schema', 'strict']) }
}
