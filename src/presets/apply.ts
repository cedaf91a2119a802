// Applies a preset to the body of a request: the preset fills in what the request leaves open, translated to that body's dialect.
import { Fault } from '../fault.ts'
import type { JsonTarget as Target } from '../values/inference-paths.ts'
import { messagesFields } from './dialects/to-messages.ts'
import { responsesFields } from './dialects/to-responses.ts'
import type { PresetContent } from './preset.ts'
import { withoutPresetReference } from './reference.ts'
import { type Fields, isObject, memberOf, omitUndefined, pick } from './schema/fields.ts'
import { isInstruction } from './schema/messages.ts'
import { configKeys } from './schema/parameters.ts'
import { isChoiceAmong, toolName } from './schema/tools.ts'

/** Upstreams refuse unknown fields on paths that generate no text, and know only these. */
const routingKeys = ['model', 'models', 'provider', 'route']
/** Without `logprobs`, which is a number in completions and a boolean in chat. */
const completionKeys = [
  ...routingKeys,
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

/** Translates a config to each dialect, without the settings that the dialect lacks. */
const translations: Record<Target, (config: Fields) => Fields> = {
  chat: (config) => config,
  messages: messagesFields,
  responses: responsesFields,
  completions: (config) => {
    const limit = memberOf(config, 'max_completion_tokens') ?? memberOf(config, 'max_tokens')
    return pick({ ...config, max_tokens: limit }, completionKeys)
  },
  embeddings: routingFields,
  rerank: routingFields,
  score: routingFields,
  classify: routingFields,
  pooling: routingFields,
  speech: routingFields,
  images: routingFields,
  // What takes part in the count.
  countTokens: (config) => pick(messagesFields(config), [...routingKeys, 'tools', 'tool_choice', 'thinking']),
  tokenize: routingFields,
  detokenize: routingFields,
}

function routingFields(config: Fields): Fields {
  return pick(config, routingKeys)
}

export const targets = Object.keys(translations) as Target[]

/** Fields of a dialect that hold a preset's settings under another name. */
const renamedFields: Partial<Record<Target, readonly string[]>> = {
  messages: ['system', 'stop_sequences', 'thinking', 'output_config'],
  countTokens: ['system', 'thinking'],
  responses: ['instructions', 'max_output_tokens', 'text'],
}

/**
 * The body for the upstream (reference: Using a preset). The request's fields win; a null counts as absent. Tools are merged, and the
 * system prompt comes first unless the request has one. Preset fields that need a missing field are left out, and so is the name of the
 * preset. Neither argument is changed.
 * @throws Fault `invalid` when neither the request nor the preset names a model
 */
export function applyPreset(target: Target, { config, systemPrompt }: PresetContent, body: Fields): Fields {
  const request = withoutPresetReference(body)
  // Whether the request asks for the preset's model: `"model": "@preset/slug"`.
  const asksPresetModel = memberOf(body, 'model') !== undefined && memberOf(request, 'model') === undefined
  const offered = dropConflicting(target, translations[target](config), request, { asksPresetModel })
  const merged = merge(target, offered, request)
  const tools = mergeTools(offered.tools, request.tools)
  if (tools !== undefined) merged.tools = tools
  for (const name of orphanedFields(target, merged, request)) delete merged[name]
  if (memberOf(merged, 'model') === undefined && !hasFallbacks(merged))
    throw new Fault('invalid', 'The preset has no model: name one, as in "vendor/model@preset/slug"', {
      reason: 'preset_reference',
    })
  return systemPrompt === null ? merged : withSystemPrompt(target, merged, systemPrompt)
}

/** An empty list names no fallback. */
function hasFallbacks(body: Fields): boolean {
  const models = memberOf(body, 'models')
  return models !== undefined && !(Array.isArray(models) && models.length === 0)
}

/** Drops a null in a field that a preset can set: it has done its work, and an upstream may refuse it. */
function merge(target: Target, offered: Fields, request: Fields): Fields {
  const isSettable = (name: string) =>
    configKeys.some((key) => key === name) ||
    renamedFields[target]?.includes(name) === true ||
    Object.hasOwn(offered, name)
  const given = { ...request }
  for (const name of Object.keys(request)) if ((request[name] ?? null) === null && isSettable(name)) delete given[name]
  return { ...offered, ...given }
}

/**
 * The preset's fields without those that conflict with a field of the request: an upstream refuses two efforts, chooses freely between
 * two limits, and would try the preset's model before the models that the request lists.
 */
function dropConflicting(
  target: Target,
  offered: Fields,
  request: Fields,
  { asksPresetModel }: { asksPresetModel: boolean },
): Fields {
  const isGiven = (name: string) => memberOf(request, name) !== undefined
  const conflicting: string[] = []
  if (hasFallbacks(request) && !asksPresetModel) conflicting.push('model')
  if (target === 'chat' && isGiven('max_tokens')) conflicting.push('max_completion_tokens')
  if (target === 'chat' && isGiven('max_completion_tokens')) conflicting.push('max_tokens')
  const left =
    target === 'messages' || target === 'countTokens'
      ? dropConflictingThinking(offered, request)
      : dropConflictingReasoning(offered, request)
  for (const name of conflicting) delete left[name]
  return left
}

/** `enabled: true` in the request leaves the effort to the preset, unless that effort is `none`. */
function dropConflictingReasoning(offered: Fields, request: Fields): Fields {
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

/** The same for the Anthropic body, where adaptive thinking works with any effort. */
function dropConflictingThinking(offered: Fields, request: Fields): Fields {
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

/** The other members; undefined when there are no others. */
function without(fields: unknown, names: readonly string[]): unknown {
  if (!isObject(fields)) return fields
  const left = Object.entries(fields).filter(([name]) => !names.includes(name))
  return left.length === 0 ? undefined : Object.fromEntries(left)
}

/**
 * Fields of the preset that need a missing field: upstreams refuse a choice without tools, or of a missing tool. The request's own fields
 * are left to the upstream.
 */
function orphanedFields(target: Target, { tools, tool_choice: choice, logprobs }: Fields, request: Fields): string[] {
  const isOffered = (name: string) => memberOf(request, name) === undefined
  const orphaned: string[] = []
  if (!Array.isArray(tools) || tools.length === 0) orphaned.push('tool_choice', 'parallel_tool_calls')
  else if (isOffered('tool_choice') && !isChoiceAmong(tools, choice)) orphaned.push('tool_choice')
  if (target === 'chat' && logprobs !== true) orphaned.push('top_logprobs')
  return orphaned.filter(isOffered)
}

/** The preset's tools in their order, each replaced by the request's tool of the same name, then the request's other tools. */
function mergeTools(offered: unknown, given: unknown): unknown[] | undefined {
  if (!Array.isArray(offered) || !Array.isArray(given)) return undefined
  const ownByName = new Map<string | undefined, unknown[]>(offered.map((tool) => [nameOf(tool), []]))
  const others: unknown[] = []
  // One pass: a request may have hundreds of thousands of tools.
  for (const tool of given as unknown[]) {
    const name = nameOf(tool)
    const own = name === undefined ? undefined : ownByName.get(name)
    if (own === undefined) others.push(tool)
    else own.push(tool)
  }
  const placed = new Set<string | undefined>()
  const merged = offered.flatMap((tool) => {
    const name = nameOf(tool)
    const own = name === undefined ? [] : (ownByName.get(name) ?? [])
    if (own.length === 0) return [tool]
    if (placed.has(name)) return []
    placed.add(name)
    return own
  })
  return [...merged, ...others]
}

/** A function is identified by its name, in whichever place the dialect has it; a server tool by its type. */
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
    case 'countTokens':
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
