// The tools of a chat body: functions and server tools, distinguished by `type` (12 variants; reference: Preset parameters), and the choice among them.
import {
  anything,
  flag,
  integer,
  list,
  named,
  number,
  object,
  oneOf,
  record,
  type Shape,
  shortOr,
  text,
  variants,
} from './check.ts'
import { type Fields, isObject } from './fields.ts'
import { cacheControl, effort, texts } from './parameter-shapes.ts'
import { searchMode, userLocation, xSearch } from './plugins.ts'

const type = { required: text() }
const withParameters = (shape: Shape): Shape => ({ parameters: object(shape) })

const nestedTool = object({ type, parameters: record(anything) })
/** The settings of a tool that calls another model. */
const calledModel = {
  model: text(),
  max_completion_tokens: integer(),
  temperature: number(),
  reasoning: object({ effort, max_tokens: integer() }),
} satisfies Shape

const networkPolicy = variants('type', { disabled: {}, allowlist: { allowed_domains: { required: texts } } })
const container = { file_ids: texts, network_policy: networkPolicy } satisfies Shape

const webSearch = {
  allowed_domains: texts,
  excluded_domains: texts,
  engine: oneOf('native', 'exa', 'parallel', 'firecrawl', 'perplexity', 'auto'),
  mode: searchMode,
  max_characters: integer(),
  max_results: integer(),
  max_total_results: integer(),
  max_uses: integer(),
  search_context_size: oneOf('low', 'medium', 'high'),
  user_location: userLocation,
  x_search: xSearch,
} satisfies Shape
/** The short form of web search, with its settings next to `type`; it has four names. */
const webSearchShorthand = { ...webSearch, parameters: object(webSearch) } satisfies Shape

/** The definition of a tool that the model calls by name. */
export const functionShape = {
  name: { required: text({ min: 1 }) },
  description: text(),
  parameters: record(anything),
  strict: flag,
} satisfies Shape

export const webSearchShorthands = [
  'web_search',
  'web_search_preview',
  'web_search_preview_2025_03_11',
  'web_search_2025_08_26',
] as const

export const serverToolShapes: Record<string, Shape> = {
  'openrouter:advisor': withParameters({
    ...calledModel,
    forward_transcript: flag,
    instructions: text(),
    name: text(),
    stream: flag,
  }),
  'openrouter:bash': withParameters({
    engine: oneOf('auto', 'native', 'openrouter'),
    environment: variants('type', {
      container_auto: container,
      container_reference: { ...container, container_id: { required: text() } },
    }),
  }),
  'openrouter:datetime': withParameters({ timezone: text() }),
  'openrouter:files': withParameters({}),
  'openrouter:fusion': withParameters({
    ...calledModel,
    analysis_models: texts,
    cache_control: cacheControl,
    max_tool_calls: integer(),
    tools: list(nestedTool),
  }),
  'openrouter:image_generation': withParameters({ model: text() }),
  'openrouter:experimental__search_models': withParameters({ max_results: integer() }),
  'openrouter:subagent': withParameters({
    ...calledModel,
    inherit_functions: flag,
    inherited_function_names: texts,
    instructions: text(),
    max_tool_calls: integer(),
    name: text(),
    tools: list(nestedTool),
  }),
  'openrouter:web_fetch': withParameters({
    allowed_domains: texts,
    blocked_domains: texts,
    engine: oneOf('auto', 'native', 'openrouter', 'exa', 'parallel', 'firecrawl'),
    max_content_tokens: integer(),
    max_uses: integer(),
  }),
  'openrouter:web_search': withParameters(webSearch),
  ...Object.fromEntries(webSearchShorthands.map((name) => [name, webSearchShorthand])),
}

export const tools = list(
  named(
    'ChatTool',
    variants('type', {
      function: { function: { required: object(functionShape) }, cache_control: cacheControl },
      ...serverToolShapes,
    }),
  ),
)

const namedFunction = { function: { required: object({ name: { required: text({ min: 1 }) } }) } } satisfies Shape

/** `none`, `auto`, `required`, one function, or one server tool by its type. */
export const toolChoice = shortOr(
  oneOf('none', 'auto', 'required'),
  variants('type', { function: namedFunction }, { otherwise: { type } }),
)

/** Choices that name no tool. */
const modes = ['none', 'auto', 'any', 'required']

/** Whether every tool that a choice names is among these tools. Both are of the same dialect, whichever it is. */
export function isChoiceAmong(tools: readonly unknown[], choice: unknown): boolean {
  const missing = new Set(namedBy(choice).map(keyOf))
  for (const tool of tools) {
    if (missing.size === 0) break
    if (isObject(tool)) for (const key of keysOf(tool)) missing.delete(key)
  }
  return missing.size === 0
}

/**
 * Tools, tool choice and parallel calls of a config made from another dialect. A choice that needs a tool without a stored form is not
 * stored either. A body without tools leaves them to the request.
 */
export function keptTools({
  tools,
  tool_choice,
  parallel_tool_calls,
}: Fields & { tools: Fields[] | undefined }): Fields {
  if (tools === undefined) return { tool_choice, parallel_tool_calls }
  if (tools.length === 0) return { tool_choice: undefined, parallel_tool_calls: undefined }
  return { tools, tool_choice: isChoiceAmong(tools, tool_choice) ? tool_choice : undefined, parallel_tool_calls }
}

/** The name of a function, in whichever place the dialect has it. */
export function toolName(tool: Fields): unknown {
  return isObject(tool.function) ? tool.function.name : tool.name
}

function namedBy(choice: unknown): Fields[] {
  if (!isObject(choice) || modes.includes(choice.type as string)) return []
  if (choice.type !== 'allowed_tools') return [choice]
  const { tools } = isObject(choice.allowed_tools) ? choice.allowed_tools : choice
  return Array.isArray(tools) ? tools.filter(isObject) : []
}

/** How a choice may name a tool: a function by its name, in `/messages` any tool with a name, a server tool by its type. */
function keysOf(tool: Fields): string[] {
  const byName = key('tool', toolName(tool))
  return tool.type === 'function' ? [byName, key('function', toolName(tool))] : [byName, typeKey(tool)]
}

function keyOf(named: Fields): string {
  return named.type === 'tool' || named.type === 'function' ? key(named.type, toolName(named)) : typeKey(named)
}

/** The names of the short form of web search mean the same tool. */
function typeKey({ type }: Fields): string {
  return key('type', webSearchShorthands.some((name) => name === type) ? 'web_search' : type)
}

/** A request's tools may hold any value, and not every object converts to text. */
function key(kind: string, value: unknown): string {
  return `${kind} ${typeof value === 'string' ? value : ''}`
}
