// Reads a request body of any of the three dialects into the content of a preset version: its config and its system prompt.
import { Fault } from '../fault.ts'
import { presetConfigCharactersMax } from '../limits.ts'
import type { Target } from '../values/inference-paths.ts'
import { chatBody, chatBodyProblems, chatConfig, chatSystemTexts } from './dialects/from-chat.ts'
import { messagesBody, messagesBodyProblems, messagesConfig, messagesSystemTexts } from './dialects/from-messages.ts'
import {
  responsesBody,
  responsesBodyProblems,
  responsesConfig,
  responsesSystemTexts,
} from './dialects/from-responses.ts'
import { type Fields, isObject } from './schema/fields.ts'
import { type Check, describeProblems, type Problem } from './schema/validation.ts'

/** The dialects of bodies that a preset can be made from, by their inference paths. */
export const dialects = ['chat', 'messages', 'responses'] as const satisfies Target[]
export type Dialect = (typeof dialects)[number]

/** The content of a preset version (reference: Preset versions). `config` is in chat-completions terms for every dialect. */
export type PresetContent = { config: Fields; systemPrompt: string | null }

type PresetDialect = {
  name: string
  body: Check
  problems: (body: Fields) => Problem[]
  config: (body: Fields) => Fields
  systemTexts: (body: Fields) => string[]
  /** The field that holds the system prompt. */
  systemField: string
}

export const readings: Record<Dialect, PresetDialect> = {
  chat: {
    name: 'chat completions',
    body: chatBody,
    problems: chatBodyProblems,
    config: chatConfig,
    systemTexts: chatSystemTexts,
    systemField: 'messages',
  },
  messages: {
    name: 'messages',
    body: messagesBody,
    problems: messagesBodyProblems,
    config: messagesConfig,
    systemTexts: messagesSystemTexts,
    systemField: 'system',
  },
  responses: {
    name: 'responses',
    body: responsesBody,
    problems: responsesBodyProblems,
    config: responsesConfig,
    systemTexts: responsesSystemTexts,
    systemField: 'instructions',
  },
}

/**
 * The content of a preset made from this body: the stored fields that are not null, and the system prompt (reference: Preset parameters).
 * The values are those of the body, not copies.
 * @throws Fault `invalid` when the body has no members, or naming each problem as path and rule, ten at most: `metadata.trace_id: must be at most 512 characters`
 */
export function readPreset(dialect: Dialect, body: Fields): PresetContent {
  const { name, problems, config, systemTexts, systemField } = readings[dialect]
  if (Object.keys(body).length === 0)
    throw new Fault('invalid', `The body is empty: send the JSON of a ${name} request`)
  const found = problems(body)
  if (found.length > 0) throw new Fault('invalid', describeProblems(found))
  const systemPrompt = joinTexts(systemTexts(body))
  // The database would truncate it at the first NUL and replace a lone surrogate.
  if (systemPrompt !== null && (systemPrompt.includes('\0') || !systemPrompt.isWellFormed()))
    throw new Fault('invalid', `${systemField}: must not have U+0000 or lone surrogates in the system prompt`)
  return { config: config(body), systemPrompt }
}

/** The config as it is stored. @throws Fault `invalid` when config and system prompt together are too long */
export function encodeConfig({ config, systemPrompt }: PresetContent): string {
  const text = JSON.stringify(config)
  const length = text.length + (systemPrompt?.length ?? 0)
  if (length <= presetConfigCharactersMax) return text
  throw new Fault(
    'invalid',
    `Settings and system prompt have ${length} characters: a preset has at most ${presetConfigCharactersMax}; shorten them`,
  )
}

/**
 * The content in the JSON that an export writes: `{"config": {…}, "system_prompt": "…"}`.
 * @throws Fault `invalid` that names the preset, also for a setting that a preset does not store and for content that is too long
 */
export function readPresetContent(slug: string, text: string): PresetContent {
  const { config, system_prompt: systemPrompt = null, ...others } = parseContent(slug, text)
  const invalid = (problem: string) => new Fault('invalid', `The preset ${JSON.stringify(slug)}: ${problem}`)
  if (Object.keys(others).length > 0)
    throw invalid(`${Object.keys(others)[0]} is not a member of a preset: use config and system_prompt`)
  if (!isObject(config)) throw invalid('config must be an object')
  if (systemPrompt !== null && (typeof systemPrompt !== 'string' || systemPrompt === ''))
    throw invalid('system_prompt must be non-empty text or null')
  // A chat body needs a message; a preset does not store it.
  const opening = systemPrompt === null ? { role: 'user', content: '-' } : { role: 'system', content: systemPrompt }
  let content: PresetContent
  try {
    content = readPreset('chat', { ...config, messages: [opening] })
    encodeConfig(content)
  } catch (error) {
    throw error instanceof Fault ? invalid(error.message) : error
  }
  const unknown = Object.keys(config).find((name) => config[name] !== null && !Object.hasOwn(content.config, name))
  if (unknown !== undefined) throw invalid(`config.${unknown} is not a setting of presets: remove it`)
  return content
}

function parseContent(slug: string, text: string): Fields {
  try {
    const content: unknown = JSON.parse(text)
    if (isObject(content)) return content
  } catch {
    // Reported below, as for every other value that is not an object.
  }
  throw new Fault('invalid', `The preset ${JSON.stringify(slug)} must be an object`)
}

function joinTexts(texts: string[]): string | null {
  const present = texts.filter((text) => text !== '')
  return present.length === 0 ? null : present.join('\n\n')
}
