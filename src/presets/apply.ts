// A preset applied to the body of a request: what the request leaves open, the preset fills in, in the terms of that body.
import { Fault } from '../fault.ts'
import { messagesFields } from './dialects/to-messages.ts'
import { responsesFields } from './dialects/to-responses.ts'
import type { PresetContent } from './preset.ts'
import { withoutPresetReference } from './reference.ts'
import { type Fields, isObject, memberOf, omitUndefined, pick } from './schema/fields.ts'
import { isInstruction } from './schema/messages.ts'
import { configKeys } from './schema/parameters.ts'
import { isChoiceAmong, toolName } from './schema/tools.ts'

/** The endpoints that take a preset, by what their bodies look like. */
export const targets = ['chat', 'messages', 'responses', 'completions', 'embeddings', 'rerank'] as const
export type Target = (typeof targets)[number]

/** Both refuse fields that they do not know, and know no more of these. */
const vectorKeys = ['model', 'models', 'provider', 'route']
/** `logprobs` is a number in completions and true or false in chat. */
const completionKeys = [
  ...vectorKeys,
  'temperature',
  'top_p',
  'top_k',
  'top_a',
  'min_p',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
  'max_tokens',
  'stop',
  'seed',
  'logit_bias',
  'response_format',
  'plugins',
  'service_tier',
]

/** The config in the terms of each body; what has no counterpart there is left out. */
const translations: Record<Target, (config: Fields) => Fields> = {
  chat: (config) => config,
  messages: messagesFields,
  responses: responsesFields,
  completions: (config) => {
    const limit = memberOf(config, 'max_completion_tokens') ?? memberOf(config, 'max_tokens')
    return pick({ ...config, max_tokens: limit }, completionKeys)
  },
  embeddings: (config) => pick(config, vectorKeys),
  rerank: (config) => pick(config, vectorKeys),
}

/** What a preset may hold that goes by another name in that body. */
const ownNames: Partial<Record<Target, readonly string[]>> = {
  messages: ['system', 'stop_sequences', 'thinking', 'output_config'],
  responses: ['instructions', 'max_output_tokens', 'text'],
}

/**
 * The body for the upstream (reference: Using a preset): the preset's fields under the request's, of which a null counts as absent; tools united; the
 * system prompt in front unless the request brings its own; without what of the preset names or needs something that is not there. Names
 * of the preset are gone from it. Neither argument is changed.
 * @throws Fault `invalid` when neither names a model
 */
export function applyPreset(target: Target, { config, systemPrompt }: PresetContent, body: Fields): Fields {
  const request = withoutPresetReference(body)
  // Whether the model was to be the preset's: `"model": "@preset/slug"`.
  const asksPresetModel = memberOf(body, 'model') !== undefined && memberOf(request, 'model') === undefined
  const offered = dropConflicting(target, translations[target](config), request, { asksPresetModel })
  const merged = merge(target, offered, request)
  const tools = mergeTools(offered.tools, request.tools)
  if (tools !== undefined) merged.tools = tools
  for (const name of orphanedFields(target, merged, request)) delete merged[name]
  if (memberOf(merged, 'model') === undefined && !hasFallbacks(merged))
    throw new Fault('invalid', 'The preset names no model: name one, as in "vendor/model@preset/slug"')
  return systemPrompt === null ? merged : withSystemPrompt(target, merged, systemPrompt)
}

/** An empty list asks for nothing. */
function hasFallbacks(body: Fields): boolean {
  const models = memberOf(body, 'models')
  return models !== undefined && !(Array.isArray(models) && models.length === 0)
}

/** A null of what presets hold says nothing more, and an upstream that takes none would refuse it. */
function merge(target: Target, offered: Fields, request: Fields): Fields {
  const isHeld = (name: string) =>
    configKeys.some((key) => key === name) || ownNames[target]?.includes(name) === true || Object.hasOwn(offered, name)
  const given = { ...request }
  for (const name of Object.keys(request)) if ((request[name] ?? null) === null && isHeld(name)) delete given[name]
  return { ...offered, ...given }
}

/**
 * What the preset offers without what the request says in other words: an upstream refuses two efforts, is free to choose between two
 * limits, and would be asked for the preset's model before those that the request lists.
 */
function dropConflicting(
  target: Target,
  offered: Fields,
  request: Fields,
  { asksPresetModel }: { asksPresetModel: boolean },
): Fields {
  const isGiven = (name: string) => memberOf(request, name) !== undefined
  const rivals: string[] = []
  if (hasFallbacks(request) && !asksPresetModel) rivals.push('model')
  if (target === 'chat' && isGiven('max_tokens')) rivals.push('max_completion_tokens')
  if (target === 'chat' && isGiven('max_completion_tokens')) rivals.push('max_tokens')
  const left = target === 'messages' ? withoutRivalThinking(offered, request) : withoutRivalReasoning(offered, request)
  for (const name of rivals) delete left[name]
  return left
}

/** That there is to be reasoning leaves open how much, unless there was to be none. */
function withoutRivalReasoning(offered: Fields, request: Fields): Fields {
  const { reasoning, reasoning_effort: effort, ...others } = offered
  const asked = fieldsIn(request, 'reasoning')
  const enabled = memberOf(asked, 'enabled')
  const saysEffort =
    ['effort', 'max_tokens'].some((name) => memberOf(asked, name) !== undefined) ||
    enabled === false ||
    (enabled === true && effort === 'none')
  const isEffortGiven = memberOf(request, 'reasoning_effort') !== undefined
  return omitUndefined({
    ...others,
    reasoning: isEffortGiven ? without(reasoning, ['effort', 'max_tokens', 'enabled']) : reasoning,
    reasoning_effort: saysEffort ? undefined : effort,
  })
}

/** The same in Anthropic's words, where thinking that adapts goes with any effort. */
function withoutRivalThinking(offered: Fields, request: Fields): Fields {
  const { thinking, output_config: output, ...others } = offered
  const saysEffort = ['enabled', 'disabled'].includes(fieldsIn(request, 'thinking').type as string)
  const isEffortGiven = memberOf(fieldsIn(request, 'output_config'), 'effort') !== undefined
  return omitUndefined({
    ...others,
    thinking: isEffortGiven && fieldsIn(offered, 'thinking').type !== 'adaptive' ? undefined : thinking,
    output_config: saysEffort ? without(output, ['effort']) : output,
  })
}

function fieldsIn(fields: Fields, name: string): Fields {
  const found = memberOf(fields, name)
  return isObject(found) ? found : {}
}

/** Nothing where nothing is left. */
function without(fields: unknown, names: readonly string[]): unknown {
  if (!isObject(fields)) return fields
  const left = Object.entries(fields).filter(([name]) => !names.includes(name))
  return left.length === 0 ? undefined : Object.fromEntries(left)
}

/**
 * Fields of the preset that name or need something that is not there: upstreams refuse a choice among no tools, or of another one. What
 * the request says itself is the upstream's to judge.
 */
function orphanedFields(target: Target, { tools, tool_choice: choice, logprobs }: Fields, request: Fields): string[] {
  const isOffered = (name: string) => memberOf(request, name) === undefined
  const dangling: string[] = []
  if (!Array.isArray(tools) || tools.length === 0) dangling.push('tool_choice', 'parallel_tool_calls')
  else if (isOffered('tool_choice') && !isChoiceAmong(tools, choice)) dangling.push('tool_choice')
  if (target === 'chat' && logprobs !== true) dangling.push('top_logprobs')
  return dangling.filter(isOffered)
}

/** The preset's tools in their order, those that the request has too in the request's form, then the request's others. */
function mergeTools(offered: unknown, given: unknown): unknown[] | undefined {
  if (!Array.isArray(offered) || !Array.isArray(given)) return undefined
  const ownByName = new Map<string | undefined, unknown[]>(offered.map((tool) => [nameOf(tool), []]))
  const others: unknown[] = []
  // One look at each: a request may bring hundreds of thousands.
  for (const tool of given as unknown[]) {
    const name = nameOf(tool)
    const own = name === undefined ? undefined : ownByName.get(name)
    if (own === undefined) others.push(tool)
    else own.push(tool)
  }
  const placed = new Set<string | undefined>()
  const united = offered.flatMap((tool) => {
    const name = nameOf(tool)
    const own = name === undefined ? [] : (ownByName.get(name) ?? [])
    if (own.length === 0) return [tool]
    if (placed.has(name)) return []
    placed.add(name)
    return own
  })
  return [...united, ...others]
}

/** A function goes by its name, wherever the body puts it; a server tool by its type, of which two would be the same tool twice. */
function nameOf(tool: unknown): string | undefined {
  if (!isObject(tool)) return undefined
  const name = toolName(tool)
  if (typeof name === 'string') return `name ${name}`
  return typeof tool.type === 'string' ? `type ${tool.type}` : undefined
}

function withSystemPrompt(target: Target, body: Fields, systemPrompt: string): Fields {
  const { messages, input } = body
  switch (target) {
    case 'chat':
      if (!Array.isArray(messages) || messages.some(isInstruction)) return body
      return { ...body, messages: [{ role: 'system', content: systemPrompt }, ...messages] }
    case 'messages':
      if (memberOf(body, 'system') !== undefined || hasInstruction(messages)) return body
      return { ...body, system: systemPrompt }
    case 'responses':
      if (memberOf(body, 'instructions') !== undefined || hasInstruction(input)) return body
      return { ...body, instructions: systemPrompt }
    default:
      return body
  }
}

function hasInstruction(items: unknown): boolean {
  return Array.isArray(items) && items.some(isInstruction)
}
